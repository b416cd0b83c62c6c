"""`croze init`, the chat's /init and the question that a project without a guide is asked once."""

import io
import json
import os
import shutil
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from croze.app.app import App
from croze.app.init import LEAST, MOST, examine_law, law_question_due, remember_law_asked
from croze.app.options import RunOptions
from croze.types.event import FactAdded, ToolReturned
from croze.ui.cli.interrupt import Interrupt
from croze.ui.cli.main import main
from croze.ui.cli.state import State
from croze.ui.i18n import use_language
from croze.ui.render import Screen
from croze.ui.repl.chat import Chat
from tests.ui.test_chat import User
from tests.ui.test_terminal import Terminal

SAMPLE = Path(__file__).parents[2] / "src" / "croze" / "ui" / "demo" / "project"
HAS = {"README.md", "tests", "tidetable"}
SECTIONS = {
    "Project Structure": "The package `tidetable/` holds all code: `parse.py` reads opening hours, "
    "`hours.py` merges the spans. Tests stand in `tests/`, one file a module.",
    "Commands": "`python3 -B -m unittest` runs every test from the project's root; there is nothing to "
    "build and nothing to install, since only the standard library is used.",
    "Style": "Four spaces, type annotations on every function, names in `snake_case`, a docstring that "
    "says what a function gives. Values are frozen, functions give new ones.",
    "Tests": "Tests are `unittest` classes whose methods are named after the behaviour that they show. "
    "A mended fault brings the test that failed before.",
    "Commits and Pull Requests": "One change a commit, its subject in the imperative mood. A pull request "
    "says why, names the test, and keeps the whole suite green.",
}


def guide(times: int = 2) -> str:
    """A guide to the sample project, longer the more often its sentences are said."""
    parts = [f"## {title}\n\n{' '.join([text] * times)}\n" for title, text in SECTIONS.items()]
    return "\n".join(["# Repository Guidelines\n", *parts])


def writes(text: str, name: str = "AGENTS.md") -> dict[str, Any]:
    return {"calls": [{"name": "write_to_file", "args": {"path": name, "content": text}}]}


LOOKS = {
    "text": "I look round.",
    "calls": [
        {"name": "list_files", "args": {"path": ".", "recursive": True}},
        {"name": "read_file", "args": {"path": "tidetable/hours.py"}},
        {"name": "read_file", "args": {"path": "tests/test_hours.py"}},
    ],
}
DONE = {"text": "The guide covers layout, commands, style, tests and commits."}


