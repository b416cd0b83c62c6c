"""What is undone is hidden from the model, and what was told since stays."""

from hypothesis import given
from hypothesis import strategies as st

from croze.context.project import Projection, project
from croze.types.event import (
    Body,
    Compacted,
    Event,
    FactAdded,
    ModelCalled,
    ModelSaid,
    Undone,
    UserSaid,
)
from croze.types.parts import Text


def called(seq: int) -> ModelCalled:
    return ModelCalled(
        step=1, model="m", head="", history=seq, body="", rolling="", encoder=1, tokens=1, size=1
    )


def body_of(kind: str, seq: int, span: tuple[int, int]) -> Body:
    name = f"{kind}-{seq}"
    match kind:
        case "said":
            return UserSaid(message_id=name, parts=(Text(text=name),))
        case "fact":
            return FactAdded(key=name, message_id=name, text=name)
        case "called":
            return called(seq - 1)
        case "reply":
            return ModelSaid(message_id=name, step=1, model="m", parts=(Text(text=name),))
        case "compacted":
            return Compacted(policy="p", reason="r", hidden=(f"said-{span[0]}",), summary=name)
        case _:
            hidden = (span,) if span[0] < seq else ()
            return Undone(undo_id=name, kind="undo", hidden=hidden, text=name if seq % 2 else "")


KINDS = ["said", "fact", "called", "reply", "compacted", "undone"]
SPANS = st.tuples(st.integers(1, 15), st.integers(0, 8)).map(lambda pair: (pair[0], sum(pair)))
LOGS = st.lists(st.tuples(st.sampled_from(KINDS), SPANS), max_size=20)


def log_of(plan: list[tuple[str, tuple[int, int]]]) -> list[Event]:
    events = []
    for seq, (kind, (first, last)) in enumerate(plan, 1):
        body = body_of(kind, seq, (first, min(last, seq - 1)))
        events.append(Event(session="s", seq=seq, at=seq, body=body))
    return events


def texts(projection: Projection) -> list[str]:
    messages = projection.context("", (), ()).messages
    return [part.text for message in messages for part in message.parts if isinstance(part, Text)]


@given(plan=LOGS)
def test_event_by_event_or_from_scratch_the_model_sees_the_same(
    plan: list[tuple[str, tuple[int, int]]],
) -> None:
    events = log_of(plan)
    projection = Projection()
    for event in events:
        projection.feed(event)
    fresh = project(events, "", (), ())
    assert projection.context("", (), ()) == fresh or [
        (m.role, m.parts) for m in projection.context("", (), ()).messages
    ] == [(m.role, m.parts) for m in fresh.messages]


@given(plan=LOGS)
def test_nothing_hidden_by_the_last_undo_is_seen(plan: list[tuple[str, tuple[int, int]]]) -> None:
    events = log_of(plan)
    projection = Projection()
    for event in events:
        projection.feed(event)
    last = next((e.body for e in reversed(events) if isinstance(e.body, Undone)), None)
    seen = "\n".join(texts(projection))
    for event in events:
        if last is not None and last.hides(event.seq):
            assert f"-{event.seq}\n" not in f"{seen}\n"


def test_what_an_undo_tells_stands_where_it_happened() -> None:
    events = log_of([("said", (1, 1)), ("called", (1, 1)), ("reply", (1, 1))])
    note = Undone(undo_id="u", kind="undo", text="The user has undone a change.", tokens=9)
    events.append(Event(session="s", seq=4, at=4, body=note))
    projection = Projection()
    for event in events:
        projection.feed(event)
    assert texts(projection)[-1] == "The user has undone a change."
