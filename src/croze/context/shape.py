"""What the compactions of a log have made of it so far: which entries are gone, shortened or summarised,
and where the first byte changes that the newest of them touches."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct, field

from croze.text.tokens import estimate
from croze.types.event import Compacted, Event, FactAdded, ModelSaid, ToolReturned, UserSaid
from croze.types.parts import Text, ToolCall

ENVIRONMENT = "environment"
"""The key of the fact that no compaction takes: date, system and git state of the first message."""

CALL_TOKENS = 8
"""What a call costs beside its source."""


def stays(body: FactAdded) -> bool:
    """Whether a fact outlives every compaction: documentation, and the environment."""
    return body.layer == "documentation" or body.key == ENVIRONMENT


def reply_tokens(
    body: ModelSaid,
    gone: frozenset[str] | set[str],
    cut: Mapping[str, Mapping[str, str]],
    stub: str | None,
) -> int:
    """An estimate of a reply as it stands: without its `gone` calls, with the `cut` arguments of the
    others, and with `stub` in place of its words."""
    calls = [part for part in body.parts if isinstance(part, ToolCall)]
    words = any(isinstance(part, Text) and part.text.strip() for part in body.parts)
    if not (stub or (words and stub is None)) and all(call.id in gone for call in calls):
        return 0  # nothing is left of it
    tokens = body.tokens
    if stub is not None:
        old = sum(estimate(part.text) for part in body.parts if isinstance(part, Text))
        tokens += estimate(stub) - old
    for call in calls:
        if call.id in gone:
            tokens -= estimate(call.raw) + CALL_TOKENS
            continue
        for name, text in cut.get(call.id, {}).items():
            tokens += estimate(text) - estimate(argument_text(call, name))
    return max(0, tokens)


def argument_text(call: ToolCall, name: str) -> str:
    """An argument of a call as text."""
    value = call.args.get(name, "")
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def cut_call(call: ToolCall, cut: Mapping[str, str]) -> ToolCall:
    """The call with its arguments as they stand now; its source is rendered from them anew."""
    args = {name: cut.get(name, value) for name, value in call.args.items()}
    return ToolCall(
        id=call.id, name=call.name, args=args, error=call.error, provider_id=call.provider_id
    )


class Places(Struct):
    """Where the messages and calls of a log stand, as indexes into its events."""

    messages: dict[str, int] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)
    tails: list[int] = field(default_factory=list)
    upto: int = 0

    def follow(self, events: Sequence[Event]) -> None:
        """Take in the events that are new since the last time."""
        for index in range(self.upto, len(events)):
            match events[index].body:
                case UserSaid() as body:
                    self.messages[body.message_id] = index
                case FactAdded() as body:
                    self.messages[body.message_id] = index
                    if body.place == "tail":
                        self.tails.append(index)
                case ModelSaid(purpose="main") as body:
                    self.messages[body.message_id] = index
                    for part in body.parts:
                        if isinstance(part, ToolCall):
                            self.calls[part.id] = index
                case ToolReturned() as body:
                    self.messages[body.message_id] = index
                    self.results[body.call_id] = index
                case _:
                    pass
        self.upto = len(events)


class Shape(Struct):
    """The fold over `Compacted` events.

    `gone` are calls that no longer stand, nor do their results; `tails` is the seq up to which facts
    of the tail are gone; `pinned` holds, beside the messages that a summary left standing, the reply and
    the other results that belong to each of them.
    """

    hidden: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    replaced: dict[str, str] = field(default_factory=dict)
    digested: set[str] = field(default_factory=set)
    cut: dict[str, dict[str, str]] = field(default_factory=dict)
    tails: int = 0
    until: int = 0
    pinned: frozenset[str] = frozenset()
    summary: str = ""
    receipt: str = ""

    def take(self, seq: int, body: Compacted, events: Sequence[Event], places: Places) -> int:
        """Fold one compaction in; gives the index of the first event whose bytes it changes (that of
        its own event where there is none)."""
        first = places.upto - 1
        for index in places.tails:
            if self.tails < events[index].seq < seq:
                first = min(first, index)
        places.tails = [index for index in places.tails if events[index].seq >= seq]
        self.tails = seq
        for message_id in body.hidden:
            self.hidden.add(message_id)
            first = min(first, self._hide(message_id, events, places, first))
        for key, text in body.replaced.items():
            at = places.results.get(key, places.messages.get(key))
            if at is None:
                continue
            first = min(first, at)
            found = events[at].body
            name = found.call_id if isinstance(found, ToolReturned) else key
            self.replaced[name] = text
            self.digested.discard(name)
        for call_id in body.digested:
            self.digested.add(call_id)
            self.replaced.pop(call_id, None)
            first = min(first, places.results.get(call_id, first))
        for call_id, texts in body.cut.items():
            self.cut[call_id] = {**self.cut.get(call_id, {}), **texts}
            first = min(first, places.calls.get(call_id, first))
        if body.summary:
            taken = {  # what an earlier summary took, a later one doesn't bring back
                message_id
                for message_id, at in places.messages.items()
                if events[at].seq <= self.until and message_id not in self.pinned
            }
            self.until = max(self.until, body.until)
            self.pinned = _whole(body.pinned, events, places) - taken
            self.summary, self.receipt = body.summary, body.receipt
            first = 0
        return first

    def _hide(self, message_id: str, events: Sequence[Event], places: Places, first: int) -> int:
        """A call goes with its result, and the other way round."""
        index = places.messages.get(message_id)
        if index is None:
            return first
        found = events[index].body
        if isinstance(found, ModelSaid):
            self.gone.update(part.id for part in found.parts if isinstance(part, ToolCall))
        elif isinstance(found, ToolReturned):
            self.gone.add(found.call_id)
            index = min(index, places.calls.get(found.call_id, index))
        return index


def _whole(pinned: Sequence[str], events: Sequence[Event], places: Places) -> frozenset[str]:
    """These messages with all that can't part from them: a result's reply, a reply's results."""
    whole = set(pinned)
    for message_id in pinned:
        index = places.messages.get(message_id)
        if index is None:
            continue
        body = events[index].body
        if isinstance(body, ToolReturned):
            index = places.calls.get(body.call_id)
            if index is None:
                continue
            body = events[index].body
        if isinstance(body, ModelSaid):
            whole.add(body.message_id)
            for part in body.parts:
                at = places.results.get(part.id) if isinstance(part, ToolCall) else None
                result = events[at].body if at is not None else None
                if isinstance(result, ToolReturned):
                    whole.add(result.message_id)
    return frozenset(whole)
