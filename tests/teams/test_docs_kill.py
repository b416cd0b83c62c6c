"""kill -9 while documentation is written: taken up again, the set comes out as without it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from croze.app.app import App
from tests.teams.docs_fakes import PAGES, DocsStage

CROZE = Path(sys.executable).parent / "croze"
BOUND = 60
POINTS = (
    *(("append.after", number) for number in (6, 8, 12, 16, 20, 26, 32, 38, 44)),
    *(("append.before", number) for number in (10, 30)),
    *(("files.changed", number) for number in (1, 2, 3, 4, 5, 6)),
    *(("files.before", number) for number in (2, 4)),
)


def run(stage: DocsStage, home: Path, *args: str, failpoint: str = "") -> tuple[int, str]:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "CROZE_STORE__BACKUP_ENABLED": "false",
    }
    if failpoint:
        env["CROZE_FAILPOINT"] = failpoint
    done = subprocess.run(
        [CROZE, "docs", "--json", "--model", stage.model(), *args],
        cwd=stage.project, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=BOUND, check=False,
    )  # fmt: skip
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode, done.stdout


def last_session(stage: DocsStage, home: Path) -> str:
    """The session that was begun; empty where it was killed before it said anything."""

    async def read() -> str:
        app = App.open(cwd=stage.project, env={"HOME": str(home)})
        try:
            found = await app.conversations.list()
            return found[0].id if found else ""
        finally:
            await app.aclose()

    return asyncio.run(read())


def files(stage: DocsStage) -> dict[str, str]:
    root = stage.project / "docs"
    return {str(p.relative_to(root)): p.read_text() for p in root.rglob("*") if p.is_file()}


def killed_then_resumed(tmp_path: Path, name: str, number: int) -> dict[str, str] | None:
    """The set's files after a kill and its resume; None where the point was never reached."""
    root = tmp_path / f"{name}-{number}"
    root.mkdir()
    stage, home = DocsStage(root), root / "home"
    code, _out = run(stage, home, failpoint=f"{name}:{number}")
    if code == 0:
        return None
    session = last_session(stage, home)
    _, out = run(stage, home, "--resume", session) if session else run(stage, home)
    report = json.loads(out)
    assert report["ok"], report
    states = {page["state"] for page in report["pages"]}
    assert states <= {"written", "unchanged"}, (name, number, report)
    return files(stage)


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_to_the_same_set(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    whole = DocsStage(tmp_path / "whole")
    run(whole, tmp_path / "whole" / "home")
    expected = files(whole)
    assert set(expected) == {f"reference/{n}" for n in ("index.md", ".croze-docs.json", *PAGES)}
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda point: killed_then_resumed(tmp_path, *point), POINTS))
    reached = [each for each in found if each is not None]
    assert len(reached) >= len(POINTS) - 3
    for point, each in zip(POINTS, found, strict=True):
        if each is not None:
            each.pop("reference/.croze-docs.json")
            assert each == {k: v for k, v in expected.items() if not k.endswith(".json")}, point
