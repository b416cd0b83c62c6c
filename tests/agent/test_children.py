"""Sub-agents are sessions of their own: they work side by side, report, cost, and share what they can."""

import asyncio

import pytest

from croze.types.event import Event, HeadSet, ModelCalled, SessionOpened, Stopped, ToolReturned
from croze.types.news import ChildNews
from tests.agent.conftest import BOUND, Desk, bodies
from tests.agent.team_cast import Cast, opened, replays, reports, results, subagents
from tests.model_server import Reply


async def test_three_children_work_side_by_side_and_report(any_desk: Desk) -> None:
    desk = any_desk
    say = desk.reply
    cast = Cast(
        desk,
        [
            say("I ask three.", [subagents("look at alpha", "look at beta", "look at gamma")]),
            say("All three have answered."),
        ],
        {
            "alpha": [say("", [("list_files", {"path": "."})]), say("alpha is found")],
            "beta": [say("beta is found")],
            "gamma": [say("", [("attempt_completion", {"result": "gamma is done"})])],
        },
    )
    session, (stopped,) = await desk.run("find them")
    assert stopped.reason == "done"
    assert stopped.steps == 2 + 2 + 1 + 1
    assert [report.text for report in reports(session)] == [
        "alpha is found", "beta is found", "gamma is done",
    ]  # fmt: skip
    (result,) = results(session)
    assert result.ok
    assert result.message == "3 of 3 sub-agents are done."
    for text in ("alpha is found", "beta is found", "gamma is done"):
        assert text in result.text
    assert [row["status"] for row in result.data] == ["done", "done", "done"]
    assert {role: len(asked) for role, asked in cast.asked.items()} == {
        "main": 2, "alpha": 2, "beta": 1, "gamma": 1,
    }  # fmt: skip
    await replays(desk, *(each.child for each in opened(session)))


async def test_a_childs_log_says_whose_it_is_and_how_deep(desk: Desk) -> None:
    order = {"name": "explore", "task": "look at alpha", "label": "a"}
    Cast(desk, [desk.reply("", [subagents(order)]), desk.reply("ok")], {"alpha": [desk.reply("x")]})
    session, _ = await desk.run("go")
    (known,) = opened(session)
    log = await desk.log(known.child)
    first = log[0].body
    assert isinstance(first, SessionOpened)
    assert first.parent == session.id
    call_id = results(session)[0].call_id
    assert first.metadata == {
        "agent": "explore", "agent_id": known.child, "depth": 1, "label": "a", "call_id": call_id,
    }  # fmt: skip
    assert known.call_id == call_id
    assert [body.agent.name for body in bodies(log, HeadSet)] == ["explore"]


async def test_serial_children_come_one_after_the_other(desk: Desk) -> None:
    say = desk.reply
    Cast(
        desk,
        [say("", [subagents("write alpha", "read beta", mode="serial")]), say("ok")],
        {
            "alpha": [
                say("", [("write_to_file", {"path": "a.txt", "content": "A"})]),
                say("wrote"),
            ],
            "beta": [say("", [("read_file", {"path": "a.txt"})]), say("read")],
        },
    )
    session, _ = await desk.run("go")
    first, second = reports(session)
    assert first.files == ("a.txt",)
    log = await desk.log(second.session)
    (read,) = bodies(log, ToolReturned)
    assert read.ok
    assert "A" in read.text


async def test_an_unknown_agent_starts_nothing_and_the_right_form_is_told(
    dialect_desk: Desk,
) -> None:
    desk = dialect_desk
    wrong = subagents({"name": "coder", "task": "x"}, {"name": "general", "task": "y"})
    Cast(desk, [desk.reply("", [wrong]), desk.reply("then not")], {})
    session, (stopped,) = await desk.run("go")
    assert stopped.reason == "done"
    (result,) = results(session)
    assert not result.ok
    assert result.code == "invalid_subagents"
    assert "Entry 1: there is no agent named 'coder'" in result.message
    assert "explore" in result.message
    assert "subagents:" in result.text
    assert opened(session) == []


async def test_a_child_has_no_tool_that_its_agent_may_not_have(dialect_desk: Desk) -> None:
    desk = dialect_desk
    say = desk.reply
    Cast(
        desk,
        [say("", [subagents({"name": "explore", "task": "change alpha"})]), say("ok")],
        {
            "alpha": [
                say("", [("write_to_file", {"path": "a.txt", "content": "A"})]),
                say("I can't write."),
            ]
        },
    )
    session, _ = await desk.run("go")
    assert not (desk.project / "a.txt").exists()
    (report,) = reports(session)
    assert report.files == ()
    log = await desk.log(report.session)
    assert [body.code for body in bodies(log, ToolReturned)] in ([], ["unknown_tool"])


