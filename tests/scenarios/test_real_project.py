"""A real bug in a real library (`real_library.py`) is mended by a scripted session."""

import json
from pathlib import Path

import pytest
import yaml

from tests.scenarios.conftest import croze
from tests.scenarios.real_library import HERE, contents, suite

pytestmark = [pytest.mark.registry, pytest.mark.slow]

SCRIPT = HERE / "parse.yaml"
TASK = "test_parse.py has a failing test. Mend the library, not the test, and run the suite again."


def allowed() -> list[str]:
    """A rule for every command of the script, and for nothing else."""
    script = yaml.safe_load(SCRIPT.read_text("utf-8"))
    calls = [call for reply in script["replies"] for call in reply["calls"]]
    commands = [call["args"]["command"] for call in calls if call["name"] == "execute_command"]
    return [word for each in commands for word in ("--allow", f"execute_command({each})")]


@pytest.mark.parametrize("dialect", ["native", "xml"])
def test_a_bug_of_a_published_library_is_mended_through_the_tools(
    library: Path, dialect: str
) -> None:
    red = suite(library)
    assert red.returncode == 1
    assert "FAILED (failures=1)" in red.stderr
    before = contents(library)

    ran = croze(
        library, "run", TASK, "--model", f"scripted:{SCRIPT}", "--dialect", dialect,
        "--mode", "auto-edit", *allowed(), "-o", "json",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    result = json.loads(ran.stdout)
    assert result["ok"]
    assert "all 78 tests pass" in result["answer"]

    green = suite(library)
    assert (green.returncode, green.stderr.splitlines()[-1]) == (0, "OK")
    after = contents(library)
    assert {path for path in before | after if before.get(path) != after.get(path)} == {"parse.py"}

    replayed = croze(library, "replay", result["session"])
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert replayed.stdout == "6 requests, all the same byte for byte\n"


def test_where_nobody_allows_it_the_library_stays_as_it_is(library: Path) -> None:
    before = contents(library)
    ran = croze(library, "run", TASK, "--model", f"scripted:{SCRIPT}", "--mode", "ask")
    assert ran.returncode == 1
    assert "was not allowed" in ran.stderr
    assert contents(library) == before
