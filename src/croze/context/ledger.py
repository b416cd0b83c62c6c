"""The ledger: a fold of the log that knows of every entry of the context what it is, where it stands and
what it costs now. Policies decide by it, reports read it."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

from msgspec import Struct, field

from croze.context.shape import reply_tokens, stays
from croze.context.standing import summary_text
from croze.text.tokens import estimate
from croze.types.event import (
    Compacted,
    Event,
    FactAdded,
    HeadSet,
    MessagesMarked,
    ModelCalled,
    ModelSaid,
    Notice,
    ToolReturned,
    Undone,
    UserSaid,
)
from croze.types.parts import Text, Thinking, ToolCall

Kind = Literal["user", "fact", "reply", "result"]
Standing = Literal["full", "digested", "replaced", "hidden", "summarised"]


class Entry(Struct):
    """One entry of the context.

    `id` is its message id; of a result `call_id` names the call and `name` the tool, of a reply `calls`
    its calls. `step` is the step in which it arose. `tokens` is the estimate as it stands now (0 where it
    is gone), `full` as it first stood. `pinned` marks what no policy may take: documentation and the
    environment; `tail` what the next compaction takes. `cut` maps a call of the reply to its arguments
    that have been shortened, `gone` holds its calls that went with their results, `stub` stands for its
    words. `event` is the log's event of replies and results.
    """

    seq: int
    step: int
    kind: Kind
    id: str
    tokens: int
    full: int
    standing: Standing = "full"
    call_id: str = ""
    name: str = ""
    ok: bool = True
    args: dict[str, Any] = field(default_factory=dict)
    calls: tuple[ToolCall, ...] = ()
    key: str = ""
    pinned: bool = False
    tail: bool = False
    cut: dict[str, dict[str, str]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    stub: str | None = None
    event: Event | None = None


class Ledger:
    """The fold. `feed` takes the log's events in order and costs what the event holds; a `Compacted`
    costs what it changes, an `Undone` folds the log anew.

    `entries` stand in the order of the log; `tokens` is their sum and that of the summary (`summary`
    tokens, for the log up to `until`). `held` of them belong to what no policy takes: the user's
    messages and what is pinned. `marked` are the message ids that the model has let go of, `pending`
    those of them that stand and may go. `last` is the newest main request's event, `sent` the tokens that
    stood when it was made, `asked` the steps after which the user said something. `cold` is true from a
    change of head or model to the next request. `tails` are the facts that go with the next compaction. `stuck` is what the context had when a policy last said
    that it can't make it smaller.
    """

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._undone: Undone | None = None
        self._start()

    def _start(self) -> None:
        self.entries: list[Entry] = []
        self.by_id: dict[str, Entry] = {}
        self.by_call: dict[str, Entry] = {}
        self.marked: tuple[str, ...] = ()
        self.pending: dict[str, Entry] = {}
        self.compactions: list[Event] = []
        self.last: Event | None = None
        self.newest: Event | None = None
        self.step = 0
        self.tokens = 0
        self.held = 0
        self.sent = 0
        self.summary = 0
        self.until = 0
        self.stuck = 0
        self.cold = False
        self.asked: list[int] = []
        self._head = ("", "")
        self.tails: list[Entry] = []
        self._calls: dict[str, tuple[Entry, ToolCall]] = {}
        self._waiting: set[str] = set()

    def feed(self, event: Event) -> None:
        """Fold one more event in; events come in the order of their sequence numbers."""
        self._events.append(event)
        if isinstance(event.body, Undone):
            self._undone = event.body
            self._start()
            for earlier in self._events:
                if not event.body.hides(earlier.seq):
                    self._fold(earlier)
            return
        self._fold(event)

    def result_of(self, call_id: str) -> Entry | None:
        """The result of a call, None while there is none."""
        return self.by_call.get(call_id)

    def call_of(self, call_id: str) -> tuple[Entry, ToolCall] | None:
        """The reply that made a call, and the call."""
        return self._calls.get(call_id)

    def _fold(self, event: Event) -> None:
        self.newest = event
        match event.body:
            case UserSaid() as body:
                self._add(Entry(event.seq, self.step, "user", body.message_id, body.tokens, 0))
                if not self.asked or self.asked[-1] != self.step:
                    self.asked.append(self.step)
            case FactAdded() as body:
                entry = Entry(event.seq, self.step, "fact", body.message_id, body.tokens, 0)
                entry.key, entry.pinned, entry.tail = body.key, stays(body), body.place == "tail"
                if entry.tail:
                    self.tails.append(entry)
                self._add(entry)
            case ModelCalled(purpose="main") as body:
                self.step, self.last, self.sent = body.step, event, self.tokens
                self.cold = False
                if not body.prefill:
                    self._waiting.clear()
            case ModelSaid(purpose="main") as body:
                self._said(event, body)
            case ToolReturned() as body if body.call_id in self._waiting:  # others aren't sent
                self._waiting.discard(body.call_id)
                entry = Entry(event.seq, self.step, "result", body.message_id, body.tokens, 0)
                entry.call_id, entry.name, entry.ok = body.call_id, body.name, body.ok
                made = self._calls.get(body.call_id)
                entry.args = made[1].args if made is not None else {}
                self.by_call[body.call_id] = entry
                self._add(entry, event)
            case Undone() as body if body.text:
                entry = Entry(event.seq, self.step, "fact", body.undo_id, body.tokens, 0)
                entry.key = "undone"
                self._add(entry)
            case MessagesMarked() as body:
                self.marked = body.ids
                found = (self.by_id.get(message_id) for message_id in body.ids)
                self.pending = {e.id: e for e in found if e is not None and _can_go(e)}
            case HeadSet() as body:
                head = body.head, body.model.name
                self.cold = self.cold or (self._head != head and self.last is not None)
                self._head = head
            case Notice(code="compaction_stuck") as body:
                self.stuck = int(body.params.get("tokens", 0))
            case Compacted() as body:
                self._compact(event, body)
            case _:
                pass

    def _said(self, event: Event, body: ModelSaid) -> None:
        if body.joined and body.continues and body.continues in self.by_id:
            self._set(self.by_id[body.continues], "hidden", 0)
        said = any(
            part.text.strip() if isinstance(part, Text) else not isinstance(part, Thinking)
            for part in body.parts
        )
        tokens = body.tokens if said else 0  # an empty reply leaves no message
        entry = Entry(event.seq, self.step, "reply", body.message_id, tokens, 0)
        entry.calls = tuple(part for part in body.parts if isinstance(part, ToolCall))
        for call in entry.calls:
            self._calls[call.id] = entry, call
        self._waiting = {call.id for call in entry.calls}
        self._add(entry, event)

    def _add(self, entry: Entry, event: Event | None = None) -> None:
        entry.full, entry.event = entry.tokens, event
        self.entries.append(entry)
        self.by_id[entry.id] = entry
        self.tokens += entry.tokens
        if entry.kind == "user" or entry.pinned:
            self.held += entry.tokens

    def _set(self, entry: Entry, standing: Standing, tokens: int) -> None:
        self.tokens += tokens - entry.tokens
        if entry.kind == "user" or entry.pinned:
            self.held += tokens - entry.tokens
        entry.standing, entry.tokens = standing, tokens
        self.pending.pop(entry.id, None)

    def _compact(self, event: Event, body: Compacted) -> None:
        self.compactions.append(event)
        self.stuck = 0
        for entry in self.tails:
            self._set(entry, "hidden", 0)
        self.tails = []
        for message_id in body.hidden:
            self._hide(self.by_id.get(message_id))
        for key, text in body.replaced.items():
            found = self.by_call.get(key) or self.by_id.get(key)
            if found is None or found.standing in ("hidden", "summarised"):
                continue
            if found.kind == "reply":
                found.standing = "replaced"
                self._weigh(found, text)
            else:
                self._set(found, "replaced", estimate(text))
        for call_id in body.digested:
            found = self.by_call.get(call_id)
            if found is None or found.standing in ("hidden", "summarised") or not found.event:
                continue
            returned = found.event.body
            assert isinstance(returned, ToolReturned)
            digest = returned.digest
            self._set(found, "digested", estimate(digest) if digest else returned.tokens)
        for call_id, texts in body.cut.items():
            made = self._calls.get(call_id)
            if made is not None:
                reply = made[0]
                reply.cut[call_id] = {**reply.cut.get(call_id, {}), **texts}
                self._weigh(reply)
        if body.summary:
            self._summarise(body)

    def _hide(self, entry: Entry | None) -> None:
        """A call goes with its result, and the other way round."""
        if entry is None:
            return
        if entry.standing != "summarised":
            self._set(entry, "hidden", 0)
        if entry.kind == "reply":
            for call in entry.calls:
                result = self.by_call.get(call.id)
                if result is not None and result.standing != "summarised":
                    self._set(result, "hidden", 0)
        elif entry.kind == "result" and (made := self._calls.get(entry.call_id)) is not None:
            made[0].gone.add(entry.call_id)
            self._weigh(made[0])

    def _weigh(self, reply: Entry, stub: str | None = None) -> None:
        """Count a reply of which something was taken."""
        if reply.standing in ("hidden", "summarised") or reply.event is None:
            return
        body = reply.event.body
        assert isinstance(body, ModelSaid)
        if stub is not None or reply.stub is not None:
            reply.stub = stub if stub is not None else reply.stub
        self._set(reply, reply.standing, reply_tokens(body, reply.gone, reply.cut, reply.stub))

    def _summarise(self, body: Compacted) -> None:
        self.until = max(self.until, body.until)
        pinned = set(body.pinned)
        tokens = estimate(summary_text(body.summary, body.receipt))
        self.tokens += tokens - self.summary
        self.summary = tokens
        for entry in self.entries:
            if entry.seq > self.until:
                break
            if entry.kind == "reply" and self._is_pinned(entry, pinned):
                pinned.update(e.id for c in entry.calls if (e := self.by_call.get(c.id)))
            elif not (entry.kind == "user" or entry.pinned or entry.id in pinned):
                if entry.standing != "hidden":
                    self._set(entry, "summarised", 0)
                if entry.kind == "reply":  # a result that comes later goes with its call
                    late = (self.by_call.get(call.id) for call in entry.calls)
                    for result in late:
                        if result is not None and result.standing != "hidden":
                            self._set(result, "summarised", 0)

    def _is_pinned(self, reply: Entry, pinned: set[str]) -> bool:
        if reply.id in pinned:
            return True
        results = (self.by_call.get(call.id) for call in reply.calls)
        return any(result is not None and result.id in pinned for result in results)


def _can_go(entry: Entry) -> bool:
    """What the user said and what is pinned stays, whoever lets go of it."""
    return entry.standing in ("full", "digested") and (
        entry.kind == "result" or (entry.kind == "fact" and not entry.pinned)
    )


def ledger_of(events: Iterable[Event], *, before: Callable[[Event], bool] | None = None) -> Ledger:
    """The ledger of a log from scratch, up to the first event for which `before` is true."""
    ledger = Ledger()
    for event in events:
        if before is not None and before(event):
            break
        ledger.feed(event)
    return ledger
