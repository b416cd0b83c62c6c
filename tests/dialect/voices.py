"""Tools and ways to speak for the tests of both protocols."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from croze.dialect.base import Decoder, Dialect, Reply
from croze.dialect.xml import XmlDialect
from croze.types.stream import CallChunk, Chunk, Delta, FinishChunk, TextChunk, ThinkingChunk
from croze.types.tool import ToolDoc, ToolExample, ToolShape

PARAMS = {
    "read_file": ("path", "start_line", "query"),
    "write_to_file": ("path", "content", "mode"),
    "execute_command": ("command", "requires_approval"),
    "ask_followup_question": ("question", "options"),
    "attempt_completion": ("result",),
    "todo_read": (),
    "call_tool": ("name", "arguments"),
}


def shapes() -> dict[str, ToolShape]:
    """The tools of `PARAMS`, and `Write` as another tag of one of them."""
    made = {n: ToolShape(name=n, params=frozenset(p)) for n, p in PARAMS.items()}
    made["Write"] = ToolShape(name="write_to_file", params=frozenset({"file_path", "content"}))
    return made


def ids() -> Callable[[], str]:
    numbers = iter(range(1_000_000))
    return lambda: f"call{next(numbers):05}"


@dataclass
class Heard:
    """What a decoder made of a reply."""

    reply: Reply
    deltas: list[Delta]
    halted: bool

    @property
    def said(self) -> list[tuple[str, dict[str, object]]]:
        """The calls that may run."""
        return [(c.name, c.args) for c in self.reply.calls if c.error is None]

    @property
    def errors(self) -> list[str]:
        return [c.error.code for c in self.reply.calls if c.error is not None]

    @property
    def message(self) -> str:
        """The message of the only refused call."""
        (error,) = (c.error for c in self.reply.calls if c.error is not None)
        return error.message


def merged(deltas: Iterable[Delta]) -> list[Delta]:
    """The deltas with neighbouring pieces of the same thing joined."""
    out: list[Delta] = []
    for (kind, call_id, carries), group in groupby(
        deltas, key=lambda d: (d.kind, d.call_id, bool(d.text))
    ):
        if carries:
            out.append(Delta(kind=kind, text="".join(d.text for d in group), call_id=call_id))
        else:
            out.extend(group)
    return out


def hear(decoder: Decoder, chunks: Iterable[Chunk], *, cut: bool = False) -> Heard:
    deltas: list[Delta] = []
    for chunk in chunks:
        deltas += decoder.feed(chunk)
    halted = decoder.halted
    return Heard(reply=decoder.finish(cut=cut), deltas=merged(deltas), halted=halted)


def pieces(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


def read(text: str, *, size: int = 10**9, cut: bool = False) -> Heard:
    """What the xml protocol makes of a whole text, in pieces of `size` characters."""
    decoder = XmlDialect().decoder(shapes(), ids())
    return hear(decoder, map(TextChunk, pieces(text, size)), cut=cut)


def write(content: str, *, path: str = "out.txt") -> str:
    """A call that writes `content` to a file, as a model writes it."""
    return (
        f"<write_to_file>\n<path>{path}</path>\n<content>\n{content}\n</content>\n</write_to_file>"
    )


@dataclass
class Call:
    name: str
    args: dict[str, str] = field(default_factory=dict)


@dataclass
class Think:
    text: str


class Voice:
    """Says the same script in one protocol."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def chunks(self, script: Sequence[str | Call | Think], size: int = 7) -> Iterator[Chunk]:
        index = 0
        for item in script:
            if isinstance(item, Think):
                yield from (ThinkingChunk(piece) for piece in pieces(item.text, size))
            elif isinstance(item, str):
                yield from (TextChunk(piece) for piece in pieces(item, size))
            elif self.dialect.name == "xml":
                written = "\n" + self.dialect.example(item.name, item.args) + "\n"
                yield from (TextChunk(piece) for piece in pieces(written, size))
            else:
                yield CallChunk(index=index, provider_id=f"toolu_{index}", name=item.name)
                for piece in pieces(json.dumps(item.args), size):
                    yield CallChunk(index=index, args=piece)
                index += 1

    def says(self, *script: str | Call | Think, size: int = 7, cut: bool = False) -> Heard:
        """Speak, and hear the protocol's decoder. A cut script ends without a finish."""
        decoder = self.dialect.decoder(shapes(), ids())
        chunks = list(self.chunks(script, size))
        if not cut:
            chunks.append(FinishChunk("stop"))
        return hear(decoder, chunks, cut=cut)


def doc(name: str = "write_to_file", **changes: object) -> ToolDoc:
    """A tool's description with every kind of parameter."""
    values: dict[str, object] = {
        "name": name,
        "summary": "Write a file.",
        "description": "Write a whole file; its folders are made.",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the project."},
                "content": {"type": "string", "description": "The whole new text."},
                "mode": {"enum": ["write", "append"], "default": "write"},
                "line": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
                "force": {"type": "boolean", "default": False, "description": "Overwrite."},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["path", "content"],
        },
        "examples": (ToolExample("A short file", {"path": "a.txt", "content": "one\ntwo"}),),
        "guideline": "Prefer small edits for small changes.",
        "core": True,
    }
    return ToolDoc(**(values | changes))  # type: ignore[arg-type]
