"""Talk in groups: everyone at once, mentions, limits, failures that stay where they are."""

import asyncio

import pytest

from croze.teams.group import AT_ONCE
from croze.tools.team import Reply
from croze.types.errors import CrozeError, ModelError, StoreError
from croze.types.team import ChildOpened, GroupSpec
from tests.teams.hub_desk import Answer, Desk, says


def texts(replies: list[Reply]) -> dict[str, str]:
    return {reply.agent: reply.text or reply.error for reply in replies}


async def group(desk: Desk, text: str, name: str = "all", sender: str = "main") -> list[Reply]:
    talk = desk.hub.voice(sender).talk_to_group(name, text)
    return list(await asyncio.wait_for(talk, 10))


async def test_all_members_but_the_speaker_are_asked_side_by_side() -> None:
    together = asyncio.Barrier(2)

    async def meets(text: str) -> str:
        await together.wait()
        return "met"

    desk = Desk({"a": meets, "b": meets, "c": meets}, (GroupSpec("all", ("a", "b", "c")),))
    replies = await group(desk, "hello", sender="c")
    assert texts(replies) == {"a": "met", "b": "met"}
    assert desk.told("c") == []


async def test_each_member_is_told_the_group_itself_and_what_is_new() -> None:
    desk = Desk(
        {"a": says("I am a.", "More."), "b": says("I am b.")}, (GroupSpec("all", ("a", "b")),)
    )
    await group(desk, "Who are you?")
    assert desk.told("a")[0] == (
        "Group all; you are a, the others are b. New there:\n\n## main\nWho are you?\n\n"
        "Your answer goes to the group. Write @name only where that member must answer."
    )
    await group(desk, "@a say more")
    new = desk.told("a")[1]
    assert "## b\nI am b." in new
    assert "## main\n@a say more" in new
    assert "Who are you?" not in new
    assert "I am a." not in new
    assert len(desk.told("b")) == 1


async def test_who_is_mentioned_answers_and_the_others_hear_it_later() -> None:
    desk = Desk({"a": says("a here"), "b": says("b here")}, (GroupSpec("all", ("a", "b")),))
    assert texts(await group(desk, "@b: your view?")) == {"b": "b here"}
    assert desk.said[0].mentions == ("b",)
    await group(desk, "now both")
    assert "@b: your view?" in desk.told("a")[0]
    assert "## b\nb here" in desk.told("a")[0]


async def test_an_answer_that_mentions_members_goes_on_to_them_until_nobody_is_called() -> None:
    desk = Desk(
        {"a": says("@b what do you think?"), "b": says("b one", "@c you?"), "c": says("c one")},
        (GroupSpec("all", ("a", "b", "c")),),
    )
    replies = await group(desk, "@a begin")
    assert [(reply.agent, reply.text) for reply in replies] == [
        ("a", "@b what do you think?"),
        ("b", "b one"),
    ]
    replies = await group(desk, "@b go on")
    assert [reply.agent for reply in replies] == ["b", "c"]
    assert desk.said[-1].mentions == ()


async def test_a_mention_of_the_speaker_or_of_itself_calls_nobody() -> None:
    desk = Desk({"a": says("@a I mean @main")}, (GroupSpec("all", ("a", "main")),))
    replies = await group(desk, "hello")
    assert texts(replies) == {"a": "@a I mean @main"}


async def test_a_member_that_fails_leaves_the_others_alone() -> None:
    async def fails(text: str) -> str:
        raise ModelError("away")

    async def breaks(text: str) -> str:
        raise RuntimeError("a mistake")

    desk = Desk(
        {"a": fails, "b": breaks, "c": says("fine")}, (GroupSpec("all", ("a", "b", "c", "nobody")),)
    )
    replies = {reply.agent: reply for reply in await group(desk, "hello")}
    assert (replies["a"].ok, replies["a"].error) == (False, "away")
    assert (replies["b"].ok, replies["b"].error) == (False, "a mistake")
    assert (replies["c"].ok, replies["c"].text) == (True, "fine")
    assert (
        replies["nobody"].error == "There is no agent named nobody. Agents: a, b, c. Groups: all."
    )


async def test_a_log_that_can_not_be_written_ends_the_talk() -> None:
    desk = Desk({"a": says("x")}, (GroupSpec("all", ("a",)),))
    desk.refusal = StoreError("The disk is full.")
    with pytest.raises(StoreError):
        await group(desk, "hello")


async def test_a_group_that_argues_without_end_is_stopped_by_its_messages_and_all_are_told() -> (
    None
):
    desk = Desk(
        {"a": says("No, @b!"), "b": says("Yes, @a!")},
        (GroupSpec("all", ("a", "b"), messages=9),),
    )
    replies = await group(desk, "@a discuss")
    assert replies[-1].agent == ""
    assert not replies[-1].ok
    assert replies[-1].error.startswith("The talk was ended: it may have 9 messages.")
    assert len([each for each in desk.said if each.sender]) == 9
    assert desk.said[-1].error == "group_limit"
    await group(desk, "@b anything else?")
    assert "The talk was ended" in next(t for t in desk.told("b") if "anything else" in t)


