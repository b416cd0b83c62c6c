"""Programs that are given something to read: what they say, and that nothing of them is left."""

import os
import sys
from pathlib import Path

import pytest

from croze.workspace import piped
from croze.workspace.piped import Piped, run_piped
from croze.workspace.process import ProcessError

LONG = 60.0


async def sh(command: str, said: bytes = b"", *, timeout: float = LONG, **limits: int) -> Piped:
    return await run_piped(
        ["/bin/sh", "-c", command],
        said=said,
        cwd="/",
        env={"PATH": os.environ["PATH"]},
        timeout=timeout,
        output_limit=limits.get("output", 10_000),
        error_limit=limits.get("errors", 10_000),
    )


async def test_output_and_errors_are_kept_apart() -> None:
    told = await sh("cat; echo oops >&2; exit 3", b"hello")
    assert (told.output, told.errors.strip(), told.ended.exit_code) == ("hello", "oops", 3)


async def test_a_program_that_reads_nothing_holds_nobody_up() -> None:
    assert (await sh("exit 0", b"x" * 5_000_000)).ended.exit_code == 0


async def test_a_program_may_read_very_much() -> None:
    assert (await sh("wc -c", b"x" * 5_000_000)).output == "5000000\n"


async def test_much_of_both_blocks_neither() -> None:
    write = "import sys; sys.stderr.write('e' * 3_000_000); sys.stdout.write('o' * 3_000_000)"
    told = await sh(f'{sys.executable} -c "{write}"')
    assert told.ended.exit_code == 0
    assert told.output is None
    assert 9_000 < len(told.errors) < 11_000


async def test_endless_output_ends_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piped, "MOST_OUTPUT", 100_000)
    assert (await sh("yes")).ended.ended == "reader"


async def test_endless_errors_end_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piped, "MOST_OUTPUT", 100_000)
    told = await sh("yes >&2", timeout=0.3)
    assert told.ended.ended == "timeout"


async def test_what_hangs_ends_with_its_children(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    for seconds in (0.5, 5.0, 30.0):  # until the machine has found the time to start it
        told = await sh(
            f"sleep 600 & echo $! > {pid}.new; mv {pid}.new {pid}; wait", timeout=seconds
        )
        assert told.ended.ended == "timeout"
        if pid.exists():
            break
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


async def test_what_cannot_be_started_is_an_error() -> None:
    with pytest.raises(ProcessError):
        await run_piped(
            ["/no/such/program"],
            said=b"",
            cwd="/",
            env={},
            timeout=1,
            output_limit=9,
            error_limit=9,
        )
