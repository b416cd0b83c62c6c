"""Another program's conversation as events: what each of its messages is in the log, and how it is told
back."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from croze.context.kinds import kind_of, path_of
from croze.context.ledger import Entry, Ledger
from croze.context.shape import CALL_TOKENS
from croze.context.shorten import digest_of
from croze.text.tokens import estimate
from croze.types.event import (
    Body,
    Event,
    FactAdded,
    FilesChanged,
    ModelCalled,
    ModelSaid,
    ToolReturned,
    UserSaid,
)
from croze.types.parts import Text, ToolCall
from croze.types.tool import FileChange

ROLES = ("system", "user", "assistant", "tool")
IMAGE_TOKENS = 1_000
"""What a part that is no text counts for."""

_FAILED = re.compile(
    r"\A\s*(?:error\b|traceback \(most recent|fatal:|<tool_use_error>|failed\b)"
    r"|(?:exit|return) ?code[^\w\n]{0,6}(?:is |was )?[1-9]",
    re.IGNORECASE,
)
_OLD = ("old_string", "old_str", "search", "old_text")
_NEW = ("new_string", "new_str", "content", "contents", "file_text", "replace", "new_text")

_encoder = msgspec.json.Encoder()


class Given(Struct):
    """A message as it comes in. `ok` is false (or `is_error` true) where a tool's result is a failure."""

    id: int | str
    role: str
    content: str | list[Any] | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | int | None = None
    name: str | None = None
    ok: bool | None = None
    is_error: bool | None = None


@dataclass(slots=True, eq=False)
class Slot:
    """A message and its entry. `unchanged` is how it is told where nothing of it changed, `at` its
    place among those that stand (-1: gone); `given_calls` are the calls as they came, with our ids."""

    id: int | str
    entry: Entry
    unchanged: bytes
    at: int = -1
    text: str = ""
    given_calls: tuple[tuple[str, dict[str, Any]], ...] = ()

    def rewritten(self, text: str) -> bytes:
        return _encoder.encode({"id": self.id, "content": text})

    def rewritten_reply(self) -> bytes:
        """A reply of which calls went or arguments were cut; empty where nothing is left of it."""
        entry = self.entry
        calls = [
            {**call, "args": {**call["args"], **entry.cut.get(ours, {})}}
            for ours, call in self.given_calls
            if ours not in entry.gone
        ]
        text = self.text if entry.stub is None else entry.stub
        if not calls and not text.strip():
            return b""
        return _encoder.encode({"id": self.id, "content": text, "tool_calls": calls})


