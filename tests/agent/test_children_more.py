"""Sub-agents and the rest: hooks, sessions taken up again, other agents' names for it, the family tree."""

import asyncio
import os

import pytest

from croze.app.family import family_of
from croze.app.paths import Paths
from croze.types.errors import CrozeError
from croze.types.event import ChildClosed, ChildOpened, HooksRan, SessionOpened, UserSaid
from croze.types.team import Lease, Order
from tests.agent.conftest import BOUND, Desk, bodies
from tests.agent.team_cast import Cast, opened, replays, reports, results, subagents


async def test_hooks_see_a_childs_calls_and_its_end_but_not_its_session(desk: Desk) -> None:
    config = Paths.of(os.environ).config
    config.mkdir(parents=True, exist_ok=True)
    points = ("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SubagentStop")
    log = desk.project.parent / "points.txt"
    (config / "hooks.toml").write_text(
        "".join(f'[[{point}]]\ncommand = "echo {point} >> {log}"\n' for point in points)
    )
    say = desk.reply
    Cast(
        desk,
        [say("", [subagents("ask alpha")]), say("ok")],
        {"alpha": [say("", [("list_files", {"path": "."})]), say("done")]},
    )
    session, _ = await desk.run("go")
    assert sorted(log.read_text().split()) == [
        "PreToolUse", "PreToolUse", "SessionStart", "Stop", "SubagentStop", "UserPromptSubmit",
    ]  # fmt: skip
    child = await desk.log(opened(session)[0].child)
    assert [body.point for body in bodies(child, HooksRan)] == ["PreToolUse", "SubagentStop"]
    await replays(desk, opened(session)[0].child)


async def test_a_hook_can_hold_a_child_at_its_work(desk: Desk) -> None:
    config = Paths.of(os.environ).config
    config.mkdir(parents=True, exist_ok=True)
    mark = desk.project.parent / "held"
    script = f"if [ -e {mark} ]; then exit 0; fi; touch {mark}; echo check it again >&2; exit 2"
    (config / "hooks.toml").write_text(f'[[SubagentStop]]\ncommand = "{script}"\n')
    say = desk.reply
    cast = Cast(
        desk,
        [say("", [subagents("ask alpha")]), say("ok")],
        {"alpha": [say("done"), say("checked and done")]},
    )
    session, _ = await desk.run("go")
    assert [report.text for report in reports(session)] == ["checked and done"]
    assert "check it again" in cast.asked["alpha"][1].body.decode()


async def test_the_task_tool_of_other_agents_is_understood(dialect_desk: Desk) -> None:
    desk = dialect_desk
    say = desk.reply
    task = {"description": "find alpha", "prompt": "ask alpha: where?", "subagent_type": "explore"}
    Cast(desk, [say("", [("Task", task)]), say("ok")], {"alpha": [say("there")]})
    session, _ = await desk.run("go")
    (known,) = opened(session)
    assert (known.agent, known.label, known.task) == ("explore", "find alpha", "ask alpha: where?")
    assert results(session)[0].ok


async def test_a_session_is_taken_up_again_and_counts_only_what_is_new(desk: Desk) -> None:
    say = desk.reply
    cast = Cast(desk, [say("hello")], {"alpha": [say("first"), say("second")]})
    async with desk.session() as session:
        await asyncio.wait_for(session.submit("go"), BOUND)
        children = session.children
        assert children is not None
        order = Order(agent="explore", task="ask alpha")
        first = await children.run(order)
        child = await children.open(order, resume=first.session)
        assert child.session == first.session
        stopped = await child.submit("and now?")
        assert stopped.text == child.answer == "second"
        second = await child.close()
        assert await child.close() == second
        assert (first.steps, second.steps) == (1, 1)
        with pytest.raises(CrozeError, match="is closed"):
            await child.submit("more")
    again = cast.asked["alpha"][1].body.decode()
    assert "first" in again
    assert "and now?" in again
    log = await desk.log(first.session)
    assert len(bodies(log, SessionOpened)) == 1
    assert len(bodies(log, UserSaid)) == 2
    assert [body.since for body in bodies(session.events, ChildOpened)] == [0, second_since(log)]


