"""Talk between two agents: memory, order, refusals, failures, cancels, restarts."""

import asyncio

import pytest

from croze.types.agent import AgentSpec
from croze.types.errors import CrozeError, ModelError, StoreError, UsageError
from croze.types.team import ChildOpened, GroupSpec
from tests.sandboxes import until
from tests.teams.hub_desk import Answer, Desk, says


async def test_an_agents_session_is_opened_at_first_and_taken_up_later() -> None:
    desk = Desk({"critic": says("first", "second")})
    voice = desk.hub.voice("main")
    replies = [await voice.talk("critic", "one"), await voice.talk("critic", "two")]
    assert [reply.text for reply in replies] == ["first", "second"]
    assert {order.agent for order, _, _ in desk.orders} == {"critic"}
    assert desk.hub.talks.sessions == {"critic": "critic-1"}
    assert desk.told("critic") == ["Message from main:\n\none", "Message from main:\n\ntwo"]
    assert desk.open == set()


async def test_what_is_said_stands_in_the_log_with_what_it_answers() -> None:
    desk = Desk({"critic": says("No.")})
    await desk.hub.voice("main").talk("critic", "Good?", call_id="123456789")
    question, answer = desk.said
    assert (question.sender, question.to, question.text) == ("main", "critic", "Good?")
    assert (answer.sender, answer.to, answer.text) == ("critic", "main", "No.")
    assert answer.reply_to == question.said_id
    assert desk.orders[0][2] == "123456789"


async def test_secrets_are_not_recorded() -> None:
    desk = Desk({"critic": says("ok")})
    await desk.hub.voice("main").talk("critic", "use ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")
    assert "ghp_" not in desk.said[0].text


async def test_a_busy_agent_takes_its_messages_in_their_order() -> None:
    gate = asyncio.Event()

    async def slow(text: str) -> str:
        await gate.wait()
        return text

    desk = Desk({"critic": slow})
    voice = desk.hub.voice("main")
    talks = [asyncio.create_task(voice.talk("critic", str(n))) for n in range(5)]
    await until(lambda: len(desk.said) == 5)
    assert len(desk.heard) == 1
    gate.set()
    replies = await asyncio.gather(*talks)
    assert [reply.text[-1] for reply in replies] == list("01234")
    assert [text[-1] for text in desk.told("critic")] == list("01234")


async def test_there_must_be_an_agent_of_that_name() -> None:
    desk = Desk({"critic": says("x")}, groups=(GroupSpec("all", ("critic",)),))
    voice = desk.hub.voice("main")
    with pytest.raises(CrozeError) as caught:
        await voice.talk("critc", "hello")
    assert caught.value.code == "unknown_agent"
    assert caught.value.hint == "Agents: critic. Groups: all."
    with pytest.raises(CrozeError) as caught:
        await voice.talk("all", "hello")
    assert caught.value.hint == "all is a group: use talk_to_group."
    with pytest.raises(CrozeError) as caught:
        await voice.talk_to_group("critic", "hello")
    assert caught.value.hint == "critic is an agent: use talk_to."
    assert desk.said == []


async def test_nobody_talks_to_itself() -> None:
    desk = Desk({"critic": says("x")})
    with pytest.raises(CrozeError) as caught:
        await desk.hub.voice("critic").talk("critic", "hello")
    assert caught.value.code == "talk_to_self"


async def test_agents_that_wait_for_each_other_in_a_circle_are_refused() -> None:
    codes: list[str] = []

    def passes_on(name: str, to: str) -> Answer:
        async def answer(text: str) -> str:
            order = ChildOpened("", name, "", label="hub")
            try:
                return (await desk.hub.join(order, "").talk(to, "and you?")).text
            except CrozeError as error:
                codes.append(error.code)
                return "I answer alone."

        return answer

    desk = Desk({"a": passes_on("a", "b"), "b": passes_on("b", "c"), "c": passes_on("c", "a")})
    reply = await asyncio.wait_for(desk.hub.voice("main").talk("a", "go"), 5)
    assert reply.text == "I answer alone."
    assert codes == ["talk_in_circle"]


async def test_a_sub_agent_of_an_agent_can_not_talk_to_it() -> None:
    async def with_helper(text: str) -> str:
        own = desk.hub.join(ChildOpened("", "a", "", label="hub"), "")
        helper = desk.hub.join(ChildOpened("helper-1", "explore", ""), own.node)
        with pytest.raises(CrozeError) as caught:
            await helper.talk("a", "what now?")
        return caught.value.code

    desk = Desk({"a": with_helper, "explore": says("x")})
    reply = await asyncio.wait_for(desk.hub.voice("main").talk("a", "go"), 5)
    assert reply.text == "talk_in_circle"


