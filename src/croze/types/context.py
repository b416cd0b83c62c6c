"""What the model sees: messages in sections, within a budget."""

from typing import Any, Literal

from msgspec import Struct

from croze.types.parts import Part
from croze.types.tool import ToolDoc

Layer = Literal["system", "documentation", "history", "current"]
Role = Literal["user", "assistant", "system"]


class Message(Struct, frozen=True, eq=False, weakref=True):
    """One projected message. Projection hands out the same object for the same span of the log, so
    what is derived from it (its encoded bytes) can be kept by identity.

    `key` is the sequence number of the span's first event; `last` of its last. `tokens` is an estimate.
    The role `system` is a summary's, amid the history; a wire that can't say so sends it as the user's.
    """

    key: int
    last: int
    role: Role
    parts: tuple[Part, ...]
    layer: Layer = "history"
    tokens: int = 0


class Section(Struct, frozen=True, omit_defaults=True):
    """A named span of the context with its reason and its price."""

    key: str
    layer: Layer
    place: Literal["head", "history", "tail"]
    tokens: int
    reason: str = ""
    digest: str = ""
    stable: bool = True


class Context(Struct, frozen=True):
    """Everything that one request is made of. `system` is the head's text, `tools` the core tools;
    `sections` is the account of it, in order."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolDoc, ...]
    sections: tuple[Section, ...]
    tokens: int

    def by_layer(self) -> dict[str, int]:
        """Tokens of each layer, in the order of the layers."""
        totals: dict[str, int] = {}
        for section in self.sections:
            totals[section.layer] = totals.get(section.layer, 0) + section.tokens
        return totals


class Prompt(Struct, frozen=True):
    """A context in a protocol's form, ready for a wire.

    `tools` are function schemas (empty under xml). `prefill` asks the wire to let the model go on with
    the last message, which then is the assistant's.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolDoc, ...] = ()
    prefill: bool = False
    max_output: int | None = None


class Budget(Struct, frozen=True):
    """Tokens to spend: the model's window less the reserve for its reply."""

    window: int
    reserve: int

    @property
    def available(self) -> int:
        return max(0, self.window - self.reserve)


class Check(Struct, frozen=True, omit_defaults=True):
    """A finding of a context check: `error` stops the request, `warning` is shown."""

    level: Literal["error", "warning"]
    code: str
    text: str
    params: dict[str, Any] = {}


def budget_for(window: int, max_output: int) -> Budget:
    """The reserve is the smaller of the model's longest reply and 30 % of its window."""
    return Budget(window=window, reserve=min(max_output, window * 3 // 10))