class Conversation:
    """The log that a conversation makes, its ledger, and its messages' slots. `system_tokens` are those
    of its system messages."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.ledger = Ledger()
        self.digests: dict[str, str] = {}
        self.system_tokens = 0
        self._slots: dict[str, Slot] = {}
        self._results: dict[str, Slot] = {}
        self._replies: dict[str, Slot] = {}
        self._ids: set[int | str] = set()
        self._calls: dict[str, list[str]] = {}
        self._waiting = False
        self._step = 0

    def take(self, new: Sequence[Given]) -> list[Slot]:
        """Take messages in, all or none. Raises ValueError that says which one can't be, and why."""
        self._check(new)
        return [self._message(given) for given in new]

    def asked(self) -> None:
        """A request with everything up to here is being sent."""
        self._step += 1
        self._waiting = True
        self.append(
            ModelCalled(
                step=self._step,
                model="",
                head="",
                history=len(self.events),
                body="",
                rolling="",
                encoder=0,
                tokens=self.ledger.tokens,
                size=0,
            )
        )

    def append(self, body: Body) -> Event:
        seq = len(self.events) + 1
        event = Event("", seq, seq, body)
        self.events.append(event)
        self.ledger.feed(event)
        return event

    def slot_of(self, key: str) -> Slot | None:
        """The message of an id or of the result of a call."""
        return self._results.get(key) or self._slots.get(key)

    def bound_to(self, slot: Slot) -> list[Slot]:
        """The messages that change with this one: a result's reply, a reply's results."""
        if slot.entry.kind == "reply":
            found = [self._results.get(ours) for ours, _ in slot.given_calls]
        else:
            found = [self._replies.get(slot.entry.call_id)]
        return [bound for bound in found if bound is not None]

    def reply_with(self, call_id: str) -> Slot | None:
        return self._replies.get(call_id)

    def _check(self, new: Sequence[Given]) -> None:
        ids: set[int | str] = set()
        for given in new:
            if given.role not in ROLES:
                allowed = ", ".join(ROLES)
                raise ValueError(f"message {given.id}: role {given.role!r} is none of {allowed}")
            if given.id in self._ids or given.id in ids:
                raise ValueError(f"message {given.id}: there is one with this id already")
            ids.add(given.id)
            for call in given.tool_calls or ():
                if not isinstance(_named(call), str):
                    raise ValueError(f"message {given.id}: a tool call without a name")

    def _message(self, given: Given) -> Slot:
        self._ids.add(given.id)
        message_id = f"{len(self._ids):08x}"
        text, tokens = _content(given.content)
        calls: tuple[tuple[str, dict[str, Any]], ...] = ()
        match given.role:
            case "assistant":
                calls = self._said(given, message_id, text, tokens)
            case "tool" if waiting := self._calls.get(str(given.tool_call_id)):
                self._returned(given, message_id, waiting.pop(0), text, tokens)
            case "system":  # part of the head: no policy sees it
                self.system_tokens += tokens
            case "user":
                self.append(UserSaid(message_id, (Text(text),), tokens=tokens))
            case _:  # a result without its call: whatever it is, it parts from nothing
                self.append(FactAdded("result", message_id, text, layer="history", tokens=tokens))
        entry = self.ledger.by_id.get(message_id) or self._outside(message_id)
        unchanged = _encoder.encode({"id": given.id})
        slot = Slot(given.id, entry, unchanged, text=text, given_calls=calls)
        self._slots[message_id] = slot
        if entry.kind == "result":
            self._results[entry.call_id] = slot
        for ours, _ in calls:
            self._replies[ours] = slot
        return slot

    def _outside(self, message_id: str) -> Entry:
        """An entry that no ledger has, at this place of the log."""
        return Entry(len(self.events), self._step, "fact", message_id, 0, 0, pinned=True)

    def _said(
        self, given: Given, message_id: str, text: str, tokens: int
    ) -> tuple[tuple[str, dict[str, Any]], ...]:
        if not self._waiting:
            self.asked()
        self._waiting = False
        self._calls = {}
        parts: list[Text | ToolCall] = [Text(text)] if text else []
        calls = []
        for number, raw in enumerate(given.tool_calls or ()):
            ours = f"{message_id}-{number}"
            args = _arguments(raw)
            name = str(_named(raw))
            source = _encoder.encode(args).decode()
            tokens += estimate(source) + CALL_TOKENS
            parts.append(ToolCall(ours, name, args, raw=source))
            external = raw.get("id", ours)
            self._calls.setdefault(str(external), []).append(ours)
            calls.append((ours, {"id": external, "name": name, "args": args}))
        self.append(ModelSaid(message_id, self._step, "", tuple(parts), tokens=tokens))
        return tuple(calls)

    def _returned(
        self, given: Given, message_id: str, call_id: str, text: str, tokens: int
    ) -> None:
        made = self.ledger.call_of(call_id)
        name, args = (made[1].name, made[1].args) if made else (given.name or "", {})
        ok = given.ok if given.ok is not None else not (given.is_error or _failed(text))
        digest = digest_of(name, args, text) if isinstance(given.content, str) else ""
        digest = digest if estimate(digest) < tokens else ""
        self.digests[call_id] = digest
        observed = {}
        kind = kind_of(name, args)
        if ok and kind == "read" and (path := path_of(args)):
            observed[path] = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        if ok and kind == "edit" and (path := path_of(args)):
            self.append(FilesChanged(call_id, (_change(path, args),)))
        self.append(
            ToolReturned(
                call_id,
                message_id,
                name,
                ok,
                text=text,
                observed=observed,
                digest=digest,
                tokens=tokens,
            )
        )


def _content(content: str | list[Any] | None) -> tuple[str, int]:
    """The text of a message's content, and its tokens with what isn't text."""
    if content is None or isinstance(content, str):
        return content or "", estimate(content or "")
    texts: list[str] = []
    others = 0
    for part in content:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            texts.append(text)
        else:
            others += 1
    whole = "\n".join(texts)
    return whole, estimate(whole) + IMAGE_TOKENS * others


def _named(call: Mapping[str, Any]) -> Any:
    function = call.get("function")
    return call.get("name") or (function.get("name") if isinstance(function, dict) else None)


def _arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    nested = function.get("arguments") if isinstance(function, dict) else None
    args = call.get("args", call.get("arguments", nested))
    if isinstance(args, str):
        try:
            args = msgspec.json.decode(args)
        except msgspec.DecodeError:
            return {"input": args}
    if isinstance(args, dict):
        return args
    return {} if args is None else {"input": args}


def _failed(text: str) -> bool:
    return bool(_FAILED.search(text[:400]) or _FAILED.search(f"\n{text[-200:]}", 1))


def _change(path: str, args: Mapping[str, Any]) -> FileChange:
    """What an edit of another agent changed, as far as its arguments say so."""

    def lines(names: Sequence[str]) -> int:
        return sum(
            len(value.splitlines()) for name in names if isinstance(value := args.get(name), str)
        )

    return FileChange(path, "modified", added=lines(_NEW), removed=lines(_OLD))