async def test_an_agent_may_ask_another_one_while_it_works() -> None:
    async def asks(text: str) -> str:
        own = desk.hub.join(ChildOpened("", "a", "", label="hub"), "")
        return f"b says {(await own.talk('b', 'well?')).text}"

    desk = Desk({"a": asks, "b": says("yes")})
    reply = await asyncio.wait_for(desk.hub.voice("main").talk("a", "go"), 5)
    assert reply.text == "b says yes"
    assert desk.lines == ["main>a: go", "a>b: well?", "b>a: yes", "a>main: b says yes"]


async def test_a_failure_is_the_reply_and_the_agent_can_be_asked_again() -> None:
    tries = iter([ModelError("The model is away."), None])

    async def fails_once(text: str) -> str:
        error = next(tries)
        if error is not None:
            raise error
        return "here again"

    desk = Desk({"critic": fails_once})
    voice = desk.hub.voice("main")
    reply = await voice.talk("critic", "one")
    assert (reply.ok, reply.error) == (False, "The model is away.")
    assert desk.said[-1].error == "The model is away."
    assert (await voice.talk("critic", "two")).text == "here again"


async def test_a_session_that_is_gone_is_replaced_and_told() -> None:
    desk = Desk({"critic": says("first", "second", "third")})
    voice = desk.hub.voice("main")
    await voice.talk("critic", "one")
    desk.dead = {"critic-1"}
    reply = await voice.talk("critic", "two")
    assert reply.ok
    assert reply.text.startswith("(critic was started anew")
    assert reply.text.endswith("second")
    told = desk.told("critic")[-1]
    assert "## main to critic\none" in told
    assert "## critic to main\nfirst" in told
    assert told.endswith("Message from main:\n\ntwo")
    assert told.count("two") == 1
    assert (await voice.talk("critic", "three")).text == "third"
    assert desk.hub.talks.sessions == {"critic": "critic-2"}


async def test_a_refused_opening_is_the_reply() -> None:
    desk = Desk({"critic": says("x")})
    desk.refusal = UsageError("No budget is left.", hint="Finish.", code="budget_exhausted")
    reply = await desk.hub.voice("main").talk("critic", "one")
    assert (reply.ok, reply.error) == (False, "No budget is left. Finish.")


async def test_a_log_that_can_not_be_written_is_no_reply() -> None:
    desk = Desk({"critic": says("x")})
    desk.refusal = StoreError("The disk is full.")
    with pytest.raises(StoreError):
        await desk.hub.voice("main").talk("critic", "one")


async def test_a_cancel_closes_the_agents_session_and_those_in_the_queue_go_on() -> None:
    begun = asyncio.Event()

    async def hangs(text: str) -> str:
        if text.endswith("hang"):
            begun.set()
            await asyncio.Event().wait()
        return "free"

    desk = Desk({"critic": hangs})
    voice = desk.hub.voice("main")
    first = asyncio.create_task(voice.talk("critic", "hang"))
    await asyncio.wait_for(begun.wait(), 5)
    second = asyncio.create_task(voice.talk("critic", "next"))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert (await asyncio.wait_for(second, 5)).text == "free"
    assert desk.open == set()


async def test_a_restarted_run_goes_on_with_the_same_sessions() -> None:
    desk = Desk({"critic": says("first", "second")})
    await desk.hub.voice("main").talk("critic", "one")
    again = desk.new_hub()
    assert (await again.voice("main").talk("critic", "two")).text == "second"
    assert again.talks.sessions == {"critic": "critic-1"}
    assert desk.told("critic")[-1] == "Message from main:\n\ntwo"


async def test_agents_and_groups_can_be_added_while_it_runs() -> None:
    desk = Desk({"critic": says("x")})
    hub = desk.hub
    desk.answers["late"] = says("here")
    hub.register(AgentSpec(name="late", description="comes late"))
    hub.register(GroupSpec("both", ("critic", "late")))
    assert [spec.name for spec in hub.roster.agents] == ["critic", "late"]
    assert (await hub.voice("main").talk("late", "hello")).text == "here"
    assert len(await hub.voice("main").talk_to_group("both", "hello")) == 2
