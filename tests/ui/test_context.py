"""`croze context` and the chat's /context, over real sessions of a scripted model."""

import asyncio
import hashlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from croze.app.app import App
from croze.app.options import RunOptions
from croze.types.errors import UsageError
from croze.types.event import Compacted, Event, FactAdded, ModelCalled, ToolReturned
from croze.ui.cli.main import main
from croze.ui.cli.output import cells
from croze.ui.cli.state import State
from croze.ui.i18n import use_language
from croze.ui.inspector.table import money, percent, rows, span
from croze.ui.render import Screen
from croze.ui.repl.inspect import context as chat_context

SCRIPT = """\
- text: I look.
  calls: [{name: read_file, args: {path: a.txt}}]
- text: Again.
  calls: [{name: list_files, args: {path: .}}]
- text: Done with it.
"""
MORE = "- text: Once more.\n"


class Desk:
    """Runs `croze` in this process, with sessions of a scripted model."""

    def __init__(self, project: Path, capsys: Any) -> None:
        self.project = project
        self._capsys = capsys
        (project / "a.txt").write_text("".join(f"line {n}\n" for n in range(200)))

    def script(self, text: str) -> str:
        path = self.project.parent / "script.yaml"
        path.write_text(text)
        return f"scripted:{path}"

    def run(self, *argv: str) -> tuple[int, str, str]:
        self._capsys.readouterr()
        sys.stdin = io.TextIOWrapper(io.BytesIO(b""))
        try:
            code = main(argv, state=State(env=dict(os.environ), cwd=self.project))
        finally:
            use_language("en")
        out, err = self._capsys.readouterr()
        return code, out, err

    def say(self, text: str, script: str = SCRIPT, *more: str) -> None:
        model = self.script(script)
        code, _, err = self.run(
            "run", "--model", model, "--mode", "full", "--sandbox", "off", *more, text
        )
        assert code == 0, err

    def app(self) -> App:
        return App.open(cwd=self.project, env=dict(os.environ))

    async def events(self) -> list[Event]:
        app = self.app()
        try:
            (newest,) = await app.conversations.list(limit=1)
            return await app.store.read(newest.id)
        finally:
            await app.aclose()

    def prune(self) -> ToolReturned:
        """Replace the first result, as a policy would have."""

        async def work() -> ToolReturned:
            app = self.app()
            try:
                (newest,) = await app.conversations.list(limit=1)
                log = await app.store.open_log(newest.id)
                first = next(e.body for e in log.events if isinstance(e.body, ToolReturned))
                await log.append(
                    Compacted(
                        policy="batch", reason="above the watermark", tokens_before=5_000,
                        tokens_after=4_000, replaced={first.call_id: "[cleared]"},
                    )
                )  # fmt: skip
                log.close()
                return first
            finally:
                await app.aclose()

        return asyncio.run(work())


