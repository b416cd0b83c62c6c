"""The tools with which agents speak to each other: results, what stays of them, what goes wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from croze.tools.builtin.talk_to import LEAST, SHARED, TalkTo, TalkToGroup
from croze.tools.registry import builtin
from croze.tools.team import Reply
from croze.types.errors import CrozeError
from croze.types.parts import ToolCall
from croze.types.team import ChildReport, Order, Roster


@dataclass
class FakeTeam:
    """Implements `Team` with fixed replies."""

    replies: Sequence[Reply]
    roster: Roster = field(default_factory=Roster)

    async def run(self, orders: Sequence[Order], mode: str, *, call_id: str) -> list[ChildReport]:
        raise AssertionError("nobody is to be started")

    async def talk(self, to: str, text: str, *, call_id: str) -> Reply:
        return self.replies[0]

    async def talk_to_group(self, group: str, text: str, *, call_id: str) -> Sequence[Reply]:
        return self.replies


async def test_an_answer_is_the_result(fake_context: Any) -> None:
    fake_context.team = FakeTeam([Reply("critic", ok=True, text="No.")])
    result = await TalkTo(agent="critic", message="Good?").run(fake_context)
    assert (result.ok, result.message, result.text) == (True, "critic answered.", "No.")
    assert result.data == {"agent": "critic", "ok": True, "text": "No.", "error": ""}
    call = ToolCall("123456789", "talk_to", {"agent": "critic", "message": "Good?"})
    assert TalkTo.digest(call, result) == "Said to critic: Good?\nNo."


async def test_an_agent_that_failed_tells_why_and_what_it_had(fake_context: Any) -> None:
    fake_context.team = FakeTeam([Reply("critic", ok=False, text="half", error="away")])
    result = await TalkTo(agent="critic", message="Good?").run(fake_context)
    assert (result.ok, result.code, result.text) == (False, "no_answer", "half")
    assert result.message == "critic did not answer: away"


async def test_a_groups_answers_stand_with_their_names(fake_context: Any) -> None:
    fake_context.team = FakeTeam(
        [
            Reply("a", ok=True, text="yes"),
            Reply("b", ok=False, error="away"),
            Reply("", ok=False, error="The talk was ended: enough."),
        ]
    )
    result = await TalkToGroup(group="all", message="Well?").run(fake_context)
    assert result.ok
    assert result.message == "all: 1 of 2 answers came. The talk was ended: enough."
    assert result.text == "## a\nyes\n\n## b did not answer: away"
    assert [each["agent"] for each in result.data] == ["a", "b"]
    call = ToolCall("123456789", "talk_to_group", {"group": "all", "message": "Well?"})
    assert TalkToGroup.digest(call, result) == "Said to all: Well?\na: yes\nb: away"


async def test_a_group_of_which_nobody_answers_has_failed(fake_context: Any) -> None:
    fake_context.team = FakeTeam([Reply("a", ok=False, error="away")])
    result = await TalkToGroup(group="all", message="Well?").run(fake_context)
    assert (result.ok, result.code) == (False, "no_answer")


async def test_long_answers_share_the_room_and_can_be_read_whole(fake_context: Any) -> None:
    texts = {"a": "short", "b": "b" * 9_000, "c": "c" * 5_000}
    fake_context.team = FakeTeam([Reply(name, ok=True, text=text) for name, text in texts.items()])
    result = await TalkToGroup(group="all", message="Well?").run(fake_context)
    assert "## a\nshort\n" in result.text
    assert len(result.text) < SHARED + 200
    assert "b" * 3_400 in result.text
    assert "[… 5,503 characters more]" in result.text
    assert all(text in result.whole for text in texts.values())


async def test_each_of_many_answers_is_seen(fake_context: Any) -> None:
    many = [Reply(f"m{n}", ok=True, text="x" * 2_000) for n in range(100)]
    fake_context.team = FakeTeam(many)
    result = await TalkToGroup(group="all", message="Well?").run(fake_context)
    assert result.text.count("x" * LEAST) == 100


@pytest.mark.parametrize(
    "tool", [TalkTo(agent="a", message="m"), TalkToGroup(group="a", message="m")]
)
async def test_an_agent_that_may_call_nobody_is_told(tool: Any, fake_context: Any) -> None:
    with pytest.raises(CrozeError) as caught:
        await tool.run(fake_context)
    assert caught.value.code == "no_team"


def test_the_tools_only_read_and_stand_outside_the_core() -> None:
    registry = builtin()
    for name in ("talk_to", "talk_to_group"):
        kind = registry.get(name)
        assert kind is not None
        assert not kind.doc.core
        assert kind.doc.access.read_only
        assert len(kind.doc.summary) < 80
