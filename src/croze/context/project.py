"""The projection: what the model sees, as a pure fold over the session's log.

Everything said from the user's side (requests, facts, tool results) gathers in an open group, which
becomes one user message when the next request is sent; a reply becomes one assistant message. So a
message that was once sent never changes, and request n's messages are a prefix of request n+1's until a
`Compacted` or `Undone` event says otherwise. The only other exception is a reply that the model continues by
itself (`ModelSaid.joined`): it stands once, whole; what was said meanwhile waits below it.
"""

import hashlib
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from croze.types.context import Context, Message, Section
from croze.types.event import (
    Body,
    Compacted,
    Event,
    FactAdded,
    ModelCalled,
    ModelSaid,
    ToolReturned,
    Undone,
    UserSaid,
)
from croze.types.parts import CallResult, Part, Text, Thinking, ToolCall
from croze.types.tool import ToolDoc

HINT_TOKENS = 150
"""Results above this many tokens carry their message id, so that the model can let go of them."""

SUMMARY_HEADING = "[History Summary]"

_encoder = msgspec.json.Encoder(order="deterministic")


def hint(text: str, message_id: str) -> str:
    """`text` with the first eight characters of its message's id at the end."""
    return f"{text}\n\n[Hint: message_id: {message_id[:8]}]"


class _Said(Struct, frozen=True):
    """One entry of the open group; `result` marks a tool's, `fact` what a section accounts for."""

    seq: int
    parts: tuple[Part, ...]
    tokens: int
    result: bool = False
    fact: bool = False