@pytest.fixture(autouse=True)
def _own_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run sets as its input is taken back afterwards."""
    monkeypatch.setattr(sys, "stdin", sys.stdin)


@pytest.fixture
def desk(project: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(project, capsys)


@pytest.mark.parametrize("width", [80, 160])
def test_a_report_fits_the_terminal_and_says_what_matters(
    desk: Desk, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    desk.say("Begin.")
    code, out, _ = desk.run("context")
    assert code == 0
    assert all(cells(line) <= width for line in out.splitlines())
    for words in ("step 3 of 3", "exact: ", "system", "tool_use", "transcript", "frozen", "Begin."):
        assert words in out
    assert "\x1b" not in out
    assert "read_file" in out
    first = desk.run("context", "--turn", "1")[1]
    assert "step 1 of 3" in first
    assert "list_files" not in first.partition("messages\n")[2]


def test_the_bytes_come_out_as_they_were_sent(
    project: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    desk = Desk(project, capsysbinary)
    desk.say("Begin.")
    called = [e.body for e in asyncio.run(desk.events()) if isinstance(e.body, ModelCalled)]
    for body in called:
        code, out, _ = desk.run("context", "--raw", "--turn", str(body.step))
        assert code == 0
        assert hashlib.sha256(out).hexdigest() == body.body  # type: ignore[arg-type]


def test_every_view_has_a_form_for_programs(desk: Desk) -> None:
    desk.say("Begin.")
    first = desk.prune()
    desk.say("More.", MORE, "--continue")
    found = json.loads(desk.run("context", "--json")[1])
    assert (found["step"], found["exact"]["exact"]) == (4, True)
    assert len(found["messages"]) == 9
    assert json.loads(desk.run("context", "--diff", "3", "4", "--json")[1])["b"] == "4"
    assert json.loads(desk.run("context", "--why", "line 77", "--json")[1])["gone"]
    assert json.loads(desk.run("context", "--breaks", "--json")[1])["breaks"][0]["step"] == 4
    (receipt,) = json.loads(desk.run("context", "--receipts", "--json")[1])["receipts"]
    assert receipt["spans"][0]["id"] == first.message_id
    shown = json.loads(desk.run("context", "--show", first.message_id[:8], "--json")[1])
    assert shown["span"]["name"] == "read_file"
    tried = json.loads(desk.run("context", "--what-if", "all", "--json")[1])
    assert [o["policy"] for o in tried["outcomes"]] == ["none", "batch", "digest", "zone"]


def test_every_view_tells_people_what_happened_and_the_next_step(desk: Desk) -> None:
    desk.say("Begin.")
    assert "nothing of this conversation was pruned" in desk.run("context", "--receipts")[1]
    assert "begins with the one before" in desk.run("context", "--breaks")[1]
    first = desk.prune()
    desk.say("More.", MORE, "--continue")
    short = first.message_id[:8]
    assert "compaction: batch: above the watermark" in desk.run("context", "--breaks")[1]
    receipts = desk.run("context", "--receipts")[1]
    assert short in receipts
    assert "5,000 → 4,000" in receipts
    assert "[cleared]" in desk.run("context", "--diff", "3", "4")[1]
    why = desk.run("context", "--why", "line 77")[1]
    assert f"--restore {short}" in why
    assert 'read_file {"path":"a.txt"}' in why
    assert "line 77" in desk.run("context", "--show", short)[1]
    assert "nobody" in desk.run("context", "--why", "purple elephants")[1]
    code, out, _ = desk.run("context", "--restore", short)
    assert code == 0
    assert "brought back" in out
    code, _, err = desk.run("context", "--restore", short)
    assert code == 2
    assert "in full" in err
    assert "restored" in desk.run("context", "--receipts")[1]
    table = desk.run("context", "--what-if", "all")[1]
    assert "as they are" in table
    assert all(name in table for name in ("recorded", "none", "batch", "digest", "zone"))


def test_what_can_not_be_asked_says_how_it_can(desk: Desk) -> None:
    code, _, err = desk.run("context")
    assert code == 2
    assert "no conversation" in err
    desk.say("Begin.")
    for argv, words in (
        (["--turn", "9"], "no step 9"),
        (["--breaks", "--receipts"], "exclude"),
        (["--receipts", "--turn", "1"], "--turn"),
        (["--what-if", "policy=magic"], "none | batch | digest | zone"),
        (["--show", "ffffffff"], "no message"),
        (["nobody"], "no session"),
        (["--diff", "1", "x"], "no step x"),
    ):
        code, out, err = desk.run("context", *argv)
        assert code in (1, 2)
        assert out == ""
        assert words in err
        assert len(err.strip().splitlines()) == 2  # what happened, and the next step


def test_colours_come_where_they_are_asked_for(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.say("Begin.")
    monkeypatch.setenv("CROZE_UI__COLOR", "always")
    assert "\x1b[1m" in desk.run("context")[1]
    monkeypatch.setenv("CROZE_UI__COLOR", "never")
    assert "\x1b" not in desk.run("context")[1]


def test_the_report_speaks_chinese(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.say("Begin.")
    monkeypatch.setenv("CROZE_UI__LANGUAGE", "zh_CN")
    out = desk.run("context")[1]
    assert "第 3 步，共 3 步" in out
    assert "固定" in out


def test_escapes_from_files_and_names_do_not_reach_the_terminal(desk: Desk) -> None:
    (desk.project / "a.txt").write_text("evil \x1b]0;title\x07 \x1b[31mred\x1b[0m text\n")
    desk.say("Look at \x1b[2J this.", SCRIPT, "--namespace", "n")
    events = asyncio.run(desk.events())
    returned = next(e.body for e in events if isinstance(e.body, ToolReturned))
    for argv in ([], ["--why", "text"], ["--show", returned.message_id[:8]], ["--diff", "1", "3"]):
        out = desk.run("context", *argv)[1]
        assert out
        assert "\x1b" not in out
        assert "\x07" not in out


async def test_the_chat_inspects_and_restores_in_the_session_that_runs(project: Path) -> None:
    (project / "a.txt").write_text("line 77\n" * 50)
    script = project.parent / "s.yaml"
    script.write_text(SCRIPT + MORE)
    app = App.open(cwd=project, env=dict(os.environ))
    shown: list[str] = []
    screen = Screen(shown.append, color=False, width=90)
    try:
        options = RunOptions(model=f"scripted:{script}", mode="full", sandbox="off", headless=True)
        session = await app.session(options)
        await chat_context(screen, app, session, "")
        assert "nothing was asked yet" in "".join(shown)
        await asyncio.wait_for(session.submit("Begin."), 20)
        first = next(e.body for e in session.events if isinstance(e.body, ToolReturned))
        for rest, words in (
            ("", "step 3 of 3"), ("1", "step 1 of 3"), ("breaks", "begins with"),
            ("receipts", "nothing of this"), ("why line 77", "read_file"), ("diff 1 2", "→"),
            (f"show {first.message_id[:8]}", "line 77"), ("what-if", "recorded"),
            ("what-if none,window=8k", "recorded"),
        ):  # fmt: skip
            shown.clear()
            await chat_context(screen, app, session, rest)
            assert words in "".join(shown), rest
        for wrong in ("why", "diff 1", "nonsense", "show", "breaks 3"):
            with pytest.raises(UsageError, match="can't be"):
                await chat_context(screen, app, session, wrong)
        restore = f"restore {first.message_id[:8]}"
        with pytest.raises(UsageError, match="in full"):
            await chat_context(screen, app, session, restore)
        await app.leave(session)
        log = await app.store.open_log(session.id)
        await log.append(Compacted("batch", "full", replaced={first.call_id: "[cleared]"}))
        log.close()
        again = await app.session(replace(options, resume=session.id))
        shown.clear()
        await chat_context(screen, app, again, restore)
        assert "brought back" in "".join(shown)
        assert isinstance(again.events[-1].body, FactAdded)
    finally:
        await app.aclose()


def test_tables_keep_to_their_width_whatever_is_in_them() -> None:
    table = [["名字", "12", "x" * 200], ["a", "123456", "y\x1b[2J"]]
    lines = rows(table, width=40, right=frozenset((1,)))
    assert all(cells(line) <= 40 for line in lines)
    assert lines[1].startswith("a     123456  y")
    assert rows([], width=40) == []


def test_figures_read_as_people_write_them() -> None:
    assert [percent(x) for x in (None, 0.0, 0.004, 0.12345, 1.0)] == [
        "—", "0 %", "0.4 %", "12 %", "100 %",
    ]  # fmt: skip
    assert [money(x) for x in (None, 0, 0.00001, 0.0123, 12.3, -0.5)] == [
        "—", "$0", "<$0.0001", "$0.0123", "$12.30", "−$0.5000",
    ]  # fmt: skip
    assert [span(x) for x in (None, 5, 300, 7_200, 400_000)] == [
        "—", "5 s", "5 min", "2 h", "5 d",
    ]  # fmt: skip
