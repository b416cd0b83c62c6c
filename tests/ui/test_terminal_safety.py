"""Nothing from outside reaches the terminal as more than text (incident 37), and no secret is kept or
shown (incident 36)."""

import json
import os
import re
import stat
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from croze.llm.recorder import RecordingModel
from croze.llm.script import load_script
from croze.llm.scripted import ScriptedModel
from croze.text.display import exact, safe, safe_json, safe_styled
from croze.types.context import Prompt
from croze.types.event import (
    Asked,
    Body,
    FilesChanged,
    ModelCalled,
    ModelSaid,
    Notice,
    Retried,
    Stopped,
    ToolReturned,
    ToolStarted,
)
from croze.types.model import ModelInfo
from croze.types.parts import Text
from croze.types.stream import Delta
from croze.types.tool import Access, FileChange, View
from croze.ui.cli.output import Output, table_lines
from croze.ui.i18n import use_language
from croze.ui.repl.recall import last_exchange
from tests.text.secret_corpus import BODY, KEYS, joined, made
from tests.ui.test_cli_real import Croze
from tests.ui.test_render import Page

ESC = "\x1b"
HOSTILE = {
    "clear": f"{ESC}[2J{ESC}[1;1H",
    "title": f"{ESC}]0;owned\x07",
    "link": f"{ESC}]8;;http://evil.invalid{ESC}\\text{ESC}]8;;{ESC}\\",
    "clipboard": f"{ESC}]52;c;ZXZpbA==\x07",
    "device control": f"{ESC}P+q544e{ESC}\\",
    "application": f"{ESC}_payload{ESC}\\",
    "private": f"{ESC}^payload{ESC}\\",
    "start of string": f"{ESC}Xpayload{ESC}\\",
    "c1 csi": "\x9b2J",
    "c1 osc": "\x9d0;owned\x9c",
    "c1 dcs": "\x90q\x9c",
    "reset": f"{ESC}c",
    "alternate screen": f"{ESC}[?1049h",
    "mouse": f"{ESC}[?1000h",
    "report": f"{ESC}[6n",
    "concealed": f"{ESC}[8mhidden{ESC}[0m",
    "colour": f"{ESC}[31mred",
    "overwrite": "rm -rf /\rls      ",
    "backspace": "evil\b\b\b\bgood",
    "bell and delete": "\x07\x7f\x00\x0e",
    "bidi": "a\u202egpj.exe\u202c",
    "isolate": "\u2066x\u2069\u200f",
    "zero width": "pass\u200bword\ufeff\u2060\u00ad",
    "tags": "\U000e0041\U000e0042",
    "lines": "a\u2028b\u2029c",
    "half": f"{ESC}]0;never ends",
    "surrogate": "\ud800",
}
ALL = " ".join(HOSTILE.values())
OWN = re.compile(r"\x1b\[(?:0|[12]|3[1-6])(?:;(?:[12]|3[1-6]))*m|\r\x1b\[K")


@pytest.fixture(autouse=True)
def english() -> None:
    use_language("en")


def assert_harmless(text: str) -> None:
    """Only text, line ends, tabs, croze's own colours and its clearing of its own bottom line."""
    for char in OWN.sub("", text):
        assert char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp"), char
        assert char not in "\u200b\ufeff\u2060\u00ad\u200e\u200f\u061c"
        assert ord(char) < 0xE0000
        assert unicodedata.bidirectional(char) not in (
            "RLE", "LRE", "RLO", "LRO", "PDF", "RLI", "LRI", "FSI", "PDI",
        )  # fmt: skip


