"""Rules and agents in the chat: the files that were found, and what became of each."""

from typing import TYPE_CHECKING

from croze.text.display import one_line
from croze.ui.cli.knowledge import file_rows
from croze.ui.cli.output import table_lines
from croze.ui.i18n import _
from croze.ui.render import Screen

if TYPE_CHECKING:
    from croze.app.app import App


def rules(screen: Screen, app: "App") -> None:
    """The law and the rules of the project and the user."""
    _show(screen, app, ("law", "rules"))


def agents(screen: Screen, app: "App") -> None:
    """croze's own agents, then the files."""
    from croze.app.agents import BUILTIN

    own = [(each.name, one_line(each.description, 100)) for each in BUILTIN]
    for line in table_lines(own):
        screen.line(f"  {line}")
    _show(screen, app, ("agents",))


def _show(screen: Screen, app: "App", kinds: tuple[str, ...]) -> None:
    from croze.app.audit import audit

    found = [each for kind in kinds for each in audit(app.config, app.env, kind)]
    for line in table_lines(file_rows(found, app.env)) or [_("there are no such files")]:
        screen.line(line)
