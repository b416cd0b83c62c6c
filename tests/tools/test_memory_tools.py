"""The list of messages that the model has let go of: what may stand on it, and what is told of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.tools.base import Remembered
from croze.tools.builtin.memory import ConversationMessageIdsRead, ConversationMessageIdsWrite
from croze.tools.registry import builtin
from croze.types.event import MessagesMarked

USER = Remembered("11111111-aaaa", "user", "user: mend it", 5, 5)
LAW = Remembered("22222222-aaaa", "fact", "law: the project's law", 900, 900)
REPLY = Remembered("33333333-aaaa", "reply", "your reply: I look", 20, 20)
READ = Remembered("9226b3a4-0001", "result", "read_file a.py", 1_200, 1_200, call_id="CALL00001")
LIST = Remembered("204e1cd8-0002", "result", "list_files .", 300, 300, call_id="CALL00002")
TWIN = Remembered("204e1cd9-0003", "result", "list_files src", 310, 310, call_id="CALL00003")
GONE = Remembered("77777777-0004", "result", "read_file b.py", 0, 400, "summarised", "CALL00004")
MESSAGES = [USER, LAW, REPLY, READ, LIST, TWIN, GONE]


@pytest.fixture
def talk(fake_context: Any) -> Any:
    fake_context.messages = list(MESSAGES)
    return fake_context


async def write(context: Any, **args: Any) -> Any:
    """A call as the runner makes it; the context's list follows the log, as a session's does."""
    kind = builtin().get("conversation_message_ids_write")
    assert kind is not None
    result = await kind.bind(args).run(context)
    for event in context.events:
        assert isinstance(event, MessagesMarked)
        context.marked = event.ids
    return result


async def test_append_adds_create_sets_and_delete_takes_off(talk: Any) -> None:
    result = await write(talk, message_ids="9226b3a4", action="append")
    assert talk.marked == (READ.id,)
    assert result.message == "1 message marked, about 1,200 tokens."
    assert result.text.startswith("9226b3a4 1,200 tokens: read_file a.py\n")
    await write(talk, message_ids="204e1cd8, 9226b3a4", action="append")
    assert talk.marked == (READ.id, LIST.id)
    result = await write(talk, message_ids="204e1cd9-0003", action="create")
    assert talk.marked == (TWIN.id,)
    await write(talk, message_ids=["9226b3a4", "204e1cd8"], action="append")
    result = await write(talk, message_ids="204e1cd9,9226b3a4", action="delete")
    assert talk.marked == (LIST.id,)
    assert result.data == {"message_ids": [LIST.id], "tokens": 300, "unknown": []}
    result = await write(talk, message_ids="", action="create")
    assert (talk.marked, result.message) == ((), "No message is marked.")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("ffffffff", "ffffffff: no message of this conversation."),
        ("9226b3a5", "9226b3a5: no message of this conversation. Did you mean 9226b3a4"),
        ("204e1cd", "204e1cd: 2 messages begin so: 204e1cd8-0002 (list_files .); 204e1cd9"),
        ("204", "204: too short, give 8 characters."),
        ("11111111", "11111111: not marked, what the user said stays (user: mend it)."),
        ("22222222", "22222222: not marked, documentation and facts of the project stay"),
        ("33333333", "33333333: not marked, your own replies stay"),
        ("77777777", "77777777: not marked, it doesn't stand in the context any more"),
    ],
)
async def test_what_cannot_be_marked_is_told_and_the_rest_is_marked(
    talk: Any, given: str, said: str
) -> None:
    alone = await write(talk, message_ids=given, action="append")
    assert (alone.ok, alone.code, talk.marked) == (False, "no_such_message", ())
    assert said in alone.text
    assert "9226b3a4 1,200 tokens: read_file a.py" in alone.text  # what could be marked instead
    both = await write(talk, message_ids=f"{given}, 9226b3a4", action="append")
    assert (both.ok, talk.marked) == (True, (READ.id,))
    assert said in both.text


@pytest.mark.parametrize(
    "given",
    ["9226b3a4", " 9226B3A4 ", READ.id, "CALL00001", "[Hint: message_id: 9226b3a4]", '"9226b3a4"'],
)
async def test_an_id_may_be_given_in_any_form_that_was_seen(talk: Any, given: str) -> None:
    await write(talk, message_ids=given)
    assert talk.marked == (READ.id,)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("batch", "compacted next"),
        ("zone", "before the next request"),
        ("digest", "shortened next"),
        ("none", "never shortened"),
        ("a_plugin", "compacted next"),
    ],
)
async def test_the_result_says_when_it_takes_effect(talk: Any, policy: str, words: str) -> None:
    talk.policy = policy
    assert words in (await write(talk, message_ids="9226b3a4")).text


async def test_without_a_change_nothing_is_recorded(talk: Any) -> None:
    await write(talk, message_ids="9226b3a4")
    await write(talk, message_ids="9226b3a4")
    await write(talk, message_ids="204e1cd8", action="delete")
    assert len(talk.events) == 1
    result = await write(talk, message_ids=" , ", action="append")
    assert (result.ok, result.code) == (False, "invalid_arguments")


async def test_reading_shows_the_list_and_the_largest_that_are_left(talk: Any) -> None:
    empty = await ConversationMessageIdsRead().run(talk)
    assert empty.message == "No message is marked."
    assert empty.text.split("\n") == [
        "The largest results that you could let go of:",
        "9226b3a4 1,200 tokens: read_file a.py",
        "204e1cd9 310 tokens: list_files src",
        "204e1cd8 300 tokens: list_files .",
    ]
    talk.marked = (READ.id, "of a turn that was undone")
    read = await ConversationMessageIdsRead().run(talk)
    assert read.text.split("\n")[0] == "9226b3a4 1,200 tokens: read_file a.py"
    assert read.data["message_ids"] == [READ.id]
    talk.marked = (READ.id, GONE.id)
    read = await ConversationMessageIdsRead().run(talk)
    assert read.message == "2 messages marked, about 1,200 tokens."
    assert read.text.split("\n")[1] == "77777777 gone already: read_file b.py"
    assert talk.events == []


ACTIONS = st.sampled_from(["create", "append", "delete"])
IDS = st.lists(st.sampled_from([m.id for m in MESSAGES] + ["ffffffff"]), max_size=4)


@given(st.lists(st.tuples(ACTIONS, IDS), max_size=8))
async def test_only_results_in_the_context_ever_stand_on_the_list(
    calls: list[tuple[str, list[str]]],
) -> None:
    context = _Context()
    for action, ids in calls:
        await ConversationMessageIdsWrite(message_ids=tuple(ids), action=action).run(context)  # type: ignore[arg-type]
        assert set(context.marked) <= {READ.id, LIST.id, TWIN.id}
        assert len(set(context.marked)) == len(context.marked)


class _Context:
    policy = "batch"
    marked: tuple[str, ...] = ()

    def remembered(self) -> list[Remembered]:
        return MESSAGES

    async def emit(self, body: MessagesMarked) -> None:
        self.marked = body.ids
