"""Long sessions for policies: reads, listings, commands and edits of a known size."""

from collections.abc import Mapping, Sequence
from typing import Any

from croze.context.ledger import Ledger, ledger_of
from croze.context.policies import State, Zone
from croze.text.tokens import estimate
from croze.types.context import Budget
from croze.types.event import (
    Body,
    Compacted,
    Event,
    FactAdded,
    MessagesMarked,
    ModelCalled,
    ModelSaid,
    ToolReturned,
    UserSaid,
)
from croze.types.model import Prices
from croze.types.parts import Text, ToolCall

SECOND = 1_000_000
WIDE = Budget(window=200_000, reserve=20_000)
HEAD = 4_000


def content(name: str, tokens: int) -> str:
    """A text of about so many tokens in which only words of its own stand."""
    line = f"value_of_{name} = compute_{name}(1)\n"
    return line * max(1, tokens * 33 // (10 * len(line)))


class Story:
    """Writes a session: each method appends what one step of the loop would."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.step = 0
        self.count = 0
        self.add(FactAdded(key="law", message_id="law", text="Law.", reply="Noted.", tokens=50))
        self.add(
            FactAdded(key="environment", message_id="env", text="Linux", layer="current", tokens=20)
        )

    def add(self, body: Body, seconds: float = 1.0) -> Event:
        at = (self.events[-1].at if self.events else 0) + round(seconds * SECOND)
        event = Event("s", len(self.events) + 1, at, body)
        self.events.append(event)
        return event

    def says(self, text: str, *, after: float = 1.0) -> str:
        message_id = self._id("user")
        self.add(UserSaid(message_id, (Text(text=text),), tokens=estimate(text)), after)
        return message_id

    def asks(self) -> None:
        self.step += 1
        self.add(
            ModelCalled(
                step=self.step, model="m", head="h", history=len(self.events), body="b",
                rolling="r", encoder=1, tokens=1, size=1,
            )
        )  # fmt: skip

    def does(
        self, *calls: tuple[str, Mapping[str, Any], str], ok: bool = True, text: str = ""
    ) -> list[str]:
        """A step with calls (tool, arguments, result); gives the ids of the results' messages."""
        self.asks()
        made = [ToolCall(self._id("c"), name, dict(args)) for name, args, _ in calls]
        words = text or f"Step {self.step}."
        tokens = estimate(words) + sum(estimate(str(call.args)) + 8 for call in made)
        parts = (Text(text=words), *made)
        self.add(
            ModelSaid(self._id("reply"), step=self.step, model="m", parts=parts, tokens=tokens)
        )
        ids = []
        for call, (_, _, result) in zip(made, calls, strict=True):
            ids.append(self._id("result"))
            self.add(
                ToolReturned(
                    call_id=call.id, message_id=ids[-1], name=call.name, ok=ok, message="Done.",
                    text=result, tokens=estimate(result),
                )
            )  # fmt: skip
        return ids

    def reads(self, path: str, tokens: int, **args: Any) -> str:
        name = path.partition(".")[0].replace("/", "_")
        return self.does(("read_file", {"path": path, **args}, content(name, tokens)))[0]

    def marks(self, *ids: str) -> None:
        self.add(MessagesMarked(ids=ids))

    def takes(self, event: Compacted) -> None:
        self.add(event)

    @property
    def ledger(self) -> Ledger:
        return ledger_of(self.events)

    def state(
        self,
        *,
        zone: int | None = None,
        budget: Budget = WIDE,
        idle: float | None = 1.0,
        prices: Prices = Prices(),  # noqa: B008 (a frozen value)
        forced: bool = False,
        policy: str = "batch",
    ) -> State:
        ledger = self.ledger
        return State(
            ledger=ledger, tokens=HEAD + ledger.tokens, head=HEAD, scale=1.0, budget=budget,
            zone=Zone(policy=policy, zone=zone), prices=prices, idle=idle, forced=forced,
        )  # fmt: skip

    def _id(self, kind: str) -> str:
        self.count += 1
        return f"{self.count:08x}-{kind}"


def after(story: Story, event: Compacted) -> Ledger:
    """The ledger as it is after a compaction."""
    last: Sequence[Event] = story.events
    return ledger_of([*last, Event("s", len(last) + 1, last[-1].at, event)])