def bodies(text: str) -> list[Body | Delta]:
    """Everything that the screen draws, with `text` wherever something from outside stands."""
    change = FileChange(
        path=text, kind="modified", diff=f"+++ {text}\n@@ -1 +1 @@\n-{text}\n+{text}"
    )
    view = View(title=text, body=f"{text}\n{text}", kind="output")
    return [
        ModelCalled(step=1, model=text, head="", history=1, body="", rolling="", encoder=1, tokens=1, size=1),
        Delta(kind="text", text=text),
        Delta(kind="thinking", text=text),
        Delta(kind="call", name=text, call_id="c1"),
        ModelSaid(message_id="m", step=1, model=text, parts=(Text(text=text),)),
        ToolStarted(call_id="c1", name=text, access=Access(), args={"path": text}),
        ToolStarted(call_id="c2", name="execute_command", access=Access(), args={"command": text}),
        Delta(kind="output", text=f"{text}\n" * 12, call_id="c2"),
        Asked(ask_id="a", kind="approval", text=f"May {text} run? ({text})", call_id="c2", view=view, rule=text),
        Asked(ask_id="b", kind="approval", text="May x run? (y)", call_id="c1", view=View(title=text, body=change.diff, kind="diff")),
        Asked(ask_id="c", kind="question", text=text, options=(text,)),
        FilesChanged(call_id="c1", changes=(change,)),
        ToolReturned(call_id="c1", message_id="m", name=text, ok=False, message=text, text=text, view=view),
        ToolReturned(call_id="c2", message_id="m", name="execute_command", ok=True, message=text, text=text, view=view),
        ToolStarted(call_id="c3", name="attempt_completion", access=Access(), args={"result": text}),
        Retried(attempt=1, delay=1.0, error=text, message=text),
        Notice(level="warning", code="x", text=text, params={"hint": text}),
        Delta(kind="reset"),
        Stopped(reason="limit_steps", text=text),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("live", [True, False])
def test_the_screen_draws_nothing_that_a_terminal_obeys(kind: str, live: bool) -> None:
    for text in (HOSTILE[kind], f"a{HOSTILE[kind]}b\n{HOSTILE[kind]}"):
        page = Page(color=True, live=live)
        for body in bodies(text):
            page.show(body)
        assert_harmless(page.text)


def test_a_line_of_the_screen_is_harmless_whoever_calls_it() -> None:
    page = Page(color=True)
    page.screen.line(f"{ESC}[1mname{ESC}[0m {ALL}", "yellow")
    assert_harmless(page.text)
    assert f"{ESC}[1mname" in page.text
    assert f"{ESC}[8m" not in page.text


def test_sequences_that_come_in_pieces_do_not_come_together() -> None:
    page = Page(color=True)
    for char in f"see {ALL}":
        page.show(Delta(kind="text", text=char))
    page.show(Delta(kind="output", text="x", call_id="c"))
    for char in ALL:
        page.show(Delta(kind="output", text=char, call_id="c"))
    assert_harmless(page.text)


def test_answers_notes_errors_tables_and_json_are_harmless(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    out = Output()
    out.line(ALL)
    out.note(ALL)
    out.error(ALL, ALL)
    out.table([(ALL, "x"), ("y", ALL)])
    value = {"text": ALL.replace("\ud800", ""), "é": "你好"}
    line = json.dumps(value, ensure_ascii=False).encode()
    out.json(line + b"\n")
    written = capfdbinary.readouterr()
    assert_harmless(written.out.decode())
    assert_harmless(written.err.decode())
    assert json.loads(safe_json(line)) == value
    for row in table_lines([(ALL, ALL)]):
        assert_harmless(row)


def test_json_without_hidden_characters_stays_as_it_is() -> None:
    line = '{"a": "你好 é 👍"}'.encode()
    assert safe_json(line) == line


def test_what_was_said_last_is_shown_harmless() -> None:
    from croze.types.event import Event, UserSaid

    said = [UserSaid(message_id="u", parts=(Text(text=ALL),)), bodies(ALL)[4]]
    events = [Event(session="s", seq=1, at=1, body=body) for body in said]  # type: ignore[arg-type]
    for line in last_exchange(events):
        assert_harmless(line)


def test_an_approval_shows_the_whole_command_with_its_line_ends_and_look_alikes() -> None:
    command = "\n".join(["echo а", *(f"echo {n}" for n in range(600)), "rm\u00a0-rf ."])
    page = Page()
    page.show(
        Asked(
            ask_id="a", kind="approval", text="May execute_command run? (it runs a command)",
            call_id="c", view=View(title="Run a command", body=command, kind="output"),
        )
    )  # fmt: skip
    assert "echo а⟨U+0430⟩ ⏎" in page.text
    assert all(f"echo {n} ⏎" in page.text for n in range(600))
    assert "rm⟨U+00A0⟩-rf ." in page.text


def test_exact_marks_what_only_looks_like_ascii() -> None:
    assert exact("сat ｌs\nx") == "с⟨U+0441⟩at ｌ⟨U+FF4C⟩s ⏎\nx"
    assert exact("plain 'text' 你好") == "plain 'text' 你好"


def test_joined_letters_and_emoji_stay_readable() -> None:
    for text in ("👨\u200d👩\u200d👧", "क्\u200dष", "می\u200cخواهم", "你好 👍🏽"):
        assert safe(text) == text
    assert safe("pay\u200dpal") == "pay\\u200dpal"


def test_only_colours_of_the_screen_pass_where_it_styles() -> None:
    assert safe_styled(f"{ESC}[1;36mx{ESC}[0m") == f"{ESC}[1;36mx{ESC}[0m"
    assert_harmless(safe_styled(f"{ESC}[31mx{ESC}[0m{ESC}[8my{ALL}"))


FILE_KEY, OUTPUT_KEY, SAID_KEY = KEYS["github classic"], KEYS["stripe"], KEYS["openai project"]
ENV_KEY = KEYS["gitlab"]
CANARIES = (FILE_KEY, OUTPUT_KEY, SAID_KEY, ENV_KEY, made(64)[:40], "hunter2hunter")


def script() -> str:
    half = len(OUTPUT_KEY) // 2
    first, second = OUTPUT_KEY[:half], OUTPUT_KEY[half:]
    return json.dumps([
        {
            "thinking": f"The key is {SAID_KEY}.",
            "text": f"I found {SAID_KEY} and\n\npassword: hunter2hunter\n",
            "calls": [
                {"name": "read_file", "args": {"path": "settings.env"}},
                {"name": "execute_command", "args": {"command": f"cat id_rsa; a={first}; echo ${{a}}{second}; echo $MY_ACCESS"}},
                {"name": "write_to_file", "args": {"path": "out.txt", "content": "token = os.environ['X']\n"}},
                {"name": SAID_KEY, "args": {}},
            ],
        },
        {"text": "x", "error": {"message": f"Incorrect API key provided: {SAID_KEY}", "status": 400, "code": "bad_request"}, "after": 0},
    ])  # fmt: skip


@pytest.fixture
def croze(tmp_path: Path) -> Croze:
    return Croze(tmp_path)


def walked(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


@pytest.mark.parametrize("form", ["text", "stream-json", "json"])
def test_no_secret_is_in_the_state_the_log_or_the_output_after_a_run_that_fails(
    croze: Croze, form: str
) -> None:
    (croze.project / "settings.env").write_text(f"GITHUB={FILE_KEY}\nDB_PASSWORD=hunter2hunter\n")
    head, foot = (joined("-----", word, " RSA PRIVATE KEY-----") for word in ("BEGIN", "END"))
    (croze.project / "id_rsa").write_text(f"{head}\n{BODY}\n{foot}\n")
    croze.env |= {"MY_ACCESS": ENV_KEY, "CROZE_LOG_LEVEL": "DEBUG"}
    model = croze.script(script())
    code, out, err = croze.run(
        "run", "--model", model, "--mode", "full", "--sandbox", "off", "--verbose",
        "--output-format", form, "go on",
    )  # fmt: skip
    assert code == 1, err
    shown = out + err
    kept = b"".join(path.read_bytes() for path in walked(croze.root / "home"))
    assert b"REDACTED" in kept
    for canary in CANARIES:
        assert canary not in shown
        assert canary.encode() not in kept
    _code, session, err = croze.run("session", "list")
    _code, listed, err = croze.run("session", "show", session.split()[0])
    assert "REDACTED" in listed
    assert not any(canary in listed + err for canary in CANARIES)


async def test_the_recorded_script_of_a_model_holds_no_secret(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    reply = {
        "thinking": SAID_KEY,
        "text": f"It is {SAID_KEY}.",
        "calls": [{"name": "x", "args": {"a": FILE_KEY}}],
    }
    script.write_text(json.dumps([reply]))
    info = ModelInfo(provider="scripted", model="x", window=9_000, max_output=9_000)
    target = tmp_path / "recorded.yaml"
    model = RecordingModel(ScriptedModel(info, load_script(script)), target)
    async for _chunk in model.stream(model.encode(Prompt(system="s", messages=()))):
        pass
    recorded = target.read_text()
    assert "It is <REDACTED>." in recorded
    assert SAID_KEY not in recorded
    assert FILE_KEY not in recorded


def test_state_is_only_for_its_owner_whatever_the_umask(croze: Croze) -> None:
    model = croze.script("- text: Done.\n")
    code = "import os, sys; os.umask(0); from croze.ui.cli.main import main; sys.exit(main())"
    ended = subprocess.run(
        [sys.executable, "-c", code, "run", "--model", model, "my password is hunter2"],
        cwd=croze.project, env=croze.env, capture_output=True, timeout=60, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    found = walked(croze.root / "home")
    assert found
    assert [path for path in found if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)] == []
    typed = b"".join(path.read_bytes() for path in found if path.suffix == ".db")
    typed += b"".join(path.read_bytes() for path in found if path.name.endswith("-wal"))
    assert b"my password is hunter2" in typed


def test_hostile_names_and_replies_are_harmless_in_every_command(croze: Croze) -> None:
    name = f"evil{ESC}]0;owned\x07\u202e\u200b.txt"
    (croze.project / name).write_text(f"{ESC}[2J\n")
    said = "hi " + " ".join(
        text for key, text in HOSTILE.items() if key not in ("surrogate", "tags")
    )
    replies = [
        {"text": said, "calls": [{"name": "execute_command", "args": {"command": f"ls; printf '\\033]0;t\\007'; echo '{ESC}[2J'"}}]},
        {"text": said, "calls": [{"name": "write_to_file", "args": {"path": f"n{ESC}[2J.txt", "content": said}}]},
        {"text": said},
    ]  # fmt: skip
    model = croze.script(json.dumps(replies))
    commands = [
        ("run", "--model", model, "--mode", "full", "--sandbox", "off", "--verbose", f"do {ALL[:200]}"),
        ("session", "list"), ("session", "show", "{id}"), ("session", "search", "hi"),
        ("session", "rename", "{id}", f"n{HOSTILE['title']}x"), ("session", "list"),
        ("checkpoints",), ("diff",), ("context",), ("config", "list"), ("doctor",), ("undo",), ("redo",),
        ("session", "show", f"{ESC}[2J"), (f"{ESC}]0;x\x07",), ("run", f"--no-{ESC}[2J"),
        ("run", "--model", f"{ESC}]0;x\x07:y", "z"), ("diff", "--turn", "1"), ("config", "get", f"a{ESC}[2J"),
    ]  # fmt: skip
    identity = ""
    for argv in commands:
        if "{id}" in argv and not identity:
            identity = croze.run("session", "list")[1].split()[0]
        _code, out, err = croze.run(*(identity if word == "{id}" else word for word in argv))
        assert_harmless(out)
        assert_harmless(err)
    assert os.path.exists(croze.project / name)
