"""A server over a program's streams: started when needed, bounded, ended with all that it started."""

import asyncio
import json
import resource
from collections.abc import Sequence

import pytest

from croze.mcp.failure import McpError
from croze.types.errors import ConfigError
from tests.mcp.conftest import Person, Workshop, is_running, until


async def test_a_server_starts_on_first_use_and_serves_all_later_calls(workshop: Workshop) -> None:
    server = workshop.odd()
    assert not workshop.said("starts")
    for text in ("one", "two"):
        assert (await server.call("echo", {"text": text}, Person())).text == text
    assert workshop.said("starts") == "start\n"


async def test_a_server_that_died_answers_with_an_error_and_is_started_again(
    workshop: Workshop,
) -> None:
    server = workshop.odd()
    with pytest.raises(McpError) as caught:
        await server.call("die", {}, Person())
    assert caught.value.code == "mcp_ended"
    assert "exit code 3" in caught.value.message
    assert "about to die" in caught.value.message
    assert (await server.call("echo", {"text": "again"}, Person())).text == "again"
    assert workshop.said("starts") == "start\n" * 2


async def test_a_server_that_never_works_is_left_alone_after_a_few_starts(
    workshop: Workshop,
) -> None:
    server = workshop.odd("exits")
    codes = []
    for _ in range(6):
        with pytest.raises(McpError) as caught:
            await server.listing()
        codes.append(caught.value.code)
    assert codes == ["mcp_start"] * 4 + ["mcp_waiting"] * 2
    assert "cannot find the database" in server.last_error
    assert workshop.said("starts") == "start\n" * 4


async def test_a_server_that_never_answers_is_ended_when_its_time_is_over(
    workshop: Workshop,
) -> None:
    server = workshop.odd("silent", connect_timeout=1.0)
    with pytest.raises(McpError, match="did not answer within 1 s") as caught:
        await server.listing()
    assert caught.value.code == "mcp_timeout"
    assert not is_running(int(workshop.said("pid")))


async def test_a_program_that_is_not_there_is_told_by_name(workshop: Workshop) -> None:
    spec = workshop.odd_spec()
    missing = workshop.servers(type(spec)(name="gone", command="/no/such/program")).get("gone")
    with pytest.raises(McpError, match="/no/such/program could not be started"):
        await missing.listing()


async def test_a_call_that_takes_too_long_is_cancelled_at_the_server(workshop: Workshop) -> None:
    server = workshop.odd(timeout=0.5)
    with pytest.raises(McpError, match=r"did not answer within 0\.5 s") as caught:
        await server.call("slow", {}, Person())
    assert caught.value.code == "mcp_timeout"
    await until(lambda: workshop.heard("notifications/cancelled"))
    assert (await server.call("echo", {"text": "still there"}, Person())).text == "still there"


async def test_a_cancelled_call_is_cancelled_at_the_server(workshop: Workshop) -> None:
    server = workshop.odd()
    call = asyncio.create_task(server.call("slow", {}, Person()))
    await until(lambda: "slow" in workshop.said("called"))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: workshop.heard("notifications/cancelled"))


async def test_a_flood_of_messages_ends_only_its_server_in_bounded_memory(
    workshop: Workshop,
) -> None:
    server = workshop.odd()
    await server.listing()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(McpError, match="messages that nobody asked for"):
        await server.call("flood", {}, Person())
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < 100_000
    assert not is_running(int(workshop.said("pid")))


async def test_one_endless_message_ends_only_its_server(workshop: Workshop) -> None:
    server = workshop.odd()
    await server.listing()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(McpError, match="a message of more than 16 MB"):
        await server.call("huge", {}, Person())
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < 100_000
    assert not is_running(int(workshop.said("pid")))


async def test_junk_between_the_messages_is_passed_over_and_told(workshop: Workshop) -> None:
    server = workshop.odd()
    assert (await server.call("junk", {}, Person())).text == "junk done"
    link = server.link
    assert link is not None
    assert "DEBUG: not a message" in link.junk


