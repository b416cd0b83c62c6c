"""Which replies of a script a sub-agent plays."""

import pytest

from croze.llm.script import parse_script
from croze.llm.scripted import ScriptedModel
from croze.types.context import Message, Prompt
from croze.types.errors import ModelError
from croze.types.model import ModelInfo
from croze.types.parts import Text
from croze.types.stream import TextChunk

INFO = ModelInfo(provider="scripted", model="cast", window=9, max_output=9, wire="scripted")


CAST = """
replies: [{text: main}]
agents:
  - {agent: explore, task: the parser, replies: [{text: parse.py}, {text: again}]}
  - {agent: explore, replies: [{text: nothing}]}
"""


async def play(agent, task):
    model = ScriptedModel(INFO, parse_script(CAST.encode(), "cast"), agent=agent)
    said = Message(key=1, last=1, role="user", parts=(Text(task),))
    body = model.encode(Prompt(system="Be brief.", messages=(said,)))
    return "".join([c.text async for c in model.stream(body) if isinstance(c, TextChunk)])


@pytest.mark.parametrize(
    ("agent", "task", "answer"),
    [
        ("", "the parser", "main"),
        ("explore", "find the parser", "parse.py"),
        ("explore", "find the lexer", "nothing"),
    ],
)
async def test_a_sub_agent_plays_the_first_role_that_fits_its_task(agent, task, answer):
    assert await play(agent, task) == answer


async def test_an_agent_without_a_role_is_told_that_it_has_no_replies():
    with pytest.raises(ModelError, match="agent general") as caught:
        await play("general", "anything")
    assert caught.value.code == "script_ended"
