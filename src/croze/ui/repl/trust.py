"""The question that the chat begins with where a project has files that nobody has trusted as they are."""

import os
import sys
from typing import TYPE_CHECKING

from croze.app.hooks_config import UNTRUSTED_CODES
from croze.ui.cli.state import State
from croze.ui.i18n import _
from croze.ui.repl.questions import NO, PROMPT, YES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from croze.app.acting import ActingFile
    from croze.app.app import App

_SHOW = ("s", "show")


def open_asking(state: State) -> "App":
    """The application, opened once the user has said whether the project may act. The answer is kept: for
    the same contents nobody is asked again."""
    app = state.open_silently()
    untrusted = any(notice.code in UNTRUSTED_CODES for notice in app.config.notices)
    if untrusted and _is_terminal() and _agreed(state, app):
        app = state.open_silently()
    state.tell(app.config.notices)
    return app


def _is_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _agreed(state: State, app: "App") -> bool:
    """Show what there is and ask; whether it is trusted now. Ctrl-C leaves croze."""
    from croze.app.acting import acting_of, digest_of, trust_all
    from croze.ui.trusting import content_lines, survey_lines

    trust = app.config.trust
    digest = digest_of(_strange(acting_of(app.config, app.env, deep=False)))
    if trust.kept.declined == digest:
        return False
    files = acting_of(app.config, app.env)
    strange = _strange(files)
    if not strange:
        return False
    out = state.out
    out.line(_("This project has files that you have not trusted as they are:"))
    for line in survey_lines([each for each in files if each.state != "trusted"]):
        out.line(line)
    out.line(
        _(
            "Untrusted they run nothing and set nothing, and what they say is told to agents as material only."
        )
    )
    while True:
        out.line(_("y trust them · n go on without them · s show what is in them"))
        out.raw(PROMPT.encode())
        word = _answer()
        if word in YES:
            trust_all(trust, files, whole=True)
            return True
        if word in NO:
            trust.decline(digest)
            return False
        if word is None:
            return False
        if word in _SHOW:
            for each in strange:
                for line in content_lines(each, trust):
                    out.line(line)


def _strange(files: "Sequence[ActingFile]") -> "list[ActingFile]":
    return [each for each in files if each.state in ("changed", "new")]


def _answer() -> str | None:
    """A line of the terminal and nothing behind it, which is for the chat; None at the end."""
    data = os.read(sys.stdin.fileno(), 4096)
    return data.decode("utf-8", "replace").strip().lower() if data else None
