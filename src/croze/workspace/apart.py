"""Work done apart: a module of croze run as a program of its own, with bytes in and bytes out, that can be
given up when it hangs or grows."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import croze
from croze.workspace.process import ProcessResult, child_environment, run
from croze.workspace.wrapper import Entry, Policy

_KEPT = 4_096


class Overflowed(Exception):
    """The program gave more bytes than were wanted."""


class _Fed:
    """Starts a program with these bytes as its standard input."""

    policy = Policy(root=Path(os.sep), level="workspace", network=True)

    def __init__(self, data: bytes) -> None:
        self._data = data

    @contextmanager
    def enter(
        self, argv: Sequence[str], *, cwd: str | os.PathLike[str], env: Mapping[str, str]
    ) -> Iterator[Entry]:
        import tempfile

        with tempfile.TemporaryFile(prefix="croze-") as stream:
            stream.write(self._data)
            stream.seek(0)
            yield Entry(argv=argv, cwd=cwd, env=env, stdin=stream.fileno())


async def apart(
    module: str, data: bytes, *, env: Mapping[str, str], timeout: float, most: int
) -> tuple[ProcessResult, bytes]:
    """Run `module` on `data` for at most `timeout` seconds; gives how it ended, and its output. Raises
    `Overflowed` above `most` bytes of that, and `ProcessError` where it can't be started."""
    out = bytearray()

    def take(chunk: bytes) -> bool:
        out.extend(chunk)
        return len(out) <= most

    ended = await run(
        [sys.executable, "-P", "-B", "-m", module],
        cwd=os.sep,
        env=_environment(env),
        timeout=timeout,
        output_limit=_KEPT,
        on_output=take,
        sandbox=_Fed(data),
    )
    if ended.ended == "reader" or len(out) > most:
        raise Overflowed
    return ended, bytes(out)


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """A child's, with croze found where it is found here."""
    made = dict(child_environment(env))
    made["PYTHONPATH"] = os.path.dirname(os.path.dirname(os.path.abspath(croze.__file__)))
    return made