def second_since(log: list[object]) -> int:
    """Where the log stood when it was taken up again."""
    seqs = [event.seq for event in log if isinstance(event.body, UserSaid)]  # type: ignore[attr-defined]
    return seqs[1] - 1


async def test_a_child_that_goes_on_remembers_and_leases_anew(desk: Desk) -> None:
    say = desk.reply
    Cast(desk, [say("hello")], {"alpha": [say("one"), say("two")]})
    async with desk.session() as session:
        await asyncio.wait_for(session.submit("go"), BOUND)
        assert session.children is not None
        order = Order(agent="general", task="ask alpha", limits=Lease(steps=2))
        child = await session.children.open(order)
        await child.submit("ask alpha")
        assert child.allowance().steps == 1
        await child.submit("again, alpha")
        assert child.answer == "two"
        report = await child.close()
        assert (report.steps, report.text) == (2, "two")


async def test_children_left_open_end_with_the_session(desk: Desk) -> None:
    Cast(desk, [desk.reply("hello")], {"alpha": [desk.reply("one")]})
    async with desk.app() as app:
        session = await app.session(desk.options())
        await asyncio.wait_for(session.submit("go"), BOUND)
        assert session.children is not None
        child = await session.children.open(Order(agent="general", task="x"))
        await child.submit("ask alpha")
        await app.leave(session)
    log = await desk.log(session.id)
    (closed,) = bodies(log, ChildClosed)
    assert closed.report.text == "one"


@pytest.mark.parametrize(
    ("order", "code"),
    [
        (Order(agent="nobody", task="x"), "unknown_agent"),
        (Order(agent="general", task="x"), "too_deep"),
    ],
)
async def test_what_cannot_be_opened_is_raised_and_leaves_nothing(
    desk: Desk, order: Order, code: str
) -> None:
    if code == "too_deep":
        desk.overrides["teams.depth"] = 0
    Cast(desk, [desk.reply("hello")], {})
    async with desk.session() as session:
        await asyncio.wait_for(session.submit("go"), BOUND)
        assert session.children is not None
        with pytest.raises(CrozeError) as raised:
            await session.children.open(order)
        assert raised.value.code == code
        assert opened(session) == []
        report = await session.children.run(order)
        assert (report.ok, report.reason, report.session) == (False, "refused", "")


async def test_a_child_that_cannot_be_made_is_closed_in_the_log(desk: Desk) -> None:
    """Its agent's limit is money, and its model has no price."""
    user = Paths.of(os.environ).config / "agents"
    user.mkdir(parents=True, exist_ok=True)
    text = "---\nname: dear\ndescription: d\nmodel: openai:no-such-model\nmax_cost: 1\n---\nWork."
    (user / "dear.md").write_text(text)
    order = {"name": "dear", "task": "x"}
    Cast(desk, [desk.reply("", [subagents(order)]), desk.reply("ok")], {})
    session, _ = await desk.run("go")
    (report,) = reports(session)
    assert (report.ok, report.reason) == (False, "refused")
    assert "price" in report.error
    async with desk.app() as app:
        found = await app.conversations.list(include_children=True)
        assert [each.id for each in found] == [session.id]


async def test_the_family_is_shown_as_a_tree(desk: Desk) -> None:
    say = desk.reply
    Cast(
        desk,
        [say("", [subagents("first alpha", {"name": "explore", "task": "then gamma"})]), say("ok")],
        {
            "alpha": [say("", [subagents("second beta")]), say("done")],
            "beta": [say("deep")],
            "gamma": [say("seen")],
        },
    )
    session, (stopped,) = await desk.run("go")
    async with desk.app() as app:
        family = await family_of(app, session.id[:8])
    assert (family.agent, family.state, family.steps) == ("main", "done", stopped.steps)
    assert family.cost == pytest.approx(stopped.cost)
    alpha, gamma = family.children
    assert (alpha.agent, alpha.task, alpha.steps) == ("general", "first alpha", 3)
    assert (gamma.agent, gamma.state) == ("explore", "done")
    (beta,) = alpha.children
    assert (beta.task, beta.steps, beta.children) == ("second beta", 1, ())
    assert family.own_cost is not None
    assert family.cost is not None
    assert family.own_cost < family.cost
