"""The questions of a turn: approvals with their four answers, and what the agent asks."""

from collections.abc import Callable

from croze.text.display import one_line
from croze.types.event import Asked
from croze.ui.i18n import _
from croze.ui.render import Screen
from croze.ui.repl.reader import Reader

Answer = tuple[str, str]
"""An answer and its note, as `Session.answer` takes them."""
PROMPT = "  › "
YES, NO, ALWAYS, WHY = ("y", "yes", "是"), ("n", "no", "否"), ("a", "always"), ("w", "why")


async def put(
    asked: Asked, reader: Reader, screen: Screen, cancel: Callable[[], None]
) -> Answer | None:
    """Ask the user; None where the turn was stopped instead (Ctrl-C, the end of the input)."""
    try:
        if asked.kind == "question":
            return await _question(asked, reader, screen)
        return await _approval(asked, reader, screen)
    except (KeyboardInterrupt, EOFError):
        cancel()
        return None


async def _question(asked: Asked, reader: Reader, screen: Screen) -> Answer:
    for number, option in enumerate(asked.options, 1):
        screen.line(f"  {number}. {one_line(option, 400)}")
    if asked.options:
        screen.line(_("  a number, or your own words"), "dim")
    while True:
        chosen = (await _line(reader, PROMPT)).strip()
        if chosen.isdecimal() and 0 < int(chosen) <= len(asked.options):
            return asked.options[int(chosen) - 1], ""
        if chosen:
            return chosen, ""


async def _approval(asked: Asked, reader: Reader, screen: Screen) -> Answer:
    choices = [_("y yes"), _("n no"), _("w no, and say why")]
    if asked.rule:
        choices.append(_("a always allow {rule}", rule=one_line(asked.rule, 200)))
    screen.line("  " + " · ".join(choices), "dim")
    while True:
        said = (await _line(reader, PROMPT)).strip()
        word, _space, reason = said.partition(" ")
        word = word.lower()
        if word in YES and not reason:
            return "once", ""
        if word in NO:
            return "no", reason
        if word in ALWAYS and asked.rule and not reason:
            return "always", ""
        if word in WHY:
            return "no", reason or await _line(reader, _("  tell the agent why: "))


async def _line(reader: Reader, prompt: str) -> str:
    line = await reader.answer(prompt)
    if line is None:
        raise EOFError
    return line
