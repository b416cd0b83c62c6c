"""Named places where a test may kill the process, to see what a crash leaves behind."""

import os
import signal
from collections.abc import Callable

ENV_NAME = "CROZE_FAILPOINT"


def failpoints(setting: str | None) -> Callable[[str], None]:
    """A function to be called at each place with its name.

    `setting` is `<name>:<n>`: the process kills itself (SIGKILL) when it passes `name` for the n-th
    time. Without a setting the function does nothing; a setting that can't be read is an error, so a
    test never believes that it has killed something.
    """
    if not setting:
        return _pass_by
    target, _, count = setting.rpartition(":")
    if not target or not count.isdigit() or int(count) < 1:
        raise ValueError(f"{ENV_NAME} must be <name>:<n> with n from 1, not {setting!r}")
    left = int(count)

    def passes(name: str) -> None:
        nonlocal left
        if name == target:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return passes


def _pass_by(_name: str) -> None:
    return


passes = failpoints(os.environ.get(ENV_NAME))
"""The process's fail points, read from the environment once at import."""
