"""Between compactions each request's messages, and its bytes on both wires, begin the next one's; nothing
that changes by itself stands in them."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from croze.context.ledger import Ledger
from croze.context.policies import State, Zone, decide
from croze.context.project import Projection
from croze.dialect.base import Dialect
from croze.dialect.native import NativeDialect
from croze.dialect.xml import XmlDialect
from croze.llm.anthropic import AnthropicModel
from croze.llm.model import Model
from croze.llm.openai import OpenAIModel
from croze.types.context import Budget, Message
from croze.types.event import Compacted, Event, ModelCalled, Undone
from croze.types.model import ModelInfo, Prices
from tests.context.long_sessions import Story
from tests.context.session_logs import logged, sessions

MARK = b',"cache_control":{"type":"ephemeral"}'
SYSTEM = "You are croze."


def model(wire: str) -> Model:
    made = AnthropicModel if wire == "anthropic" else OpenAIModel
    info = ModelInfo(
        provider=wire, model="m", window=100_000, max_output=1_000, base_url="http://127.0.0.1:1/v1"
    )
    return made(info, api_key=None)


def state_of(ledger: Ledger, policy: str, zone: int) -> State:
    return State(
        ledger=ledger, tokens=ledger.tokens, head=0, scale=1.0, zone=Zone(policy=policy, zone=zone),
        budget=Budget(window=100_000, reserve=1_000), prices=Prices(), idle=1.0,
    )  # fmt: skip


def request(
    projection: Projection, dialect: Dialect, wire: Model, *, prefill: bool
) -> tuple[tuple[Message, ...], bytes]:
    """The projected messages and the body without its closing brackets."""
    context = projection.context(SYSTEM, (), (), prefill=prefill)
    body = wire.encode(dialect.encode(context)).replace(MARK, b"")
    assert body.endswith(b"]}")
    return context.messages, body[:-2]


def played(log: list[Event], policy: str, zone: int) -> list[Event]:
    """The log with what the policy has to say before each of its requests."""
    bodies = []
    projected: list[Event] = []
    ledger = Ledger()
    shift = 0
    for event in log:
        body = event.body
        if isinstance(body, Undone):  # spans move with what was put in
            spans = [(moved(projected, a), moved(projected, b)) for a, b in body.hidden]
            body = replace(body, hidden=tuple(spans))
        if isinstance(body, ModelCalled) and body.purpose == "main" and not body.prefill:
            decision = decide(state_of(ledger, policy, zone))
            if decision is not None:
                made = decision.event
                if decision.summarise:
                    made = replace(made, summary="[History Summary]\nIt was long.", receipt="[R]")
                shift += 1
                bodies.append(made)
                ledger.feed(Event("s", event.seq + shift - 1, event.at, made))
        if isinstance(body, ModelCalled):
            body = replace(body, history=event.seq + shift - 1)
        bodies.append(body)
        projected.append(Event("s", event.seq, event.seq + shift, body))
        ledger.feed(Event("s", event.seq + shift, event.at, body))
    return logged(bodies)


def moved(projected: list[Event], seq: int) -> int:
    """Where the event with this seq has come to stand (kept in `at`)."""
    return next(event.at for event in projected if event.seq == seq)


def assert_prefixes(events: list[Event], protocol: Dialect, encoder: Model) -> None:
    projection = Projection()
    requests: list[tuple[tuple[Message, ...], bytes] | None] = []
    prefilled: set[int] = set()
    for event in events:
        body = event.body
        if isinstance(body, ModelCalled) and body.purpose == "main":
            if body.prefill:
                prefilled.add(len(requests))
            requests.append(request(projection, protocol, encoder, prefill=body.prefill))
        elif isinstance(body, Compacted | Undone):
            requests.append(None)  # here the bytes may change
        projection.feed(event)
    for index, (before, after) in enumerate(pairwise(requests)):
        if before is None or after is None:
            continue
        messages, sent = before
        if index in prefilled:  # what the model continued by itself stands once, whole
            assert after[0][: len(messages) - 1] == messages[:-1]
            continue
        assert after[1].startswith(sent)
        assert all(a is b for a, b in zip(messages, after[0], strict=False))


def compactions(events: list[Event]) -> int:
    return sum(isinstance(event.body, Compacted) for event in events)


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
@pytest.mark.parametrize("dialect", [NativeDialect, XmlDialect])
@pytest.mark.parametrize("policy", ["batch", "none"])
@settings(max_examples=40, deadline=None)
@given(log=sessions(steps=10))
def test_each_request_begins_with_the_one_before_it(
    log: list[Event], wire: str, dialect: type, policy: str
) -> None:
    events = played(log, policy, 2_000)
    assert policy == "batch" or compactions(events) == 0
    assert_prefixes(events, dialect(), model(wire))


@pytest.mark.parametrize("dialect", [NativeDialect, XmlDialect])
def test_the_prefix_holds_between_the_batches_of_a_long_session(dialect: type) -> None:
    story = Story()
    for turn in range(3):
        story.says(f"Turn {turn}.")
        for number in range(15):
            story.reads(f"file{turn}_{number}.py", 1_200)
    events = played(story.events, "batch", 20_000)
    assert compactions(events) >= 3
    assert_prefixes(events, dialect(), model("anthropic"))


@settings(max_examples=40, deadline=None)
@given(log=sessions())
def test_nothing_above_the_tail_depends_on_time_or_session(log: list[Event]) -> None:
    """The same log under another session's name and at another time gives the same bytes."""
    others = [Event("another", e.seq, e.at + 86_400_000_000, e.body) for e in log]
    one, other = Projection(), Projection()
    for mine, theirs in zip(log, others, strict=True):
        one.feed(mine)
        other.feed(theirs)
    dialect, wire = NativeDialect(), model("openai")
    bodies = [request(p, dialect, wire, prefill=False)[1] for p in (one, other)]
    assert bodies[0] == bodies[1]
    assert one.rolling() == other.rolling()
