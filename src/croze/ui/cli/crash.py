"""A failure that nobody expected: one line on the screen, the traceback in a file."""

import os
import traceback
from datetime import UTC, datetime

from croze.app.paths import Paths
from croze.text.display import one_line
from croze.ui.cli.exits import Exit
from croze.ui.cli.state import State
from croze.ui.i18n import _

_LARGEST = 1_000_000


def report_crash(error: Exception, state: State, *, verbose: bool) -> int:
    """Say what happened in one line, keep the traceback (0600) and give the exit code."""
    trace = "".join(traceback.format_exception(error))
    what = one_line(f"{type(error).__name__}: {error}", 200)
    path = Paths.of(state.env).crash_log
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.exists() and path.stat().st_size > _LARGEST:
            os.replace(path, path.with_suffix(".log.1"))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8", errors="replace") as file:
            file.write(f"--- {datetime.now(UTC).isoformat()}\n{trace}")
        kept = _("the details are in {path}", path=path)
    except OSError:
        kept = _("`--verbose` shows the details")
    state.out.error(_("unexpected error: {what}", what=what), kept)
    if verbose:
        state.out.note(trace, end="")
    return int(Exit.FAILED)
