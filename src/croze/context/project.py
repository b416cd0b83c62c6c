"""The projection: what the model sees, as a pure fold over the session's log.

Everything said from the user's side (requests, facts, tool results) gathers in an open group, which
becomes one user message when the next request is sent; a reply becomes one assistant message. So a
message that was once sent never changes, and request n's messages are a prefix of request n+1's until a
`Compacted` or `Undone` event says otherwise. The only other exception is a reply that the model continues by
itself (`ModelSaid.joined`): it stands once, whole; what was said meanwhile waits below it.

A compaction folds anew from the last mark before the first byte that it changes, and hands out the same
message objects wherever a message came out the same.
"""

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from croze.context.shape import Places, Shape, stays
from croze.context.standing import (
    HINT_TOKENS,
    SUMMARY_HEADING,
    Mark,
    Said,
    fact_text,
    facts_of,
    hint,
    no_result,
    reply_parts,
    result_parts,
    same,
    summary_text,
    user_parts,
)
from croze.text.tokens import estimate
from croze.types.context import Context, Message, Section
from croze.types.event import (
    Body,
    Compacted,
    Event,
    FactAdded,
    HeadSet,
    ModelCalled,
    ModelSaid,
    ToolReturned,
    Undone,
    UserSaid,
)
from croze.types.parts import Text, ToolCall
from croze.types.tool import ToolDoc

__all__ = ["HINT_TOKENS", "SUMMARY_HEADING", "Projection", "hint", "project"]

MARK_EVERY = 8
"""Requests between two places from which the fold can be taken up again."""

_encoder = msgspec.json.Encoder(order="deterministic")


