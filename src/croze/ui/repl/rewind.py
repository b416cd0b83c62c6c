"""The chat's /undo, /redo and /diff: back and forth in the session that runs here."""

from typing import TYPE_CHECKING

from croze.text.display import one_line
from croze.ui.cli.timetravel import SIGNS
from croze.ui.i18n import _
from croze.ui.render import Screen

if TYPE_CHECKING:
    from croze.app.app import App, Session
    from croze.app.timetravel import UndoReport


async def undo(screen: Screen, session: "Session", rest: str) -> None:
    """Take back the last turn, or with a number the last few."""
    from croze.app.timetravel import undo_live

    turns = int(rest) if rest.isdecimal() and int(rest) > 0 else 1
    _tell(screen, await undo_live(session, turns=turns))


async def redo(screen: Screen, session: "Session") -> None:
    from croze.app.timetravel import redo_live

    _tell(screen, await redo_live(session))


async def diff(screen: Screen, app: "App", session: "Session") -> None:
    """What the session has changed, summed up against its beginning."""
    from croze.app.timetravel import diff as changes_of

    changes = await changes_of(app, session.id) if session.used else ()
    if not changes:
        screen.line(_("no changes"), "dim")
    for change in changes:
        name = one_line(change.path, 200)
        screen.line(f"{SIGNS[change.kind]} {name} +{change.added} −{change.removed}", "bold")
        screen.diff(change.diff)


def _tell(screen: Screen, report: "UndoReport") -> None:
    turns = ", ".join(map(str, report.turns))
    if report.kind == "redo":
        screen.line(_("redone: turn {turns}", turns=turns))
    else:
        screen.line(_("undone: turn {turns}", turns=turns))
    for change in report.files:
        screen.line(f"  {SIGNS[change.kind]} {one_line(change.path, 200)}")
    for path in report.lost:
        name = one_line(path, 200)
        screen.line(_("not restorable: {path} (nobody has its old content)", path=name), "yellow")
    for path in report.left:
        name = one_line(path, 200)
        text = _("left alone: {path} has changed since the interruption", path=name)
        screen.line(text, "yellow")
