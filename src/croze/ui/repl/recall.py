"""What was said last in a conversation that is taken up again."""

from collections.abc import Sequence

from croze.text.display import one_line
from croze.types.event import Event, ModelSaid, ToolReturned, UserSaid
from croze.types.parts import Part, Text
from croze.ui.calls import ANSWERS

WIDTH = 300


def last_exchange(events: Sequence[Event]) -> list[str]:
    """The last thing that the user said and the last that came back, each in a line; none at the
    beginning of a conversation."""
    asked = answered = ""
    for event in reversed(events):
        match event.body:
            case UserSaid(parts=parts):
                asked = _text(parts)
                break
            case ToolReturned(name=name, ok=True, text=text) if name in ANSWERS and not answered:
                answered = text.partition("\n")[2] or text
            case ModelSaid(parts=parts) if not answered:
                answered = _text(parts)
            case _:
                pass
    shown = [f"› {one_line(asked, WIDTH)}"] if asked else []
    return [*shown, one_line(answered, WIDTH)] if answered else shown


def _text(parts: Sequence[Part]) -> str:
    return " ".join(part.text for part in parts if isinstance(part, Text)).strip()