async def test_a_child_of_a_child_calls_nobody(desk: Desk) -> None:
    say = desk.reply
    Cast(
        desk,
        [say("", [subagents("first alpha")]), say("ok")],
        {
            "alpha": [say("", [subagents("second beta")]), say("beta did it")],
            "beta": [say("", [subagents("third gamma")]), say("alone")],
        },
    )
    session, (stopped,) = await desk.run("go")
    assert stopped.steps == 6
    (report,) = reports(session)
    inner = await desk.log(report.session)
    (known,) = bodies(inner, SessionOpened)
    assert known.metadata["depth"] == 1
    deepest = next(b for b in bodies(inner, ToolReturned)).data[0]["session"]
    refused = bodies(await desk.log(deepest), ToolReturned)[0]
    assert not refused.ok
    assert refused.code == "not_started"
    assert "depth 2" in refused.message


async def test_a_child_whose_model_fails_is_a_report_and_the_others_go_on(desk: Desk) -> None:
    say = desk.reply
    Cast(
        desk,
        [say("", [subagents("ask alpha", "ask beta")]), say("one of them failed")],
        {"alpha": [Reply(fault="400", message="no such model")], "beta": [say("beta is fine")]},
    )
    session, (stopped,) = await desk.run("go")
    assert stopped.reason == "done"
    failed, fine = reports(session)
    assert (failed.ok, failed.reason) == (False, "failed")
    assert "no such model" in failed.error
    assert (fine.ok, fine.text) == (True, "beta is fine")
    (result,) = results(session)
    assert result.ok
    assert "no such model" in result.text


async def test_what_children_cost_is_the_callers_cost(desk: Desk) -> None:
    say = desk.reply
    Cast(
        desk,
        [say("", [subagents("ask alpha")]), say("ok")],
        {"alpha": [say("", [("list_files", {"path": "."})]), say("done")]},
    )
    session, (stopped,) = await desk.run("go")
    (report,) = reports(session)
    assert report.cost
    assert report.cost > 0
    async with desk.app() as app:
        summary = await app.conversations.get(session.id)
        assert summary.children_cost == pytest.approx(report.cost)
        assert summary.cost == pytest.approx(stopped.cost)
        assert [each.id for each in await app.conversations.list()] == [session.id]
        both = await app.conversations.list(include_children=True)
        assert {each.id for each in both} == {session.id, report.session}


async def test_news_of_children_lead_to_them_with_what_they_cost(desk: Desk) -> None:
    say = desk.reply
    Cast(
        desk,
        [say("", [subagents("first alpha")]), say("ok")],
        {"alpha": [say("", [subagents("second beta")]), say("done")], "beta": [say("deep")]},
    )
    news: list[ChildNews] = []
    async with desk.session() as session:
        session.subscribe(lambda item: news.append(item) if isinstance(item, ChildNews) else None)
        await asyncio.wait_for(session.submit("go"), BOUND)
    paths = {tuple(agent for _, agent in each.path) for each in news}
    assert paths == {("general",), ("general", "general")}
    assert {each.session for each in news} == {session.id}
    (report,) = reports(session)
    own = [each for each in news if len(each.path) == 1]
    stopped = [each for each in own if isinstance(getattr(each.item, "body", None), Stopped)]
    assert stopped[-1].subtree == pytest.approx(report.cost)
    assert stopped[-1].cost is not None
    assert report.cost is not None
    assert stopped[-1].cost < report.cost
    deep = [each for each in news if len(each.path) == 2]
    assert any(isinstance(getattr(each.item, "body", None), ModelCalled) for each in deep)


async def test_each_event_of_the_caller_is_told_once_and_in_order(desk: Desk) -> None:
    say = desk.reply
    tasks = [f"ask role{n}" for n in range(4)]
    Cast(
        desk,
        [say("", [subagents(*tasks)]), say("ok")],
        {f"role{n}": [say("", [("list_files", {"path": "."})]), say("done")] for n in range(4)},
    )
    seqs: list[int] = []
    async with desk.session() as session:
        before = len(session.events)
        session.subscribe(lambda item: seqs.append(item.seq) if isinstance(item, Event) else None)
        await asyncio.wait_for(session.submit("go"), BOUND)
        assert seqs == list(range(before + 1, len(session.events) + 1))
