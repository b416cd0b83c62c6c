"""Skills in the chat: which there are, and using one by its name."""

from typing import TYPE_CHECKING

from croze.text.display import one_line
from croze.ui.cli.output import table_lines
from croze.ui.findings import because, states
from croze.ui.i18n import _
from croze.ui.render import Screen

if TYPE_CHECKING:
    from croze.app.app import App


def show(screen: Screen, app: "App") -> None:
    """List the skills, those that can't be used too."""
    from croze.app.external_tools import skills_of

    skills = skills_of(app.config, app.env).look()
    if not skills:
        screen.line(_("There are no skills: folders with a SKILL.md in .croze/skills."), "dim")
        return
    names = states()
    rows = [
        (
            f"/{one_line(skill.name, 64)}",
            names[skill.found.state],
            one_line(skill.card.description, 100)
            if skill.found.acts
            else because(skill.found.reason),
        )
        for skill in skills
    ]
    for line in table_lines(rows):
        screen.line(f"  {line}")


def task(app: "App", name: str, rest: str) -> str | None:
    """What `/name rest` asks of the agent, where there is such a skill to be used."""
    from croze.app.external_tools import skills_of

    skill = skills_of(app.config, app.env).get(name.removeprefix("/"))
    if skill is None or not skill.found.acts:
        return None
    return f"Use the skill {skill.name}." + (f" {rest}" if rest else "")