class Projection:
    """The fold. `feed` takes the log's events in order; `context` gives what the model sees now.

    Cost: `feed` is proportional to the event, `context` to copying a list of references; a `Compacted`
    costs what stands behind its first change, a summary or an `Undone` event folds the log anew.
    """

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._shape = Shape()
        self._places = Places()
        self._undone: Undone | None = None
        self._system_role = False
        self._old: dict[tuple[int, str, str], Message] = {}
        self._messages: list[Message] = []
        self._start()

    def _start(self) -> None:
        self._messages = []
        self._facts: list[Section] = []
        self._history = 0
        self._rolling = hashlib.sha256()
        self._entries: list[Said] = []
        self._closed: list[Said] = []
        self._open: Message | None = None
        self._last_said = ""
        self._newest = 0
        self._asked = False
        self._waiting: dict[str, tuple[int, str]] = {}  # call → its place in the reply, its tool
        self._marks: list[Mark] = []
        self._requests = 0
        self._summary_due = bool(self._shape.summary)

    @property
    def messages(self) -> Sequence[Message]:
        """The messages that have been sent, without the open group."""
        return self._messages

    def feed(self, event: Event) -> None:
        """Fold one more event in; events come in the order of their sequence numbers."""
        self._events.append(event)
        match event.body:
            case Compacted() as body:
                self._places.follow(self._events)
                first = self._shape.take(event.seq, body, self._events, self._places)
                self._fold_from(0 if body.summary else first)
            case Undone() as body:
                self._undone = body
                self._shape, self._places = Shape(), Places()
                self._places.follow(self._events)
                for earlier in self._events:
                    if isinstance(earlier.body, Compacted) and not body.hides(earlier.seq):
                        self._shape.take(earlier.seq, earlier.body, self._events, self._places)
                self._fold_from(0)
            case HeadSet() as body:
                system_role = body.model.mid_system
                if system_role != self._system_role:
                    self._system_role = system_role
                    if self._shape.summary:
                        self._fold_from(0)
            case _:
                self._fold(len(self._events) - 1, event.seq, event.body)

    def _fold_from(self, first: int) -> None:
        """Fold anew what stands from the event at index `first` on."""
        mark = None
        while self._marks and self._marks[-1].index > first:
            self._marks.pop()
        if first and self._marks:
            mark = self._marks[-1]
        self._old = {
            (message.key, message.role, message.layer): message
            for message in self._messages[mark.messages if mark else 0 :]
        }
        if mark is None:
            self._start()
        else:
            self._take_up(mark)
        for index in range(mark.index if mark else 0, len(self._events)):
            event = self._events[index]
            if self._undone is None or not self._undone.hides(event.seq):
                self._fold(index, event.seq, event.body)
        self._old = {}

    def _take_up(self, mark: Mark) -> None:
        self._marks.pop()
        del self._messages[mark.messages :], self._facts[mark.facts :]
        self._history, self._rolling = mark.history, mark.rolling.copy()
        self._entries, self._closed, self._open = list(mark.entries), [], None
        self._last_said, self._newest, self._asked = mark.last_said, mark.newest, mark.asked
        self._waiting = dict(mark.waiting)
        self._requests = 0

    def _mark(self, index: int) -> None:
        self._requests -= 1
        if self._requests >= 0 or self._summary_due:
            return
        self._requests = MARK_EVERY - 1
        self._marks.append(
            Mark(
                index,
                len(self._messages),
                len(self._facts),
                self._history,
                self._rolling.copy(),
                tuple(self._entries),
                self._last_said,
                self._newest,
                self._asked,
                dict(self._waiting),
            )
        )

    def _fold(self, index: int, seq: int, body: Body) -> None:
        if self._summary_due:
            if seq <= self._shape.until:
                self._fold_summarised(seq, body)
                return
            if self._shape.until:
                self._summarise()
        match body:
            case UserSaid():
                self._user_said(seq, body)
            case FactAdded():
                self._fact(seq, body)
            case ToolReturned():
                self._returned(seq, body)
            case ModelCalled(purpose="main"):
                if not body.prefill:
                    self._mark(index)
                    self._answer(body.history)
                    self._close_group(body.history)
                self._asked = True
            case ModelSaid(purpose="main"):
                self._model_said(seq, body)
            case Undone() if body.text:
                self._add(Said(seq, (Text(text=body.text),), body.tokens))
            case _:
                pass

    def _fold_summarised(self, seq: int, body: Body) -> None:
        """Of what a summary stands for there remain what the user said, what always stays, and what
        was pinned."""
        pinned = self._shape.pinned
        match body:
            case UserSaid():
                self._user_said(seq, body)
            case FactAdded() if stays(body) or body.message_id in pinned:
                self._fact(seq, body)
            case ToolReturned() if body.message_id in pinned:
                self._returned(seq, body)
            case ModelSaid(purpose="main") if body.message_id in pinned:
                self._asked = False
                self._model_said(seq, body)
            case ModelSaid(purpose="main"):
                self._shape.gone.update(p.id for p in body.parts if isinstance(p, ToolCall))
            case _:
                pass

    def _summarise(self) -> None:
        self._summary_due = False
        text = summary_text(self._shape.summary, self._shape.receipt)
        tokens, seq = estimate(text), self._shape.until
        self._facts.append(
            Section("summary", "history", "history", tokens, "what was said and done earlier")
        )
        if not self._system_role:
            self._add(Said(seq, (Text(text=text),), tokens, fact=True))
            return
        self._close_group(seq)
        at = max(seq, self._newest)
        self._append(Message(at, at, "system", (Text(text=text),), "history", tokens), 0)

    def _user_said(self, seq: int, body: UserSaid) -> None:
        standing = user_parts(body, self._shape)
        if standing is not None:
            self._add(Said(seq, *standing))

    def _fact(self, seq: int, body: FactAdded) -> None:
        standing = fact_text(seq, body, self._shape)
        if standing is None:
            return
        text, tokens = standing
        answers = self._waiting or any(entry.result for entry in self._entries)
        if body.reply and not answers:
            # A pair goes above what is not yet sent: a request never ends with the model's words.
            pair = (Text(text=text),), (Text(text=body.reply),)
            self._append(Message(seq, seq, "user", pair[0], "documentation", tokens), 0)
            self._append(Message(seq, seq, "assistant", pair[1], "documentation", 0), 0)
        else:
            self._add(Said(seq, (Text(text=text),), tokens, fact=True))
        self._facts.append(Section(body.key, body.layer, body.place, tokens, body.reason))

    def _returned(self, seq: int, body: ToolReturned) -> None:
        """A result of the last reply's calls; a damaged log's second one, or one of no call, isn't sent."""
        call = self._waiting.pop(body.call_id, None)
        if call is None:
            return
        standing = result_parts(body, self._shape)
        if standing is None:
            return
        result, tokens, images = standing
        self._add(Said(seq, (result,), tokens, result=True, place=call[0]))
        if images:  # below all results: not every wire takes images in them
            label = Text(text=f"[{body.message}]" if body.message else f"[{body.name}]")
            self._add(Said(seq, (label, *images), 0))

    def _answer(self, seq: int) -> None:
        """Say of the last reply's calls that the log has no result of them: no wire takes them alone."""
        for call_id, (place, name) in self._waiting.items():
            part = no_result(call_id, name)
            self._add(Said(seq, (part,), 0, result=True, place=place))
        self._waiting = {}

    def _model_said(self, seq: int, body: ModelSaid) -> None:
        parts, tokens = reply_parts(body, self._shape)
        if not self._asked:  # a reply that was imported: it answers what stands before it
            self._answer(seq)
            self._close_group(seq)
        self._asked = False
        if body.joined and body.continues and self._last_said == body.continues:
            old = self._messages.pop()
            self._history -= old.tokens
        self._last_said = ""
        calls = (part for part in parts if isinstance(part, ToolCall))
        self._waiting = {call.id: (place, call.name) for place, call in enumerate(calls)}
        if any(not isinstance(part, Text) or part.text.strip() for part in parts):
            message = Message(seq, seq, "assistant", parts, "history", tokens)
            self._append(message, message.tokens)
            self._last_said = body.message_id
        elif body.message_id in self._shape.hidden or any(
            isinstance(part, ToolCall) for part in body.parts
        ):
            self._reopen()

    def _reopen(self) -> None:
        """The reply that closed the last group is gone: what follows belongs to that group."""
        if self._closed and self._messages and self._messages[-1].role == "user":
            message = self._messages.pop()
            self._history -= message.tokens - facts_of(self._closed)
            self._entries = [*self._closed, *self._entries]
            self._open, self._closed = None, []

    def _add(self, entry: Said) -> None:
        if self._summary_due and not self._shape.until:
            self._summarise()  # a summary of nothing in particular stands above all
        self._entries.append(entry)
        self._open = None

    def _group(self) -> Message | None:
        """The open group as a message: results first, since they answer the reply above them."""
        entries = self._entries
        if self._open is None and entries:
            answers = sorted((e for e in entries if e.result), key=lambda entry: entry.place)
            results = [part for entry in answers for part in entry.parts]
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

    def _close_group(self, history: int) -> None:
        """Close what the request holds: the log up to `history`. What another task added between the
        making of the request and its event stays open."""
        later = [entry for entry in self._entries if entry.seq > history]
        if later:
            self._entries = [entry for entry in self._entries if entry.seq <= history]
            self._open = None
        message = self._group()
        if message is not None:
            self._append(message, message.tokens - facts_of(self._entries))
        self._closed, self._entries = self._entries, later
        self._open = None

    def _append(self, message: Message, counted: int) -> None:
        """`counted`: the tokens that no fact's own section accounts for."""
        old = self._old.get((message.key, message.role, message.layer)) if self._old else None
        if old is not None and same(old, message):
            message = old
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
            current = group.tokens - facts_of(self._entries)
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
