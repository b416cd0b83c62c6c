"""Sub-agents that are stopped: by the user, by a budget, by what they hang on. What they have is kept."""

import asyncio

import pytest

from croze.agent.child import children_of
from croze.types.event import Asked, ChildClosed, ChildOpened, ModelSaid, ToolReturned
from tests.agent.conftest import BOUND, Desk, bodies, is_event, seen
from tests.agent.team_cast import Cast, news_of, opened, replays, reports, results, subagents
from tests.model_server import Reply

LOOKS = [("list_files", {"path": "."})]


async def test_a_cancel_stops_all_of_them_and_their_work_is_told(dialect_desk: Desk) -> None:
    desk = dialect_desk
    say = desk.reply
    cast = Cast(
        desk,
        [say("", [subagents("ask alpha", "ask beta")]), say("I go on.")],
        {
            "alpha": [say("alpha has begun", LOOKS), Reply(fault="stall", text="wait", after=0)],
            "beta": [Reply(fault="silent")],
        },
    )
    async with desk.session() as session:
        turn = asyncio.create_task(session.submit("go"))
        await asyncio.wait_for(news_of(session, ToolReturned), BOUND)
        session.cancel()
        stopped = await asyncio.wait_for(turn, BOUND)
        assert stopped.reason == "cancelled"
        alpha, beta = reports(session)
        assert (alpha.reason, alpha.partial, alpha.text) == ("cancelled", True, "alpha has begun")
        assert (beta.ok, beta.reason, beta.partial) == (False, "cancelled", False)
        (result,) = results(session)
        assert result.code == "interrupted"
        assert "alpha has begun" in result.text
        await asyncio.wait_for(session.submit("and now?"), BOUND)
        assert "alpha has begun" in cast.asked["main"][-1].body.decode()
    await replays(desk, *(each.child for each in opened(session)))


async def test_one_can_be_stopped_and_the_others_go_on(desk: Desk) -> None:
    say = desk.reply
    Cast(
        desk,
        [say("", [subagents("ask alpha", "ask beta")]), say("fine")],
        {"alpha": [Reply(fault="silent")], "beta": [say("beta is done")]},
    )
    async with desk.session() as session:
        ended = seen(session, is_event(ChildClosed))
        turn = asyncio.create_task(session.submit("go"))
        await asyncio.wait_for(ended, BOUND)
        children = session.children
        assert children is not None
        (alpha,) = children.open_ones
        children.cancel(alpha.session)
        stopped = await asyncio.wait_for(turn, BOUND)
    assert stopped.reason == "done"
    assert [report.reason for report in reports(session)] == ["cancelled", "done"]
    (result,) = results(session)
    assert result.ok
    assert "stopped" in result.text


async def test_one_that_waits_for_its_turn_does_not_begin_when_all_are_stopped(desk: Desk) -> None:
    desk.overrides["teams.parallel"] = 1
    say = desk.reply
    Cast(
        desk,
        [say("", [subagents("ask alpha", "ask beta")]), say("fine")],
        {"alpha": [Reply(fault="silent")], "beta": [say("never asked")]},
    )
    async with desk.session() as session:
        begun = seen(session, is_event(ChildOpened))
        turn = asyncio.create_task(session.submit("go"))
        await asyncio.wait_for(begun, BOUND)
        assert session.children is not None
        session.children.cancel()
        await asyncio.wait_for(turn, BOUND)
    assert [known.opened.task for known in children_of(session.events)] == ["ask alpha"]
    (result,) = results(session)
    assert [row["reason"] for row in result.data] == ["cancelled", "cancelled"]


async def test_no_more_work_at_a_time_than_is_allowed(desk: Desk) -> None:
    desk.overrides["teams.parallel"] = 2
    say = desk.reply
    tasks = [f"ask role{n}" for n in range(6)]
    Cast(
        desk,
        [say("", [subagents(*tasks)]), say("fine")],
        {f"role{n}": [say("", LOOKS), say("done")] for n in range(6)},
    )
    at_once = most = 0

    def watch(item: object) -> None:
        nonlocal at_once, most
        body = getattr(item, "body", None)
        at_once += isinstance(body, ChildOpened) - isinstance(body, ChildClosed)
        most = max(most, at_once)

    async with desk.session() as session:
        session.subscribe(watch)
        await asyncio.wait_for(session.submit("go"), BOUND)
    assert most == 2
    assert [report.text for report in reports(session)] == ["done"] * 6


async def test_a_child_that_hangs_ends_with_its_time(desk: Desk) -> None:
    say = desk.reply
    hanging = {"name": "general", "task": "ask alpha", "max_time": "0.3"}
    Cast(
        desk,
        [say("", [subagents(hanging, "ask beta")]), say("fine")],
        {"alpha": [Reply(fault="silent")], "beta": [say("beta is done")]},
    )
    session, (stopped,) = await desk.run("go")
    assert stopped.reason == "done"
    assert [report.reason for report in reports(session)] == ["seconds", "done"]
    assert reports(session)[0].error == "The limit of 0.3 seconds is reached."


