"""`croze docs` as a program: what it prints, its exit codes, and the user's word at a terminal."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.teams.docs_fakes import FILES, HOOPS, PAGES, DocsStage

CROZE = Path(sys.executable).parent / "croze"
BOUND = 30


@pytest.fixture
def stage(tmp_path: Path) -> DocsStage:
    return DocsStage(tmp_path)


def env(stage: DocsStage, **more: str) -> dict[str, str]:
    home = str(stage.project.parent / "home")
    return {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8", **more}


def croze(stage: DocsStage, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [CROZE, *args, "--model", stage.model()], cwd=stage.project, env=env(stage, **more),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BOUND, check=False,
    )  # fmt: skip


def at_terminal(
    stage: DocsStage, answers: list[tuple[str, str]], *args: str, **more: str
) -> tuple[int, str]:
    """Run at a terminal; each answer is typed once what stands before it was shown."""
    master, slave = pty.openpty()
    command = [str(CROZE), "docs", "--model", stage.model(), *args]
    with subprocess.Popen(
        command, cwd=stage.project, env=env(stage, **more), stdin=slave, stdout=slave, stderr=slave
    ) as process:
        os.close(slave)
        shown, seen, deadline = "", 0, time.monotonic() + BOUND
        while time.monotonic() < deadline:
            if not select.select([master], [], [], 0.2)[0]:
                if process.poll() is not None:
                    break
                continue
            try:
                data = os.read(master, 65_536)
            except OSError:
                break
            shown += data.decode("utf-8", "replace")
            if answers and answers[0][0] in shown[seen:]:
                seen = len(shown)
                typed = answers.pop(0)[1]
                if typed == CTRL_C:
                    process.send_signal(signal.SIGINT)
                else:
                    os.write(master, typed.encode())
        if process.poll() is None and time.monotonic() >= deadline:
            process.kill()
        code = process.wait(timeout=BOUND)
    os.close(master)
    assert not answers, shown
    return code, shown


ASK = "or what to change:"
CTRL_C = "\x03"


def test_pages_are_told_and_the_set_is_on_disk(stage: DocsStage) -> None:
    ran = croze(stage, "docs")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "Cooper",
        "  docs/reference/guide/start.md: written",
        "  docs/reference/hoops.md: written",
        "  docs/reference/index.md: written",
    ]
    assert "the structure has 2 pages" in ran.stderr
    assert {page: stage.read(page) for page in PAGES} == PAGES


def test_json_is_one_object_with_pages_and_cost(stage: DocsStage) -> None:
    stage.pages["hoops.md"] = [{"fault": "error_401"}]
    ran = croze(stage, "docs", "--json", "--out", "docs/api")
    found = json.loads(ran.stdout)
    assert (ran.returncode, found["exit_code"], found["ok"], found["reason"]) == (
        1,
        1,
        False,
        "failed",
    )
    assert found["out"] == "docs/api"
    states = {page["path"]: page["state"] for page in found["pages"]}
    assert states == {"guide/start.md": "written", "hoops.md": "failed"}
    assert "key was refused" in found["pages"][1]["note"]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["docs", "--out", "/etc"], "the folder must lie in the project"),
        (["docs", "--out", ""], "--out is empty"),
        (["docs", "--accept"], "--accept needs the run"),
        (["docs", "--agent", "general"], "--agent says nothing"),
        (["docs", "--stage", "all"], "create | structure | detail | index"),
    ],
)
def test_what_can_not_be_asked_for_is_a_usage_error(
    stage: DocsStage, args: list[str], told: str
) -> None:
    ran = croze(stage, *args)
    assert ran.returncode == 2, ran.stderr
    assert told in ran.stderr
    assert not (stage.project / "docs").exists()


def test_a_limit_has_its_exit_code_and_the_run_goes_on(stage: DocsStage) -> None:
    ran = croze(stage, "docs", "--max-turns", "3", "--json")
    assert ran.returncode == 3, ran.stderr
    then = croze(stage, "docs", "--resume", json.loads(ran.stdout)["session"])
    assert then.returncode == 0, then.stderr
    assert {page: stage.read(page) for page in PAGES} == PAGES


def test_a_review_without_a_terminal_is_accepted_later(stage: DocsStage) -> None:
    ran = croze(stage, "docs", "--review", "--json")
    found = json.loads(ran.stdout)
    assert (ran.returncode, found["waits"]) == (0, True)
    assert f"croze docs --resume {found['session'][:8]} --accept" in ran.stderr
    then = croze(stage, "docs", "--resume", found["session"], "--accept")
    assert then.returncode == 0, then.stderr
    assert stage.read("hoops.md") == PAGES["hoops.md"]


def test_the_user_accepts_at_the_terminal(stage: DocsStage) -> None:
    code, shown = at_terminal(stage, [(ASK, "\n"), (ASK, "y\n")], "--review")
    assert code == 0, shown
    assert "path: guide/start.md" in shown
    assert stage.read("hoops.md") == PAGES["hoops.md"]


def test_the_user_rejects_at_the_terminal(stage: DocsStage) -> None:
    code, shown = at_terminal(stage, [(ASK, "n\n")], "--review")
    assert code == 0, shown
    assert "you rejected the structure" in shown
    assert not (stage.project / "docs").exists()


def test_the_user_edits_the_structure_in_the_editor(stage: DocsStage, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    text = json.dumps({"pages": [{**HOOPS, "title": "My hoops"}]})
    editor.write_text(f"#!/bin/sh\ncat > \"$1\" <<'END'\n{text}\nEND\n")
    editor.chmod(0o755)
    code, shown = at_terminal(stage, [(ASK, "e\n")], "--review", EDITOR=str(editor))
    assert code == 0, shown
    assert "[My hoops](hoops.md)" in stage.read("index.md")
    assert not (stage.project / "docs/reference/guide").exists()


def test_an_interrupt_at_the_question_ends_the_run(stage: DocsStage) -> None:
    code, shown = at_terminal(stage, [(ASK, CTRL_C)], "--review")
    assert code == 130, shown
    assert not (stage.project / "docs").exists()


def test_everything_is_said_in_chinese_too(stage: DocsStage) -> None:
    ran = croze(stage, "docs", CROZE_UI__LANGUAGE="zh_CN")
    assert "docs/reference/hoops.md: 已写入" in ran.stdout
    assert "结构共有 2 页" in ran.stderr


def test_undo_takes_the_set_back(stage: DocsStage) -> None:
    croze(stage, "docs")
    undone = subprocess.run(
        [CROZE, "undo"], cwd=stage.project, env=env(stage), capture_output=True, text=True,
        timeout=BOUND, check=False,
    )  # fmt: skip
    assert undone.returncode == 0, undone.stderr
    left = {str(p.relative_to(stage.project)) for p in stage.project.rglob("*") if p.is_file()}
    assert left == set(FILES)