class Projection:
    """The fold. `feed` takes the log's events in order; `context` gives what the model sees now.

    Cost: `feed` is proportional to the event, `context` to copying a list of references; a `Compacted`
    or `Undone` event folds the log anew.
    """

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._hidden: set[str] = set()
        self._replaced: dict[str, str] = {}
        self._summary = ""
        self._undone: Undone | None = None
        self._start()

    def _start(self) -> None:
        self._messages: list[Message] = []
        self._facts: list[Section] = []
        self._history = 0
        self._rolling = hashlib.sha256()
        self._entries: list[_Said] = []
        self._open: Message | None = None
        self._last_said = ""
        self._newest = 0
        self._asked = False
        self._summary_due = bool(self._summary)

    @property
    def messages(self) -> Sequence[Message]:
        """The messages that have been sent, without the open group."""
        return self._messages

    def feed(self, event: Event) -> None:
        """Fold one more event in; events come in the order of their sequence numbers."""
        self._events.append(event)
        match event.body:
            case Compacted() as body:
                self._compact(body)
                self._fold_anew()
            case Undone() as body:
                self._undone = body
                self._hidden, self._replaced, self._summary = set(), {}, ""
                for earlier in self._events:
                    if isinstance(earlier.body, Compacted) and not body.hides(earlier.seq):
                        self._compact(earlier.body)
                self._fold_anew()
            case _:
                self._fold(event.seq, event.body)

    def _compact(self, body: Compacted) -> None:
        self._hidden.update(body.hidden)
        self._replaced.update(body.replaced)
        self._summary = body.summary or self._summary

    def _fold_anew(self) -> None:
        self._start()
        for event in self._events:
            if self._undone is None or not self._undone.hides(event.seq):
                self._fold(event.seq, event.body)

    def _fold(self, seq: int, body: Body) -> None:
        match body:
            case UserSaid():
                self._user_said(seq, body)
            case FactAdded():
                self._fact(seq, body)
            case ToolReturned():
                self._returned(seq, body)
            case ModelCalled(purpose="main"):
                self._asked = True
                if not body.prefill:
                    self._close_group(body.history)
            case ModelSaid(purpose="main"):
                self._model_said(seq, body)
            case Undone() if body.text:
                self._add(_Said(seq, (Text(text=body.text),), body.tokens))
            case _:
                pass

    def _user_said(self, seq: int, body: UserSaid) -> None:
        if body.message_id in self._hidden:
            return
        stub = self._replaced.get(body.message_id)
        if stub is not None:
            self._add(_Said(seq, (Text(text=stub),), body.tokens))
            return
        parts = list(body.parts)
        for i in range(len(parts) - 1, -1, -1):
            part = parts[i]
            if isinstance(part, Text):
                parts[i] = Text(text=hint(part.text, body.message_id))
                break
        self._add(_Said(seq, tuple(parts), body.tokens))

    def _fact(self, seq: int, body: FactAdded) -> None:
        if body.message_id in self._hidden:
            return
        text = self._replaced.get(body.message_id, body.text)
        if body.reply and not any(entry.result for entry in self._entries):
            # A pair goes above what is not yet sent: a request never ends with the model's words.
            pair = (Text(text=text),), (Text(text=body.reply),)
            self._append(Message(seq, seq, "user", pair[0], "documentation", body.tokens), 0)
            self._append(Message(seq, seq, "assistant", pair[1], "documentation", 0), 0)
        else:
            self._add(_Said(seq, (Text(text=text),), body.tokens, fact=True))
        self._facts.append(
            Section(
                key=body.key,
                layer=body.layer,
                place=body.place,
                tokens=body.tokens,
                reason=body.reason,
            )
        )

    def _returned(self, seq: int, body: ToolReturned) -> None:
        stub = self._replaced.get(body.call_id)
        text = body.text if stub is None else stub
        if body.tokens > HINT_TOKENS and stub is None:
            text = hint(text, body.message_id)
        result = CallResult(
            call_id=body.call_id, name=body.name, ok=body.ok, message=body.message, text=text
        )
        self._add(_Said(seq, (result,), body.tokens, result=True))

    def _model_said(self, seq: int, body: ModelSaid) -> None:
        has_call = any(isinstance(part, ToolCall) for part in body.parts)
        parts = tuple(
            part
            for part in body.parts
            if not isinstance(part, Thinking) or (part.opaque is not None and has_call)
        )
        if not self._asked:  # a reply that was imported: it answers what stands before it
            self._close_group(seq)
        self._asked = False
        if body.message_id in self._hidden and not has_call:
            return
        if body.joined and body.continues and self._last_said == body.continues:
            old = self._messages.pop()
            self._history -= old.tokens
        self._last_said = ""
        if any(not isinstance(part, Text) or part.text.strip() for part in parts):
            message = Message(seq, seq, "assistant", parts, "history", body.tokens)
            self._append(message, message.tokens)
            self._last_said = body.message_id

    def _add(self, entry: _Said) -> None:
        if self._summary_due:
            self._summary_due = False
            text = self._summary
            if not text.startswith(SUMMARY_HEADING):
                text = f"{SUMMARY_HEADING}\n{text}"
            self._entries.append(_Said(entry.seq, (Text(text=text),), 0))
        self._entries.append(entry)
        self._open = None

    def _group(self) -> Message | None:
        """The open group as a message: results first, since they answer the reply above them."""
        entries = self._entries
        if self._open is None and entries:
            results = [part for entry in entries if entry.result for part in entry.parts]
            said = [part for entry in entries if not entry.result for part in entry.parts]
            # What was said while a reply came stands below it and counts from there.
            self._open = Message(
                key=max(entries[0].seq, self._newest),
                last=max(entries[-1].seq, self._newest),
                role="user",
                parts=(*results, *said),
                layer="history",
                tokens=sum(entry.tokens for entry in entries),
            )
        return self._open

    def _open_facts(self) -> int:
        return sum(entry.tokens for entry in self._entries if entry.fact)

    def _close_group(self, history: int) -> None:
        """Close what the request holds: the log up to `history`. What another task added between the
        making of the request and its event stays open."""
        later = [entry for entry in self._entries if entry.seq > history]
        if later:
            self._entries = [entry for entry in self._entries if entry.seq <= history]
            self._open = None
        message = self._group()
        if message is not None:
            self._append(message, message.tokens - self._open_facts())
        self._entries = later
        self._open = None

    def _append(self, message: Message, counted: int) -> None:
        """`counted`: the tokens that no fact's own section accounts for."""
        self._messages.append(message)
        self._newest = message.last
        self._open = None
        self._history += counted
        self._rolling.update(_encoder.encode((message.role, message.parts)))

    def context(
        self,
        system: str,
        tools: tuple[ToolDoc, ...],
        head: Sequence[Section],
        *,
        prefill: bool = False,
    ) -> Context:
        """What the model sees if it is asked now. `head` accounts for `system` and `tools`; with
        `prefill` the model goes on with its last reply, so nothing may stand below that."""
        group = None if prefill else self._group()
        current = 0
        messages = tuple(self._messages)
        if group is not None:
            messages = (*messages, group)
            current = group.tokens - self._open_facts()
        sections = [*head, *self._facts]
        if self._history > 0:
            sections.append(
                Section("transcript", "history", "history", self._history, "what was said and done")
            )
        if current:
            sections.append(
                Section("current", "current", "tail", current, "what is new in this request")
            )
        return Context(
            system=system,
            messages=messages,
            tools=tools,
            sections=tuple(sections),
            tokens=sum(section.tokens for section in sections),
        )

    def rolling(self, *, prefill: bool = False) -> str:
        """A digest of the messages sent so far and (but for `prefill`) the open group, in hex."""
        digest = self._rolling.copy()
        group = None if prefill else self._group()
        if group is not None:
            digest.update(_encoder.encode((group.role, group.parts)))
        return digest.hexdigest()


def project(
    events: Iterable[Event], system: str, tools: tuple[ToolDoc, ...], head: Sequence[Section]
) -> Context:
    """The context of a log, from scratch; equal to feeding a `Projection` event by event."""
    projection = Projection()
    for event in events:
        projection.feed(event)
    return projection.context(system, tools, head)
