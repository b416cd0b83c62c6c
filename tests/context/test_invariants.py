"""What doesn't hold of a log is found, told once, and never raised."""

from hypothesis import given
from hypothesis import strategies as st

from croze.context.invariants import EventChecks
from croze.types.event import (
    Body,
    Compacted,
    Event,
    ModelCalled,
    ModelSaid,
    ToolReturned,
    ToolStarted,
    Unknown,
    UserSaid,
)
from croze.types.parts import Text, ToolCall
from croze.types.tool import Access
from tests.context.recording import Recording


def codes(*bodies: Body, first: int = 1) -> list[str]:
    checks = EventChecks()
    for seq, body in enumerate(bodies, first):
        checks.feed(Event("s", seq, 0, body))
    found = checks.take()
    assert checks.take() == []
    assert {check.level for check in found} <= {"warning"}
    return [check.code for check in found]


USER = UserSaid("u1", (Text("hello"),))
ASKED = ModelCalled(1, "m", "h", 1, "b", "r", 1, 0, 0)
SAID = ModelSaid("m1", 1, "m", (ToolCall("c1", "read_file"),))
STARTED = ToolStarted("c1", "read_file", Access(read=True))
RETURNED = ToolReturned("c1", "r1", "read_file", True)


def test_a_log_that_is_right_has_no_finding() -> None:
    assert codes(USER, ASKED, SAID, STARTED, RETURNED) == []
    log = Recording()
    log.user("Begin.")
    log.work("read_file", {"path": "a"}, "text")
    log.compact(until=3, pinned=(), summary="x")
    assert codes(*(event.body for event in log.events)) == []


def test_each_broken_rule_has_its_name() -> None:
    other = ToolReturned("c1", "r2", "read_file", True)
    assert codes(USER, ASKED, SAID, STARTED, RETURNED, other) == ["result_twice"]
    assert codes(USER, RETURNED) == ["result_without_call"]
    assert codes(USER, STARTED) == ["start_without_call"]
    assert codes(USER, UserSaid("u1", (Text("again"),))) == ["message_twice"]
    assert codes(USER, ModelSaid("m2", 1, "m", (), continues="m0")) == ["continues_nothing"]
    assert codes(ModelCalled(1, "m", "h", 9, "b", "r", 1, 0, 0)) == ["history_ahead"]
    assert codes(USER, Compacted("batch", "", hidden=("nobody",))) == ["compacts_nothing"]
    assert codes(USER, Compacted("batch", "", until=7)) == ["compacts_nothing"]
    assert codes(USER, first=5) == ["event_order"]


def test_behind_an_event_that_can_not_be_read_nobody_says_what_is_missing() -> None:
    assert codes(USER, Unknown("ModelSaid", 9, "{}"), STARTED, RETURNED) == []
    assert codes(USER, Unknown("ModelSaid", 9, "{}"), USER) == ["message_twice"]


@given(st.lists(st.sampled_from([USER, ASKED, SAID, STARTED, RETURNED]), max_size=12))
def test_any_order_of_events_is_looked_at_without_a_failure(bodies: list[Body]) -> None:
    found = codes(*bodies)
    assert len(found) <= 2 * len(bodies)
