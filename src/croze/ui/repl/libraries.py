"""The chat's /lib: the libraries whose documentation is told, and changing that while the chat goes on."""

from typing import TYPE_CHECKING

from croze.types.errors import UsageError
from croze.ui.cli.output import table_lines, thousands
from croze.ui.i18n import _, explain
from croze.ui.render import Screen

if TYPE_CHECKING:
    from croze.app.app import App, Session

FORMS = ("/lib", "/lib add NAME", "/lib remove NAME", "/lib refresh")


async def lib(screen: Screen, app: "App", session: "Session", rest: str) -> None:
    """List the libraries, or change the list; what is new is told to this conversation too."""
    from croze.app import libraries as work

    libraries = work.open_libraries(app.config, app.env)
    url = app.config.settings.knowledge.library_repository
    match rest.split():
        case []:
            rows = [
                (
                    row.name,
                    row.installed,
                    _("{count} documents", count=row.documents)
                    if row.documents
                    else _("not there"),
                    _("{count} tokens", count=thousands(row.tokens)),
                )
                for row in work.rows(libraries)
            ]
            if not rows:
                screen.line(_("no library is added; `/lib add NAME` adds one"), "dim")
            for line in table_lines(rows) if rows else ():
                screen.line(line)
            return
        case ["add", name]:
            added, failed = await work.add(libraries, name, url, lambda _line: None)
            if failed is not None:
                screen.line(explain(failed)[0], "dim")
            screen.line(_("{library}: added", library=added.name))
        case ["remove", name]:
            screen.line(_("{library}: removed", library=libraries.remove(name).name))
        case ["refresh"]:
            snapshot, _changed = await work.refresh(libraries, url, lambda _line: None)
            screen.line(_("{files} documents of {url}", files=snapshot.files, url=snapshot.url))
        case _:
            raise UsageError(
                _("/lib can't be {value}", value=repr(rest)),
                hint=_("allowed: {allowed}", allowed=" | ".join(FORMS)),
                code="lib_form",
            )
    if await work.tell(app, session):
        screen.line(_("this conversation knows of it from here on"), "dim")
