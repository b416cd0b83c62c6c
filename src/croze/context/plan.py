"""A compaction in the making: what it would change and what that would free, before it is an event."""

from collections.abc import Mapping
from typing import Literal

from croze.context.ledger import Entry
from croze.context.policies import State
from croze.context.shape import argument_text, reply_tokens
from croze.text.tokens import estimate
from croze.types.event import Compacted, ModelSaid, ToolReturned

SHORT_OF = 8
"""Tokens below which a shorter form isn't worth a changed byte."""


class Plan:
    """Counts as the ledger will: `freed` is in its tokens, `tokens` what the provider would count."""

    def __init__(self, state: State, policy: Literal["digest", "zone"]) -> None:
        self.state = state
        self.policy = policy
        self.replaced: dict[str, str] = {}
        self.digested: dict[str, Entry] = {}
        self.cut: dict[str, dict[str, str]] = {}
        self.hidden: dict[str, Entry] = {}
        self.why: list[str] = []
        self.freed = 0
        self._costs: dict[str, int] = {}
        self._gone: dict[str, set[str]] = {}
        self._ends: tuple[str, str] | None = None

    @property
    def tokens(self) -> int:
        return self.state.tokens - round(self.freed * self.state.scale)

    @property
    def is_empty(self) -> bool:
        return not (self.replaced or self.digested or self.cut or self.hidden)

    def because(self, reason: str) -> None:
        if reason not in self.why:
            self.why.append(reason)

    def cost(self, entry: Entry) -> int:
        """What an entry costs after what is planned so far."""
        return self._costs.get(entry.id, entry.tokens)

    def stands(self, entry: Entry) -> bool:
        """Whether there is something of the entry that could be taken."""
        return self.cost(entry) > 0 and entry.standing not in ("hidden", "summarised")

    def replace(self, entry: Entry, text: str) -> bool:
        """Another text for a result, where it is worth it."""
        tokens = estimate(text)
        if self.cost(entry) - tokens < SHORT_OF:
            return False
        self.digested.pop(entry.call_id, None)
        self.replaced[entry.call_id] = text
        self.free(entry, tokens)
        return True

    def digest(self, entry: Entry) -> bool:
        """The stored digest for a result, where it is worth it."""
        tokens = estimate(digest_in(entry))
        if self.cost(entry) - tokens < SHORT_OF:
            return False
        self.digested[entry.call_id] = entry
        self.free(entry, tokens)
        return True

    def hide(self, entry: Entry) -> None:
        """A message goes; of a result its call goes too."""
        self.hidden[entry.id] = entry
        self.drop(entry)
        made = self.state.ledger.call_of(entry.call_id) if entry.kind == "result" else None
        if made is not None:
            reply = made[0]
            self._gone.setdefault(reply.id, set(reply.gone)).add(entry.call_id)
            self._weigh(reply)

    def shorten_call(self, reply: Entry, call_id: str, texts: Mapping[str, str]) -> None:
        self.cut[call_id] = dict(texts)
        self._weigh(reply)

    def drop(self, entry: Entry) -> None:
        """Nothing of the entry stands any more."""
        self.replaced.pop(entry.call_id, None)
        self.digested.pop(entry.call_id, None)
        self.free(entry, 0)

    def free(self, entry: Entry, tokens: int) -> None:
        self.freed += self.cost(entry) - tokens
        self._costs[entry.id] = tokens

    def let_go(self) -> None:
        """What the model itself has marked goes, but for what the conversation can't lose: the first and
        the newest user message, and results that it is about to see."""
        for message_id in self.state.ledger.marked:
            entry = self.state.ledger.by_id.get(message_id)
            if entry is not None and self._may_go(entry):
                self.hide(entry)
                self.because("messages that the model let go of")

    def drop_tail(self) -> None:
        """Any compaction takes the tail's facts; they are told anew where they still hold."""
        for entry in self.state.ledger.tails:
            if self.stands(entry):
                self.free(entry, 0)

    def event(self, figures: Mapping[str, float]) -> Compacted:
        """The event, without a summary."""
        state = self.state
        order = sorted(self.digested, key=lambda call: self.digested[call].seq)
        return Compacted(
            policy=self.policy,
            reason=", ".join(self.why),
            replaced=self.replaced,
            digested=tuple(order),
            cut=self.cut,
            hidden=tuple(self.hidden),
            tokens_before=state.tokens,
            tokens_after=max(0, self.tokens),
            figures={**figures, "freed": float(round(self.freed * state.scale))},
        )

    def _may_go(self, entry: Entry) -> bool:
        if not self.stands(entry) or entry.pinned or entry.kind not in ("user", "result"):
            return False
        if entry.kind == "result":
            return entry.step < self.state.ledger.step or self.state.forced
        if self._ends is None:
            said = [e for e in self.state.ledger.entries if e.kind == "user"]
            self._ends = said[0].id, said[-1].id
        return entry.id not in self._ends

    def _weigh(self, reply: Entry) -> None:
        if reply.event is None or not self.stands(reply):
            return
        body = reply.event.body
        assert isinstance(body, ModelSaid)
        cut = {
            call.id: {**reply.cut.get(call.id, {}), **self.cut.get(call.id, {})}
            for call in reply.calls
        }
        gone = self._gone.get(reply.id, reply.gone)
        self.free(reply, reply_tokens(body, gone, cut, reply.stub))


def digest_in(entry: Entry) -> str:
    """The digest that a result's event holds; empty where it holds none."""
    body = entry.event.body if entry.event is not None else None
    return body.digest if isinstance(body, ToolReturned) else ""


def text_in(entry: Entry) -> str:
    """A result's text as the tool gave it."""
    body = entry.event.body if entry.event is not None else None
    return body.text if isinstance(body, ToolReturned) else ""


def long_arguments(reply: Entry, names: tuple[str, ...], limit: int) -> dict[str, dict[str, str]]:
    """The arguments of a reply's calls that are longer than `limit` characters and still whole, by
    call and name."""
    found: dict[str, dict[str, str]] = {}
    for call in reply.calls:
        if call.id in reply.gone:
            continue
        for name in names:
            if name in call.args and name not in reply.cut.get(call.id, {}):
                text = argument_text(call, name)
                if len(text) > limit:
                    found.setdefault(call.id, {})[name] = text
    return found
