"""The context engine without a wire: deciding and projecting the next context, one compaction of a large
session, the prefix that is kept between compactions, and the memory of a long session.

.venv/bin/python bench/context.py
"""

import statistics
import sys
import tracemalloc
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from croze.context.ledger import Ledger
from croze.context.policies import State, Zone, decide
from croze.context.project import Projection
from croze.text.tokens import estimate
from croze.types.context import Budget
from croze.types.event import (
    Body,
    Compacted,
    Event,
    FactAdded,
    ModelCalled,
    ModelSaid,
    ToolReturned,
    UserSaid,
)
from croze.types.model import Prices
from croze.types.parts import Text, ToolCall
from figures import figure, timed

WIDE = Budget(window=100_000_000, reserve=0)
NORMAL = Budget(window=400_000, reserve=32_000)
HEAD = 5_000


class Live:
    """What a live session keeps of its log: the projection and the ledger, fed event by event."""

    def __init__(self) -> None:
        self.projection, self.ledger = Projection(), Ledger()
        self.events: list[Event] = []
        self.count = 0

    def add(self, body: Body) -> None:
        event = Event("s", len(self.events) + 1, len(self.events) * 1_000_000, body)
        self.events.append(event)
        self.projection.feed(event)
        self.ledger.feed(event)

    def says(self, text: str) -> None:
        self.count += 1
        self.add(UserSaid(f"{self.count:08x}-u", (Text(text=text),), tokens=estimate(text)))

    def step(self, characters: int) -> None:
        """One request, its reply with a call, and the result of that."""
        self.count += 1
        number = self.count
        self.add(
            ModelCalled(
                step=number, model="m", head="h", history=len(self.events), body="b", rolling="r",
                encoder=1, tokens=1, size=1,
            )
        )  # fmt: skip
        args = {"path": f"src/module_{number}.py"}
        call = ToolCall(f"{number:08x}c", "read_file", args, raw='{"path":"src/module.py"}')
        text = f"I look at module_{number}."
        self.add(ModelSaid(f"{number:08x}-m", number, "m", (Text(text=text), call), tokens=30))
        line = f"{number}\tdef handler_{number}(value): return lookup_{number % 97}(value)\n"
        result = (line * (characters // len(line) + 1))[:characters]
        self.add(
            ToolReturned(
                call_id=call.id, message_id=f"{number:08x}-r", name="read_file", ok=True,
                message="Read.", text=result, tokens=estimate(result),
            )
        )  # fmt: skip

    def state(self, budget: Budget, zone: int | None = None) -> State:
        return State(
            ledger=self.ledger, tokens=HEAD + self.ledger.tokens, head=HEAD, scale=1.0,
            budget=budget, zone=Zone(zone=zone), prices=Prices(), idle=1.0,
        )  # fmt: skip

    def next_context(self, budget: Budget, zone: int | None = None) -> None:
        decide(self.state(budget, zone))
        self.projection.context("head", (), ())


def session(messages: int, characters: int = 400) -> Live:
    """A live session of about so many messages."""
    live = Live()
    live.add(FactAdded(key="law", message_id="law", text="Law.", reply="Noted.", tokens=50))
    live.says("Please mend it.")
    while len(live.projection.messages) < messages:
        live.step(characters)
    return live


def bench_next() -> None:
    for messages in (100, 1_000, 10_000):
        live = session(messages)
        times = []
        for _ in range(60):
            live.says("One more thing.")
            times.append(timed(lambda live=live: live.next_context(WIDE, 90_000_000)) * 1e3)
        figure(
            f"decide and project at {messages:,} messages", statistics.median(times), "ms", "<= 2"
        )


def bench_batch() -> None:
    live = session(400, characters=3_500)
    figure("tokens of the session that is compacted", HEAD + live.ledger.tokens, "tokens")
    decision = None

    def compact() -> None:
        nonlocal decision
        decision = decide(live.state(NORMAL))

    figure("deciding on a batch", timed(compact) * 1e3, "ms", "<= 500, once a batch")
    assert decision is not None
    event: Compacted = decision.event
    figure("projecting it", timed(lambda: live.add(event)) * 1e3, "ms", "<= 100, once a batch")
    figure("of the tokens stay", event.tokens_after / event.tokens_before, "share")


def bench_prefix() -> None:
    """The share of each request's messages that begins the next one's, over five batches."""
    live = Live()
    live.says("Please mend it.")
    requests, shares, batches = [], [], 0
    for _ in range(400):
        live.step(3_500)
        decision = decide(live.state(NORMAL))
        if decision is not None:
            batches += 1
            live.add(decision.event)
            requests.append(None)
        requests.append(live.projection.context("head", (), ()).messages)
    for before, after in pairwise(requests):
        if before is not None and after is not None:
            same = sum(a is b for a, b in zip(before, after, strict=False))
            shares.append(same / len(before))
    figure("batches in 400 steps of 1,000 tokens", batches, "batches")
    figure("prefix kept between compactions, lowest", min(shares), "share", "1.000")


def bench_each_step() -> None:
    """What a change near the end costs, as policies make it that act at each step."""
    live = session(10_000)
    times = []
    for _ in range(20):
        live.step(2_000)
        call = live.ledger.entries[-3].call_id or live.ledger.entries[-1].call_id
        event = Compacted("zone", "bench", replaced={call: "[cleared]"})
        times.append(timed(lambda event=event: live.add(event)) * 1e3)
    figure("a compaction near the end of 10,000 messages", statistics.median(times), "ms", "<= 2")


def bench_memory() -> None:
    tracemalloc.start()
    live = session(10_000, characters=1_000)
    texts = sum(len(e.body.text) for e in live.events if isinstance(e.body, ToolReturned))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    figure("memory of a live session at 10,000 messages", used / 1e6, "MB", "<= 40")
    figure("of which texts of results", texts / 1e6, "MB")


bench_next()
bench_each_step()
bench_batch()
bench_prefix()
bench_memory()