@pytest.mark.parametrize("tool", ["bad_json", "wrong_id"])
async def test_an_answer_that_answers_nothing_costs_only_its_call(
    workshop: Workshop, tool: str
) -> None:
    server = workshop.odd(timeout=0.5)
    with pytest.raises(McpError, match="did not answer"):
        await server.call(tool, {}, Person())
    assert (await server.call("echo", {"text": "fine"}, Person())).text == "fine"


async def test_endless_errors_do_not_hold_a_server_up_and_are_bounded(workshop: Workshop) -> None:
    server = workshop.odd("noisy")
    assert (await server.call("echo", {"text": "fine"}, Person())).text == "fine"
    assert server.link is not None
    assert len(server.link.errors) < 100_000


async def test_closing_ends_what_the_server_started_too(workshop: Workshop) -> None:
    server = workshop.odd("stubborn")
    await server.listing()
    pids = [int(workshop.said(name)) for name in ("pid", "child")]
    assert all(map(is_running, pids))
    await server.close()
    assert not any(map(is_running, pids))


async def test_a_server_sees_no_key_that_it_was_not_given(workshop: Workshop) -> None:
    await workshop.odd(env={"GIVEN": "${OWNER_API_KEY}"}).listing()
    seen = json.loads(workshop.said("environment"))
    assert "OWNER_API_KEY" not in seen
    assert seen["GIVEN"] == "sk-do-not-hand-on"


async def test_a_missing_variable_is_told_before_anything_starts(workshop: Workshop) -> None:
    with pytest.raises(ConfigError, match="NOT_SET_ANYWHERE"):
        await workshop.odd(env={"GIVEN": "${NOT_SET_ANYWHERE}"}).listing()
    assert not workshop.said("starts")


async def test_a_question_goes_to_the_user_field_by_field(workshop: Workshop) -> None:
    person = Person(answers=["answer", "Ada", "yes"])
    answer = await workshop.odd().call("ask", {}, person)
    assert json.loads(answer.text) == {"action": "accept", "content": {"name": "Ada", "sure": True}}
    assert "Who are you?" in person.asked[0]


async def test_a_question_is_declined_where_nobody_is_there(workshop: Workshop) -> None:
    answer = await workshop.odd().call("ask", {}, Person())
    assert json.loads(answer.text)["action"] == "decline"


async def test_a_call_has_its_time_anew_once_the_user_has_answered(workshop: Workshop) -> None:
    class Slow(Person):
        async def ask(self, text: str, options: Sequence[str] = ()) -> str | None:
            await asyncio.sleep(0.4)  # longer than the call may take without a person
            return await super().ask(text, options)

    server = workshop.odd(timeout=0.3)
    await server.listing()
    answer = await server.call("ask", {}, Slow(answers=["answer", "Ada", "no"]))
    assert json.loads(answer.text)["content"] == {"name": "Ada", "sure": False}


async def test_a_question_ends_with_the_call_that_it_belongs_to(workshop: Workshop) -> None:
    ended = asyncio.Event()

    class Away(Person):
        async def ask(self, text: str, options: Sequence[str] = ()) -> str | None:
            self.asked.append(text)
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return None

    person = Away()
    call = asyncio.create_task(workshop.odd().call("ask", {}, person))
    await until(lambda: person.asked)
    call.cancel()
    await asyncio.wait([call])
    async with asyncio.timeout(5):
        await ended.wait()


async def test_a_server_gets_no_model_to_ask(workshop: Workshop) -> None:
    answer = await workshop.odd().call("sample", {}, Person())
    assert "not supported" in json.loads(answer.text)["message"]


async def test_what_a_server_logs_is_shown_without_escapes(workshop: Workshop) -> None:
    person = Person()
    await workshop.odd().call("log", {}, person)
    await until(lambda: person.shown)
    assert person.shown == ["warning: mind me\n"]


async def test_an_error_of_a_tool_is_its_answer(workshop: Workshop) -> None:
    answer = await workshop.odd().call("fail", {}, Person())
    assert (answer.failed, answer.text) == (True, "no such row")


async def test_two_first_calls_start_one_server(workshop: Workshop) -> None:
    server = workshop.odd()
    answers = await asyncio.gather(
        *(server.call("echo", {"text": str(number)}, Person()) for number in range(5))
    )
    assert [answer.text for answer in answers] == ["0", "1", "2", "3", "4"]
    assert workshop.said("starts") == "start\n"