async def test_a_command_that_hangs_ends_with_its_agents_time(desk: Desk) -> None:
    say = desk.reply
    hanging = {"name": "general", "task": "ask alpha", "max_time": "1"}
    Cast(
        desk,
        [say("", [subagents(hanging)]), say("fine")],
        {"alpha": [say("I wait.", [("execute_command", {"command": "sleep 600"})])]},
    )
    session, (stopped,) = await desk.run("go")
    assert stopped.reason == "done"
    (report,) = reports(session)
    assert (report.reason, report.partial, report.text) == ("seconds", True, "I wait.")


async def test_children_share_the_steps_of_the_turn(desk: Desk) -> None:
    """Ten steps: one is used, one is kept for the caller, the eight others are halved."""
    say = desk.reply
    Cast(
        desk,
        [say("", [subagents("ask alpha", "ask beta")]), say("fine")],
        {"alpha": [say(f"alpha {n}", LOOKS if n % 2 else [("todo_read", {})]) for n in range(9)],
         "beta": [say("beta is done")]},
    )  # fmt: skip
    session, (stopped,) = await desk.run("go", max_turns=10)
    alpha, beta = reports(session)
    assert [known.lease.steps for known in opened(session)] == [4, 4]
    assert (alpha.reason, alpha.steps, alpha.text) == ("steps", 4, "alpha 3")
    assert alpha.partial
    assert beta.ok
    assert (stopped.reason, stopped.steps) == ("done", 1 + 4 + 1 + 1)
    await replays(desk, *(each.child for each in opened(session)))


async def test_what_one_leaves_the_next_may_use(desk: Desk) -> None:
    desk.overrides["teams.parallel"] = 1
    say = desk.reply
    Cast(
        desk,
        [say("", [subagents("ask alpha", "ask beta")]), say("fine")],
        {"alpha": [say("quick")], "beta": [say("quick too")]},
    )
    session, _ = await desk.run("go", max_turns=10)
    assert [known.lease.steps for known in opened(session)] == [4, 7]


async def test_a_child_that_cannot_be_paid_is_refused(desk: Desk) -> None:
    say = desk.reply
    Cast(desk, [say("", [subagents("ask alpha")]), say("alone then")], {})
    session, (stopped,) = await desk.run("go", max_turns=2)
    assert stopped.reason == "done"
    assert opened(session) == []
    (result,) = results(session)
    assert (result.ok, result.code) == (False, "not_started")
    assert "budget" in result.message


async def test_money_is_leased_and_a_child_over_it_is_stopped(desk: Desk) -> None:
    say = desk.reply
    dear = say("dear", LOOKS, input=40_000)
    Cast(
        desk,
        [say("", [subagents("ask alpha")]), say("fine")],
        {"alpha": [dear, dear, dear, say("never")]},
    )
    session, (stopped,) = await desk.run("go", max_cost=0.2)
    (report,) = reports(session)
    lease = opened(session)[0].lease.cost
    assert lease == pytest.approx(0.9 * (0.2 - 0.000_24), rel=0.01)
    assert report.reason == "cost"
    assert report.cost is not None
    assert lease is not None
    assert lease <= report.cost <= lease + 0.09
    assert stopped.cost is not None
    assert stopped.cost >= report.cost


async def test_a_childs_question_reaches_the_user_and_his_answer_the_child(desk: Desk) -> None:
    say = desk.reply
    Cast(
        desk,
        [say("", [subagents("ask alpha")]), say("fine")],
        {"alpha": [say("", [("write_to_file", {"path": "a.txt", "content": "A"})]), say("wrote")]},
    )
    async with desk.session(mode="ask", headless=False) as session:
        turn = asyncio.create_task(session.submit("go"))
        news = await asyncio.wait_for(news_of(session, Asked), BOUND)
        assert [agent for _, agent in news.path] == ["general"]
        asked = news.item.body  # type: ignore[union-attr]  # an event, as was asked for
        assert isinstance(asked, Asked)
        assert session.answer(asked.ask_id, "once")
        assert not session.answer(asked.ask_id, "once")
        await asyncio.wait_for(turn, BOUND)
    assert (desk.project / "a.txt").read_text().strip() == "A"
    (report,) = reports(session)
    assert report.files == ("a.txt",)


async def test_a_child_that_was_not_allowed_something_counts_in_the_callers_turn(
    desk: Desk,
) -> None:
    say = desk.reply
    Cast(
        desk,
        [say("", [subagents("ask alpha")]), say("fine")],
        {"alpha": [say("", [("write_to_file", {"path": "a.txt", "content": "A"})]), say("no")]},
    )
    session, (stopped,) = await desk.run("go", mode="ask")
    assert stopped.refused == 1
    (result,) = results(session)
    assert "not allowed" in result.text
    assert bodies(session.events, ModelSaid)