class Place:
    """A copy of the sample project with a home of its own."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.project = root / "project"
        shutil.copytree(SAMPLE, self.project)
        self.env = {"HOME": str(root / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        self._root = root
        self._capsys = capsys
        self.err = self.out = ""

    @property
    def guide(self) -> Path:
        return self.project / "AGENTS.md"

    def script(self, *replies: dict[str, Any]) -> str:
        path = self._root / "script.yaml"
        path.write_text(yaml.safe_dump(list(replies)))
        return f"scripted:{path}"

    def run(self, *argv: str) -> int:
        try:
            code = main(argv, state=State(env=self.env, cwd=self.project))
        finally:
            use_language("en")
        self.out, self.err = self._capsys.readouterr()
        return code

    def init(self, *replies: dict[str, Any], args: Sequence[str] = ()) -> int:
        return self.run("init", "--model", self.script(*replies), *args)

    def open(self) -> App:
        return App.open(cwd=self.project, env=self.env)


@pytest.fixture
def place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Place:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    return Place(tmp_path, capsys)


@pytest.mark.parametrize("dialect", ["native", "xml"])
def test_the_agent_looks_round_and_writes_the_guide(place: Place, dialect: str) -> None:
    code = place.init(LOOKS, writes(guide()), DONE, args=["--dialect", dialect])
    assert code == 0, place.err
    assert (code, place.guide.read_text()) == (0, guide())
    words = examine_law(place.project, "AGENTS.md", None).words
    assert LEAST <= words <= MOST
    assert f"croze: wrote AGENTS.md: {words} words" in place.err
    assert place.out == "The guide covers layout, commands, style, tests and commits.\n"


def test_the_guide_is_part_of_the_next_session(place: Place) -> None:
    assert place.init(writes(guide()), DONE) == 0
    assert place.run("run", "--model", place.script({"text": "Hello."}), "Say hello.") == 0
    assert place.run("session", "list", "--format", "json") == 0
    newest = json.loads(place.out)[0]["id"]
    target = place.project.parent / "log.jsonl"
    assert place.run("session", "export", newest, str(target)) == 0
    facts = [line for line in target.read_text().splitlines() if '"FactAdded"' in line]
    assert "The package `tidetable/` holds all code" in facts[0]
    assert place.run("replay", newest) == 0


def test_another_file_can_be_asked_for(place: Place) -> None:
    code = place.init(writes(guide(), "code_law.md"), DONE, args=["--file", "code_law.md"])
    assert code == 0
    assert (place.project / "code_law.md").exists()
    assert not place.guide.exists()
    assert place.init(DONE, args=["--file", "README.md"]) == 2
    assert "no name of a law file" in place.err


def test_an_existing_file_is_rewritten_only_with_force(place: Place) -> None:
    place.guide.write_text("mine\n")
    assert place.init(writes(guide()), DONE) == 2
    assert "AGENTS.md exists" in place.err
    assert "--force" in place.err
    assert place.guide.read_text() == "mine\n"
    read = {"calls": [{"name": "read_file", "args": {"path": "AGENTS.md"}}]}
    assert place.init(read, writes(guide()), DONE, args=["--force"]) == 0
    assert place.guide.read_text() == guide()


def test_a_guide_that_is_too_short_is_given_back_once_more(place: Place) -> None:
    assert place.init(writes(guide(1)), DONE, writes(guide()), DONE) == 0
    assert place.guide.read_text() == guide()


@pytest.mark.parametrize(
    ("replies", "problem"),
    [
        ([DONE] * 3, "it was not written"),
        ([writes(guide(1)), DONE, DONE, DONE], "it must have 200 to 400"),
        ([writes("# Other\n" + guide()), DONE, DONE, DONE], "its first line must be"),
    ],
)
def test_what_stays_unfit_is_a_failure(place: Place, replies: Any, problem: str) -> None:
    assert place.init(*replies) == 1
    assert "croze: AGENTS.md is not as it should be: " in place.err
    assert problem in place.err


def test_no_other_file_is_written_and_nothing_is_run(place: Place) -> None:
    other = {"calls": [{"name": "write_to_file", "args": {"path": "x.py", "content": "1"}}]}
    runs = {"calls": [{"name": "execute_command", "args": {"command": "touch y"}}]}
    assert place.init(other, runs, writes(guide()), DONE) == 4
    assert {path.name for path in place.project.iterdir()} == {*HAS, "AGENTS.md"}


class Sitting:
    """A chat with a user who answers by a list."""

    def __init__(self, place: Place, script: str, said: Sequence[object], **options: Any) -> None:
        self.app = place.open()
        self.text = ""
        given = RunOptions(model=script, mode="auto-edit", **options)
        screen = Screen(self._write, color=False, width=100)
        self.user = User(said)
        self.chat = Chat(self.app, given, self.user, screen, Interrupt(leaves=False))

    def _write(self, text: str) -> None:
        self.text += text

    async def hold(self, *, offer: bool) -> int:
        try:
            await self.chat.open()
            if offer:
                await self.chat.offer_law()
            code = await self.chat.run()
            self.events = self.chat.session.events
            return code
        finally:
            await self.app.aclose()


async def test_the_first_chat_asks_and_a_yes_writes_it(place: Place) -> None:
    sitting = Sitting(place, place.script(LOOKS, writes(guide()), DONE), ["y"])
    await sitting.hold(offer=True)
    assert place.guide.read_text() == guide()
    assert "Look round and write one now? [y/N]" in sitting.text
    assert "wrote AGENTS.md" in sitting.text
    again = Sitting(place, place.script({"text": "Hello."}), ["hello"])
    await again.hold(offer=True)
    assert "Look round" not in again.text
    told = [event.body for event in again.events if isinstance(event.body, FactAdded)]
    assert told[0].key == "law"


@pytest.mark.parametrize("answer", ["n", "", None])
async def test_a_no_is_remembered_outside_of_the_repository(
    place: Place, answer: str | None
) -> None:
    said = [] if answer is None else [answer]
    sitting = Sitting(place, place.script({"text": "Hello."}), said)
    await sitting.hold(offer=True)
    assert not place.guide.exists()
    assert "/init writes it at any time" in sitting.text
    again = Sitting(place, place.script({"text": "Hello."}), ["hello"])
    await again.hold(offer=True)
    assert "Look round" not in again.text
    assert {path.name for path in place.project.iterdir()} == HAS
    (kept,) = Path(place.env["HOME"]).rglob("asked.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


async def test_nobody_is_asked_where_there_is_nothing_to_look_at_or_a_guide(place: Place) -> None:
    app = place.open()
    try:
        assert law_question_due(app)
        (place.project / "code_law.md").write_text("x")
        assert not law_question_due(app)
        (place.project / "code_law.md").unlink()
        shutil.rmtree(place.project)
        place.project.mkdir()
        (place.project / ".git").mkdir()
        assert not law_question_due(app)
        (place.project / "a.py").write_text("")
        assert law_question_due(app)
        remember_law_asked(app, "no")
        assert not law_question_due(app)
    finally:
        await app.aclose()


async def test_damaged_answers_count_as_none(place: Place) -> None:
    app = place.open()
    try:
        folder = app.config.store_folder
        folder.mkdir(parents=True, exist_ok=True)
        for damage in ("[]", "{", "\0"):
            (folder / "asked.json").write_text(damage)
            assert law_question_due(app)
        remember_law_asked(app, "yes")
        assert not law_question_due(app)
    finally:
        await app.aclose()


async def test_init_in_the_chat_asks_before_it_rewrites(place: Place) -> None:
    place.guide.write_text("mine\n")
    no = Sitting(place, place.script(DONE), ["/init", "n"])
    await no.hold(offer=False)
    assert "AGENTS.md exists. Write it anew? [y/N]" in no.text
    assert place.guide.read_text() == "mine\n"
    read = {"calls": [{"name": "read_file", "args": {"path": "AGENTS.md"}}]}
    script = place.script(read, writes(guide()), DONE)
    yes = Sitting(place, script, ["/init AGENTS.md", "y"])
    await yes.hold(offer=False)
    assert place.guide.read_text() == guide()
    forced = Sitting(place, place.script(writes(guide(2) + "More.\n"), DONE), ["/init --force"])
    await forced.hold(offer=False)
    assert place.guide.read_text().endswith("More.\n")


async def test_init_on_a_pipe_asks_nobody(place: Place) -> None:
    place.guide.write_text("mine\n")
    piped = Sitting(place, place.script(DONE), ["/init", "/init what.md"], headless=True)
    await piped.hold(offer=False)
    assert "AGENTS.md exists" in piped.text
    assert "what.md is no name of a law file" in piped.text
    assert place.guide.read_text() == "mine\n"


async def test_in_the_chat_the_mode_decides_whether_the_file_is_written(place: Place) -> None:
    sitting = Sitting(place, place.script(writes(guide()), DONE, DONE, DONE), ["/init"])
    sitting.chat._options = RunOptions(model=sitting.chat._options.model, mode="plan")
    await sitting.hold(offer=False)
    results = [event.body for event in sitting.events if isinstance(event.body, ToolReturned)]
    assert [(result.ok, result.code) for result in results] == [(False, "not_allowed")]
    assert "AGENTS.md is not as it should be: it was not written" in sitting.text


def test_on_a_terminal_the_question_comes_before_the_prompt_and_only_once(
    tmp_path: Path,
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.py").write_text("x = 1\n")
    (tmp_path / "script.yaml").write_text("- text: Hello.\n")
    for asked in (True, False):
        terminal = Terminal(tmp_path, "--model", f"scripted:{tmp_path}/script.yaml")
        try:
            if asked:
                terminal.until("›", after=terminal.until("[y/N]").index("[y/N]"))
                at = terminal.type("n\r")
                shown = terminal.until("at any time", after=at)
                terminal.until("›", after=shown.index("at any time", at))
            else:
                terminal.until("›")
                assert "[y/N]" not in terminal.plain
            terminal.type("\x04")
            assert terminal.end() == 0
            assert "Traceback" not in terminal.seen
        finally:
            terminal.close()
    assert not (tmp_path / "project" / "AGENTS.md").exists()
