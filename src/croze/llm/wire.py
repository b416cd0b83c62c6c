"""What the wires share: messages encoded once, bodies put together, addresses read."""

import ipaddress
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from croze.types.context import Message, Prompt
from croze.types.parts import Text

if TYPE_CHECKING:
    from croze.types.tool import ToolDoc

EMPTY_TEXT = "(no text)"
"""Stands for a message without content, which providers refuse."""

_encoder = msgspec.json.Encoder(order="sorted")


def to_json(value: Any) -> bytes:
    """Deterministic JSON: keys sorted, no spaces."""
    return _encoder.encode(value)


class _Ref(weakref.ref[Message]):
    __slots__ = ("key",)
    key: int


class Fragments:
    """Each message's encoded form, kept as long as the message lives, by its identity."""

    def __init__(self, encode: Callable[[Message], bytes]) -> None:
        self._encode = encode
        self._bytes: dict[int, bytes] = {}
        self._refs: dict[int, _Ref] = {}

    def all(self, messages: Sequence[Message]) -> list[bytes]:
        known = self._bytes
        return [known.get(id(m)) or self._add(m) for m in messages]

    def _add(self, message: Message) -> bytes:
        fragment = self._encode(message)
        key = id(message)
        ref = _Ref(message, self._drop)
        ref.key = key
        self._bytes[key] = fragment
        self._refs[key] = ref
        return fragment

    def _drop(self, ref: weakref.ref[Message]) -> None:
        assert isinstance(ref, _Ref)
        if self._refs.get(ref.key) is ref:
            del self._refs[ref.key]
            del self._bytes[ref.key]


def assemble(head: bytes, fragments: list[bytes]) -> bytes:
    """A body of its head, which ends in the list of messages, and the messages, each with a comma
    before it: copied once, because a second buffer of this size costs more than all the rest."""
    if fragments and head.endswith(b"["):
        fragments[0] = fragments[0][1:]
    return b"".join([head, *fragments, b"]}"])


class HeadCache:
    """The part of a body before its messages, encoded again only when something of it changes."""

    def __init__(self, encode: Callable[[Prompt], bytes]) -> None:
        self._encode = encode
        self._system = ""
        self._tools: tuple[ToolDoc, ...] = ()
        self._rest: tuple[bool, int | None] = (False, None)
        self._head: bytes | None = None

    def get(self, prompt: Prompt) -> bytes:
        rest = (prompt.prefill, prompt.max_output)
        if (
            self._head is None
            or rest != self._rest
            or prompt.system != self._system
            or len(prompt.tools) != len(self._tools)
            or any(a is not b for a, b in zip(prompt.tools, self._tools, strict=True))
        ):
            self._head = self._encode(prompt)
            self._system, self._tools, self._rest = prompt.system, prompt.tools, rest
        return self._head


def joined_text(texts: Sequence[str]) -> str:
    """Pieces of a user's message as one text, each on lines of its own."""
    out = ""
    for text in texts:
        out += ("\n" if out and not out.endswith("\n") else "") + text
    return out


def verbatim_text(message: Message) -> str:
    """An assistant's text as the model wrote it."""
    return "".join(p.text for p in message.parts if isinstance(p, Text))


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def address_of(url: str) -> str:
    """Scheme, host and port of a URL: what may be shown of it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{(parts.netloc or '?').rpartition('@')[2]}"
