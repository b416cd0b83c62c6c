"""The log file: codes and durations, never a word of what was said; small, private, optional."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from croze.app.app import App
from croze.app.logfile import MAX_SIZE, LogFile
from croze.app.options import RunOptions
from croze.types.event import Event, Notice, Stopped, ToolReturned, UserSaid
from croze.types.parts import Text
from croze.types.stream import Delta

SECRET = "sk-ant-0123456789abcdefghij"


def event(body: object, seq: int = 1) -> Event:
    return Event(session="0b5f6a1e-1111", seq=seq, at=1, body=body)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "croze.log"


def test_a_line_has_type_codes_and_durations_and_no_text(path: Path) -> None:
    log = LogFile(path, "INFO")
    log.watch(Delta(kind="text", text=SECRET))
    log.watch(event(UserSaid(message_id="m", parts=(Text(text=SECRET),))))
    log.watch(
        event(
            ToolReturned(
                call_id="c", message_id="m", name=f"read\n{SECRET[:3]} file", ok=False,
                message=SECRET, text=SECRET, code="file_not_found", seconds=0.25,
            ),
            2,
        )
    )  # fmt: skip
    log.watch(event(Stopped(reason="failed", text=SECRET, steps=3), 3))
    log.close()
    lines = path.read_text().splitlines()
    assert [re.sub(r"^\S+ ", "", line) for line in lines] == [
        "INFO 0b5f6a1e 1 UserSaid",
        "INFO 0b5f6a1e 2 ToolReturned tool=read?sk-?file ok=False code=file_not_found seconds=0.250",
        "ERROR 0b5f6a1e 3 Stopped reason=failed steps=3",
    ]
    assert SECRET not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("level", "kept"),
    [
        ("DEBUG", 4),
        ("INFO", 3),
        ("WARNING", 2),
        ("ERROR", 1),
        ("CRITICAL", 0),
    ],
)
def test_the_level_decides_what_is_kept(path: Path, level: str, kept: int) -> None:
    log = LogFile(path, level)  # type: ignore[arg-type]
    from croze.types.event import TodoSet

    log.watch(event(TodoSet(items=())))
    for name in ("info", "warning", "error"):
        log.watch(event(Notice(level=name, code="c", text="t")))  # type: ignore[arg-type]
    log.close()
    assert (len(path.read_text().splitlines()) if path.exists() else 0) == kept


def test_a_full_file_makes_room_and_one_old_one_is_kept(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"x" * (MAX_SIZE - 10))
    log = LogFile(path, "INFO")
    for seq in range(3):
        log.watch(event(Stopped(reason="done"), seq))
    log.close()
    assert path.with_name("croze.log.1").stat().st_size > MAX_SIZE
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize("blocked", ["a file for the folder", "a link"])
def test_where_it_can_not_be_written_nothing_else_changes(path: Path, blocked: str) -> None:
    target = path.parent.parent / "elsewhere"
    if blocked == "a link":
        path.parent.mkdir()
        path.symlink_to(target)
    else:
        path.parent.write_text("")
    log = LogFile(path, "INFO")
    log.watch(event(Stopped(reason="done")))
    log.watch(event(Stopped(reason="done")))
    log.close()
    assert not target.exists()


async def test_a_session_is_logged_and_only_what_the_setting_asks_for(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    script = tmp_path / "s.yaml"
    script.write_text(f"- text: {SECRET}\n")
    env = {"HOME": str(tmp_path / "home")}
    app = App.open(cwd=project, env=env)
    session = await app.session(RunOptions(model=f"scripted:{script}", headless=True))
    await session.submit(f"my key is {SECRET}")
    await app.aclose()
    log = app.config.paths.log_file
    text = log.read_text()
    assert re.search(r" INFO \S{8} \d+ ModelSaid step=1 finish=stop input=\d+ ", text)
    assert " Stopped reason=done steps=1" in text
    assert SECRET not in text
    log.unlink()
    app = App.open(cwd=project, env={**env, "CROZE_STORE__LOG_LEVEL": "ERROR"})
    session = await app.session(RunOptions(model=f"scripted:{script}", headless=True))
    await session.submit("hi")
    await app.aclose()
    assert not log.exists()


def test_it_costs_no_import_of_logging() -> None:
    code = "import sys, croze.app.logfile; sys.exit('logging' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
