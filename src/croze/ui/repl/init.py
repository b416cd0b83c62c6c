"""The chat's /init, and the question that a project without a law file is asked once."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from croze.types.event import Stopped
from croze.ui.cli.init import told
from croze.ui.i18n import _
from croze.ui.render import Screen
from croze.ui.repl.questions import PROMPT, YES
from croze.ui.repl.reader import Reader

if TYPE_CHECKING:
    from croze.app.app import App, Session

FORCE = "--force"


async def write(
    app: "App",
    rest: str,
    *,
    screen: Screen,
    reader: Reader | None,
    submit: Callable[[str], Awaitable[Stopped]],
) -> Stopped | None:
    """Have the agent write the law file that `rest` names; an existing one only with --force or a yes.
    None where nothing was begun. Without a `reader` nobody is there to ask."""
    from croze.app.init import check_free, check_name, law_present, write_law

    words = rest.split()
    force = FORCE in words
    name = check_name(" ".join(word for word in words if word != FORCE))
    root = app.config.project.root
    if name in law_present(root) and not force:
        if reader is None:
            check_free(root, name)
        elif not await _agreed(screen, reader, _("{name} exists. Write it anew?", name=name)):
            return None
    report, stopped = await write_law(root, name, submit)
    if stopped.reason == "done":
        screen.line(told(report), "yellow" if report.problem else "dim")
        if not report.problem:
            screen.line(_("read it; `croze trust` then makes it the law here"), "dim")
    return stopped


async def offer(app: "App", session: "Session", screen: Screen, reader: Reader) -> bool:
    """Ask once whether the project's law is to be written now."""
    from croze.app.init import law_question_due, remember_law_asked

    if session.used or not law_question_due(app):
        return False
    screen.line(
        _(
            "This project has no AGENTS.md or code_law.md, the guide that every session begins with."
        ),
        "dim",
    )
    agreed = await _agreed(screen, reader, _("Look round and write one now?"))
    remember_law_asked(app, "yes" if agreed else "no")
    if not agreed:
        screen.line(_("You won't be asked again here; /init writes it at any time."), "dim")
    return agreed


async def _agreed(screen: Screen, reader: Reader, question: str) -> bool:
    """Ctrl-C and the end of the input are a no."""
    screen.line(f"{question} [y/N]")
    try:
        line = await reader.answer(PROMPT)
    except (KeyboardInterrupt, EOFError):
        return False
    return (line or "").strip().lower() in YES
