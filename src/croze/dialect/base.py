"""The one interface of a tool protocol: advertise tools, encode a context, decode a reply."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from croze.types.context import Context, Prompt
from croze.types.parts import Part, ToolCall
from croze.types.stream import Chunk, Delta
from croze.types.tool import ToolDoc, ToolShape


class Reply(Struct, frozen=True):
    """A decoded reply. Its parts in order, joined (a call by its `raw`), are the reply verbatim.

    `problem` is set where the model must be told about the reply as a whole: its only calls stood in
    a code fence or in thinking (`fenced`), or it wrote a result itself (`wrote_result`).
    """

    parts: tuple[Part, ...]
    problem: Literal["", "fenced", "wrote_result"] = ""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(p for p in self.parts if isinstance(p, ToolCall))


class Decoder(Protocol):
    """Turns one reply's chunks into deltas, and at its end into parts."""

    halted: bool
    """True once nothing more of the stream counts (the model wrote a result tag itself)."""

    def feed(self, chunk: Chunk) -> list[Delta]: ...

    def finish(self, *, cut: bool) -> Reply:
        """Close the reply. `cut`: it ended without a proper finish (length, lost stream, cancel), so a
        call that is not closed is `truncated`, even where its text happens to parse."""
        ...


class Dialect(Protocol):
    name: Literal["xml", "native"]

    def advertise(self, core: Sequence[ToolDoc], others: Sequence[ToolDoc]) -> str:
        """The head's text on tools: the form, the core tools (in full where the wire has no schemas),
        one line for each other tool."""
        ...

    def describe(self, tools: Sequence[ToolDoc]) -> str:
        """The full description of tools, as `describe_tools` returns it."""
        ...

    def example(self, name: str, args: Mapping[str, object]) -> str:
        """A call as the model should write it, for errors that show the right form."""
        ...

    def encode(self, context: Context, *, prefill: bool = False) -> Prompt:
        """The context in this protocol's form; the same message objects give the same objects."""
        ...

    def decoder(self, tools: Mapping[str, ToolShape], new_id: Callable[[], str]) -> Decoder:
        """A decoder for one reply; `tools` maps every accepted tag (aliases too) to its shape."""
        ...
