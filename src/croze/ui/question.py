"""An approval as it is put to the user: why it asks, the command whole and taken apart, where it would run."""

from collections.abc import Iterator

from croze.text.display import exact, one_line
from croze.types.event import Asked
from croze.ui.i18n import _
from croze.ui.reasons import reason, why

Line = tuple[str, str]
"""A line and its style."""


def heading(asked: Asked, width: int) -> str:
    """The question in one line, in the user's language."""
    head, _space, said = asked.text.partition(" (")
    words = head.split(" ")
    if len(words) != 3 or words[0] != "May" or not said.endswith(")"):
        return one_line(asked.text, width)
    english = said.removesuffix(")")
    told = reason(english)
    if told == english:
        return one_line(asked.text, width)
    return one_line(_("May {tool} run? ({reason})", tool=words[1], reason=told), width)


def command_lines(asked: Asked, text: str, width: int) -> Iterator[Line]:
    """The whole command, its line ends visible, the parts of it that need the answer, and its folder.
    Nobody should say yes to what he can't see."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        end = " ⏎" if at < len(lines) - 1 else ""
        yield f"  {exact(line)}{end}", "bold"
    if len(asked.parts) > 1:
        for part in asked.parts:
            shown = one_line(exact(part.text), width - 6)
            if part.why:
                yield f"  ▸ {shown}", "yellow"
                yield f"      {one_line(_('it {why}', why=why(part.why)), width - 6)}", "dim"
            else:
                yield f"  ✓ {shown}", "dim"
    if asked.cwd:
        yield "  " + _("in {folder}", folder=one_line(asked.cwd, width - 6)), "dim"
