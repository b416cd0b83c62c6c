"""The chat's /context: the inspector over the session that runs here, and bringing a message back."""

from typing import TYPE_CHECKING

from croze.types.errors import UsageError
from croze.ui.i18n import _
from croze.ui.render import Screen

if TYPE_CHECKING:
    from croze.app.app import App, Session

MESSAGES = 12
FORMS = (
    "/context [STEP]", "/context diff A B", "/context why TEXT", "/context breaks",
    "/context receipts", "/context show ID", "/context restore ID", "/context what-if SPEC",
)  # fmt: skip


async def context(screen: Screen, app: "App", session: "Session", rest: str) -> None:
    """Show what the model saw, or one of the inspector's other views."""
    from croze.app import context as inspect
    from croze.ui.inspector import past, report

    verb, _blank, given = rest.partition(" ")
    given = given.strip()
    if not rest or rest.replace(".", "", 1).isdecimal():
        found = await inspect.report(app, session.id, turn=rest or None)
        if isinstance(found, inspect.Unrecorded):
            report.draw_unrecorded(screen, found, messages=MESSAGES)
        else:
            report.draw_report(screen, found, messages=MESSAGES)
        return
    match verb, given.split():
        case "diff", [a, b]:
            past.draw_difference(screen, await inspect.compare(app, a, b, session.id))
        case "why", words if words:
            past.draw_answer(screen, await inspect.explain(app, given, session.id))
        case "breaks", []:
            past.draw_breaks(screen, await inspect.breaks(app, session.id))
        case "receipts", []:
            past.draw_receipts(screen, await inspect.receipts(app, session.id))
        case "show", [wanted]:
            past.draw_span(screen, await inspect.show(app, wanted, session.id))
        case "restore", [wanted]:
            past.draw_restored(screen, await inspect.restore_live(session, wanted))
        case "what-if", specs:
            tried = await inspect.what_if(app, specs or ["all"], session.id)
            past.draw_what_if(screen, tried)
        case _:
            raise UsageError(
                _("/context can't be {value}", value=repr(rest)),
                hint=_("allowed: {allowed}", allowed=" | ".join(FORMS)),
                code="context_view",
            )