async def test_a_group_with_more_members_than_messages_asks_as_many_as_it_may() -> None:
    members = tuple("abcde")
    desk = Desk(dict.fromkeys(members, says("x")), (GroupSpec("all", members, messages=3),))
    replies = await group(desk, "hello")
    assert len([reply for reply in replies if reply.ok]) == 2
    assert "Not asked any more: c, d, e." in replies[-1].error


async def test_a_groups_cost_is_divided_among_those_asked_and_ends_its_talk() -> None:
    desk = Desk(
        {"a": says("@b?"), "b": says("@a?")},
        (GroupSpec("all", ("a", "b"), cost=0.035),),
        price=0.01,
    )
    replies = await group(desk, "hello")
    assert sorted(reply.agent for reply in replies) == ["", "a", "a", "b", "b"]
    assert replies[-1].error.startswith("The talk was ended: it may cost $0.035.")
    limits = [order.limits.cost for order, _, _ in desk.orders]
    assert limits[0] == pytest.approx(0.0175)
    assert sum(limit for limit in limits[2:] if limit) <= 0.035


async def test_a_cost_that_is_unknown_can_not_be_held() -> None:
    desk = Desk(
        {"a": says("@b?"), "b": says("@a?")}, (GroupSpec("all", ("a", "b"), cost=1.0),), price=None
    )
    replies = await group(desk, "hello")
    assert "what it has cost is unknown" in replies[-1].error


async def test_members_share_what_is_left_and_leave_a_part() -> None:
    desk = Desk(dict.fromkeys("abc", says("x")), (GroupSpec("all", ("a", "b", "c")),))
    await group(desk, "hello")
    assert sorted(share for _, share, _ in desk.orders) == [2, 3, 4]


async def test_so_many_members_work_at_once_and_no_more() -> None:
    members = tuple(f"m{n}" for n in range(AT_ONCE + 5))
    gate = asyncio.Event()

    async def waits(text: str) -> str:
        if desk.working == AT_ONCE:
            gate.set()
        await gate.wait()
        return "x"

    desk = Desk(dict.fromkeys(members, waits), (GroupSpec("all", members),))
    assert len(await group(desk, "hello")) == len(members)
    assert desk.most == AT_ONCE


async def test_two_groups_work_independently_and_share_a_member_in_turns() -> None:
    a, b = GroupSpec("left", ("a", "both")), GroupSpec("right", ("b", "both"))
    desk = Desk({"a": says("a"), "b": says("b"), "both": says("1", "2")}, (a, b))
    left, right = await asyncio.gather(group(desk, "hi", "left"), group(desk, "ho", "right"))
    assert {reply.agent for reply in left} == {"a", "both"}
    assert {reply.agent for reply in right} == {"b", "both"}
    first, second = desk.told("both")
    assert ("hi" in first) != ("hi" in second)
    assert {each.group for each in desk.said} == {"left", "right"}


async def test_two_talks_in_one_group_are_both_answered() -> None:
    desk = Desk({"a": says("1", "2")}, (GroupSpec("all", ("a",)),))
    one, two = await asyncio.gather(group(desk, "first?"), group(desk, "second?"))
    assert [reply.ok for reply in (*one, *two)] == [True, True]
    assert "second?" in desk.told("a")[1]


async def test_a_member_that_waits_for_the_speaker_is_not_asked() -> None:
    async def opens_a_talk(text: str) -> str:
        if "New there" in text:
            return "never asked"
        own = desk.hub.join(ChildOpened("", "a", "", label="hub"), "")
        return ", ".join(f"{r.agent}: {r.text}" for r in await own.talk_to_group("all", "help"))

    async def asks_back(text: str) -> str:
        own = desk.hub.join(ChildOpened("", "b", "", label="hub"), "")
        try:
            return (await own.talk("a", "why?")).text
        except CrozeError as error:
            return error.code

    answers: dict[str, Answer] = {"a": opens_a_talk, "b": asks_back}
    desk = Desk(answers, (GroupSpec("all", ("a", "b")),))
    reply = await asyncio.wait_for(desk.hub.voice("main").talk("a", "go"), 5)
    assert reply.text == "b: talk_in_circle"


async def test_a_cancel_ends_all_members() -> None:
    async def hangs(text: str) -> str:
        started.append(text)
        if len(started) == 3:
            all_started.set()
        await asyncio.Event().wait()
        return ""

    started: list[str] = []
    all_started = asyncio.Event()
    desk = Desk(dict.fromkeys("abc", hangs), (GroupSpec("all", ("a", "b", "c")),))
    talking = asyncio.create_task(group(desk, "hello"))
    await asyncio.wait_for(all_started.wait(), 5)
    talking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await talking
    assert desk.working == 0
    assert desk.open == set()


async def test_a_group_of_nobody_else_is_told() -> None:
    desk = Desk({"a": says("x")}, (GroupSpec("all", ("a",)),))
    with pytest.raises(CrozeError) as caught:
        await group(desk, "hello", sender="a")
    assert caught.value.code == "empty_group"
