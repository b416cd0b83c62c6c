"""The policies for other programs' conversations: JSON lines in, the context to send out.

`python -m croze.context` speaks it; docs/context-policies.md has its form. A conversation becomes the same
events, ledger and decisions as in a session; nothing is looked at ahead, nothing outlives its `start`.
"""

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from croze.context.account import Accounting
from croze.context.conversation import Conversation, Given, Slot
from croze.context.policies import (
    Decision,
    Policy,
    State,
    Zone,
    decide,
    high_of,
    overflows,
)
from croze.context.receipt import receipt_of
from croze.context.standing import summary_text
from croze.context.summary import fallback_of
from croze.types.context import budget_for
from croze.types.event import Compacted
from croze.types.model import Prices

WINDOW = 10_000_000
"""Tokens of the window where `start` gives none: more than any conversation has."""


class BadLine(ValueError):
    """A line that can't be used; the text says why. Nothing of it was taken."""


class _Prices(Struct, frozen=True):
    """Any unit: only their relations matter."""

    input: float | None = None
    output: float | None = None
    cached: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None


class _Start(Struct, tag="start", tag_field="type"):
    zone: int | float | None = None
    static_tokens: int | float = 0
    prices: _Prices = _Prices()
    window: int | None = None
    max_output: int = 0


class _Call(Struct, tag="call", tag_field="type"):
    new: list[Given]


class _End(Struct, tag="end", tag_field="type"):
    pass


_decoder = msgspec.json.Decoder(_Start | _Call | _End)
_encoder = msgspec.json.Encoder()
_AUX = b'],"aux":{"input":0,"cached":0,"output":0}}'


class Adapter:
    """Takes the lines one by one, for the policy of that name. `answer` gives the line to send back, None
    where there is none."""

    def __init__(self, policy: str, *, decides: Policy = decide) -> None:
        self._policy = policy
        self._decides = decides
        self._played: Played | None = None

    def answer(self, line: bytes) -> bytes | None:
        """What to say to a line. A line that can't be used is answered with an error and changes
        nothing."""
        if not line.strip():
            return None
        try:
            return self._take(line)
        except BadLine as problem:
            return _encoder.encode({"error": str(problem)})

    def _take(self, line: bytes) -> bytes | None:
        try:
            said = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadLine(f"the line can't be read: {error}") from error
        if isinstance(said, _Call):
            if self._played is None:
                raise BadLine("a call before any start")
            return self._played.call(said.new)
        self._played = None
        if isinstance(said, _Start):
            self._played = Played(self._policy, self._decides, said)
        return None


