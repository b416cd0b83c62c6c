"""Wires a recorded session for replay: its own head, model, protocol and limits, nothing of today's."""

import sys
from collections.abc import AsyncGenerator

import msgspec

from croze.agent.bus import Bus
from croze.agent.live import Live
from croze.agent.recorded import Diverged, RecordedLog, RecordedSource
from croze.agent.recorded_model import RecordedDialect, RecordedModel
from croze.agent.replay import (
    RecordedCalls,
    RecordedHooks,
    recorded_gather,
    recorded_workflow,
    requests,
)
from croze.agent.replay import replay as run_again
from croze.agent.session import Session
from croze.app.config import Config
from croze.app.head import open_dialect
from croze.app.options import ReplayReport
from croze.context.head import Head
from croze.llm.model import Model
from croze.store.store import Store
from croze.tools.approve import Approver
from croze.tools.registry import Registry, builtin
from croze.types.agent import AgentSpec, Limits
from croze.types.context import budget_for
from croze.types.errors import StoreError
from croze.types.event import Body, HeadSet, ModelCalled
from croze.types.model import ModelInfo
from croze.workspace.workspace import Workspace

UNLIMITED = Limits(repeats=sys.maxsize)


async def replay(store: Store, config: Config, session: str) -> ReplayReport:
    """Replay the session with this id; the report says how many requests were rebuilt alike and where
    the first divergence is."""
    recorded = await store.read(session)
    first = next((event.body for event in recorded if isinstance(event.body, HeadSet)), None)
    if first is None:
        return ReplayReport(requests=0)
    heads = {
        event.body.head: Head.decode(await store.blob(event.body.head))
        for event in recorded
        if isinstance(event.body, HeadSet)
    }

    def wear(head: HeadSet) -> None:
        """Take over a head that the record changes to; limits end a turn in the record only."""
        live.spec = msgspec.structs.replace(head.agent, limits=UNLIMITED)
        live.registry = _tools_of(head.agent)
        live.dialect = RecordedDialect(open_dialect(head.dialect), log)
        live.model = RecordedModel(
            recorded_encoder(head.model), log, native=head.dialect == "native", on_reply=on_reply
        )
        live.head = heads[head.head]
        live.budget = budget_for(head.model.window, head.model.max_output)

    def on_reply(continuations: int) -> None:
        live.max_continuations = continuations

    log = RecordedLog(recorded=recorded, session=session, events=[], on_head=wear)
    live = Live(
        log=log,
        blobs=store,
        source=RecordedSource(log),
        bus=Bus(),
        spec=first.agent,
        model=recorded_encoder(first.model),
        dialect=open_dialect(first.dialect),
        head=heads[first.head],
        registry=_tools_of(first.agent),
        approver=Approver(mode="plan"),
        workspace=Workspace(id=session, root=config.project.root, owner=first.agent.name),
        budget=budget_for(first.model.window, first.model.max_output),
        gather=recorded_gather(log),
        env={},
        headless=True,
    )
    live.run_calls = RecordedCalls(live, log)
    live.hooks = RecordedHooks(live, log)
    if first.agent.workflow:
        live.workflow = recorded_workflow(log)

    async def summarisers(live: Live) -> AsyncGenerator[Model, None]:
        """The models that the record asked, each as long as it says that another was asked."""
        while isinstance(asked := log.ahead(), ModelCalled) and asked.purpose == "summary":
            if asked.info is None:
                yield live.model
                continue
            encoder = recorded_encoder(asked.info)
            yield RecordedModel(encoder, log, native=False, on_reply=on_reply)

    live.summarisers = summarisers

    async def switch(_live: Live) -> tuple[Body, ...]:
        rest = (event.body for event in recorded[len(log.events) :])
        head = next((body for body in rest if isinstance(body, HeadSet)), None)
        if head is None:
            raise Diverged(f"event {len(log.events) + 1}: the record has no change of the protocol")
        return (head,)

    async def no_fork(_message_id: str | None) -> str:
        raise StoreError("a replay can't be forked")

    running = Session(live, fork=no_fork, switch_to_xml=switch, on_rule=lambda _rule: None)

    try:
        rebuilt = await run_again(live, log, running.turn)
    except Diverged as error:
        return ReplayReport(requests=requests(log), divergence=str(error))
    return ReplayReport(requests=rebuilt)


def recorded_encoder(info: ModelInfo) -> Model:
    """The wire that made the recorded bytes; it is never asked to send any."""
    if info.wire == "scripted":
        from croze.llm.script import Script
        from croze.llm.scripted import ScriptedModel

        return ScriptedModel(info, Script(replies=()))
    from croze.llm.open import open_model

    return open_model(info, api_key=None, max_retries=0)


def _tools_of(agent: AgentSpec) -> Registry:
    """The built-in ones of the tools that the agent had: a call of any other one was none."""
    known = builtin()
    if agent.tools is None:
        return known
    return known.filter([name for name in agent.tools if known.get(name) is not None])
