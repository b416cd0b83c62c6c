"""The clock in the tail: told every tenth request and after a compaction, never in between."""

from pathlib import Path

import pytest

from croze.context.clock_facts import EVERY, gather_clock
from croze.context.gather import GatherState
from croze.types.agent import AgentSpec, Limits
from croze.types.event import Compacted, Event, FactAdded, HeadSet, ModelCalled, Stopped
from croze.types.ids import SystemSource
from croze.types.model import ModelInfo


def called(step, purpose="main"):
    return ModelCalled(
        step=step, model="m", head="", history=0, body="", rolling="", encoder=1, tokens=1, size=1,
        purpose=purpose,
    )  # fmt: skip


def head(limits):
    info = ModelInfo(provider="p", model="m", window=1000, max_output=100, wire="openai")
    return HeadSet(agent=AgentSpec(limits=limits), model=info, dialect="xml", head="", tokens=1)


async def told(*bodies):
    events = [Event("s", at + 1, 0, body) for at, body in enumerate(bodies)]
    state = GatherState(root=Path("/"), events=events, source=SystemSource(), seen={})
    return await gather_clock(state)


async def test_it_is_told_every_tenth_request():
    calls = [called(step) for step in range(1, EVERY + 1)]
    assert await told(*calls[:-1], called(0, "summary")) == ()
    (fact,) = await told(*calls)
    assert (fact.key, fact.place, fact.layer) == ("clock", "tail", "current")
    assert fact.text.startswith("<clock>\nTime: 20")
    assert await told(*calls, fact) == ()
    assert await told(*calls, fact, *calls[:-1]) == ()
    assert len(await told(*calls, fact, *calls)) == 1


async def test_it_is_told_again_where_a_compaction_took_it():
    fact = FactAdded(key="clock", message_id="m", text="x", place="tail")
    gone = Compacted(policy="batch", reason="r")
    assert len(await told(called(1), fact, called(2), gone)) == 1
    assert await told(called(1), gone, called(2)) == ()
    assert await told(called(1), gone, fact, called(2)) == ()


@pytest.mark.parametrize(("limit", "line"), [(40, "Steps of this turn: 10 of 40"), (None, "")])
async def test_the_turns_steps_are_counted_where_they_have_a_limit(limit, line):
    before = [head(Limits(steps=limit)), called(1), Stopped(reason="done")]
    (fact,) = await told(*before, *(called(step) for step in range(2, EVERY + 2)))
    assert (line in fact.text.split("\n")) == bool(line)
    assert ("Steps" in fact.text) == bool(line)