class Played:
    """One conversation from its start on."""

    def __init__(self, policy: str, decides: Policy, start: _Start) -> None:
        for field in ("zone", "window"):
            value = getattr(start, field)
            if value is not None and value < 1:
                raise BadLine(f"{field} must be at least 1, not {value}")
        if start.static_tokens < 0 or start.max_output < 0:
            raise BadLine("static_tokens and max_output can't be below 0")
        given = start.prices
        prices = (given.input, given.output, given.cached, given.cache_read, given.cache_write)
        if any(price is not None and price < 0 for price in prices):
            raise BadLine("a price can't be below 0")
        self._decides = decides
        self._static = round(start.static_tokens)
        self._budget = budget_for(start.window or WINDOW, start.max_output)
        self._zone = Zone(policy=policy, zone=None if start.zone is None else round(start.zone))
        self._prices = Prices(
            input=given.input,
            output=given.output,
            cached=given.cached if given.cached is not None else given.cache_read,
            cache_write=given.cache_write,
        )
        self._conversation = Conversation()
        self._accounting = Accounting()
        self._accounted = 0
        self._asked = False
        self._texts: dict[str, str] = {}
        self._shown: list[Slot] = []
        self._fragments: list[bytes] = []
        self._summary: tuple[int, bytes] | None = None
        self._earlier = ""
        self._joined = bytearray()

    def call(self, new: list[Given]) -> bytes:
        """Take the new messages, decide, and give the whole context as a line."""
        try:
            slots = self._conversation.take(new)
        except ValueError as problem:
            raise BadLine(str(problem)) from problem
        for slot in slots:
            self._show(slot)
        self._compact()
        self._asked = True
        self._conversation.asked()
        return b'{"messages":[' + self._joined + _AUX

    def _compact(self) -> None:
        """As a session does before each request: the policy, and recovery where the window is full."""
        state = self._state()
        decision = self._decides(state)
        if decision is not None:
            self._apply(self._written(decision))
            state = self._state()
        elif state.tokens > high_of(state) and not state.ledger.stuck:
            from croze.context.batch import diagnosis

            notice = diagnosis(state)
            if notice is not None:
                self._conversation.append(notice)
        if overflows(state):
            from croze.context.recover import recover

            decision = recover(state)
            if decision is not None:
                self._apply(self._written(decision))

    def _state(self) -> State:
        static = self._static + self._conversation.system_tokens
        return State(
            ledger=self._conversation.ledger,
            tokens=static + self._conversation.ledger.tokens,
            head=static,
            scale=1.0,
            budget=self._budget,
            zone=self._zone,
            prices=self._prices,
            idle=0.0 if self._asked else None,
        )

    def _written(self, decision: Decision) -> Compacted:
        """The event, with its summary by plain code where it asks for one."""
        body = decision.event
        if not decision.summarise:
            return body
        events = self._conversation.events
        while self._accounted < len(events) and events[self._accounted].seq <= body.until:
            self._accounting.feed(events[self._accounted])
            self._accounted += 1
        found = self._accounting.found
        text = fallback_of(found, self._earlier)
        return replace(body, summary=text, receipt=body.receipt or receipt_of(found))

    def _apply(self, body: Compacted) -> None:
        conversation = self._conversation
        touched = self._touched(body)
        conversation.append(body)
        for key, text in body.replaced.items():
            entry = conversation.ledger.by_call.get(key) or conversation.ledger.by_id.get(key)
            if entry is not None:
                self._texts[entry.id] = text
        for call_id in body.digested:
            entry = conversation.ledger.by_call.get(call_id)
            if entry is not None:
                self._texts[entry.id] = conversation.digests.get(call_id, "")
        if body.summary:
            self._earlier = body.summary
            text = summary_text(body.summary, body.receipt)
            self._summary = body.until, _encoder.encode({"role": "user", "content": text})
            self._show_again()
            return
        for slot in touched:
            if slot.at >= 0:
                self._fragments[slot.at] = self._fragment(slot)
        self._join()

    def _touched(self, body: Compacted) -> list[Slot]:
        """The messages that a compaction without a summary changes."""
        conversation = self._conversation
        found: list[Slot] = []
        for key in (*body.replaced, *body.digested, *body.hidden):
            slot = conversation.slot_of(key)
            if slot is not None:
                found += (slot, *conversation.bound_to(slot))
        for call_id in body.cut:
            reply = conversation.reply_with(call_id)
            if reply is not None:
                found.append(reply)
        return found

    def _show(self, slot: Slot) -> None:
        slot.at = len(self._shown)
        self._shown.append(slot)
        self._fragments.append(slot.unchanged)
        if self._joined:
            self._joined += b","
        self._joined += slot.unchanged

    def _show_again(self) -> None:
        """Everything that stands, after a summary; what is gone isn't looked at any more."""
        shown: list[Slot] = []
        fragments: list[bytes] = []
        for slot in self._shown:
            fragment = self._fragment(slot)
            if not fragment:
                slot.at = -1
                continue
            slot.at = len(shown)
            shown.append(slot)
            fragments.append(fragment)
        self._shown, self._fragments = shown, fragments
        self._join()

    def _join(self) -> None:
        """The whole context: what stays of the summarised part, the summary, the rest."""
        parts = self._fragments
        if self._summary is not None:
            until, text = self._summary
            place = sum(1 for slot in self._shown if slot.entry.seq <= until)
            parts = [*parts[:place], text, *parts[place:]]
        self._joined = bytearray(b",".join(part for part in parts if part))

    def _fragment(self, slot: Slot) -> bytes:
        """A message as it stands now; empty where it is gone."""
        entry = slot.entry
        match entry.standing:
            case "hidden" | "summarised":
                return b""
            case "replaced" | "digested" if entry.kind != "reply":
                return slot.rewritten(self._texts.get(entry.id, ""))
            case _ if entry.kind == "reply" and (entry.cut or entry.gone or entry.stub):
                return slot.rewritten_reply()
            case _:
                return slot.unchanged
