"""A session's head: the recorded one where all that it was made of still holds, else a new one; and the
protocol that goes with it."""

import os
from collections.abc import Sequence
from typing import Literal

import msgspec

from croze.agent.live import Live
from croze.app.config import Config
from croze.context.check import check_head, check_start
from croze.context.environment import read_system
from croze.context.head import Head, build_head
from croze.dialect.base import Dialect
from croze.llm.model import Model
from croze.store.store import Store
from croze.tools.builtin.shell import shell
from croze.types.agent import AgentSpec
from croze.types.context import Check
from croze.types.errors import ConfigError
from croze.types.event import Body, Event, HeadSet, Notice
from croze.types.model import ModelInfo

DialectName = Literal["native", "xml"]

NO_HEAD = Head(system="", core=(), sections=(), tokens=0, digest="")


def open_dialect(name: DialectName) -> Dialect:
    if name == "xml":
        from croze.dialect.xml import XmlDialect

        return XmlDialect()
    from croze.dialect.native import NativeDialect

    return NativeDialect()


def dialect_for(info: ModelInfo, wanted: str) -> DialectName:
    """`auto` takes native where the model has tools."""
    if wanted == "xml" or (wanted == "auto" and not info.tools):
        return "xml"
    return "native"


def last_head(events: Sequence[Event]) -> HeadSet | None:
    """The newest `HeadSet` of a log."""
    for event in reversed(events):
        if isinstance(event.body, HeadSet):
            return event.body
    return None


async def set_head(live: Live, store: Store, config: Config, recorded: HeadSet | None) -> None:
    """Take the recorded head where everything it was made of still holds, else build and record one."""
    same = (
        recorded is not None
        and recorded.dialect == live.dialect.name
        and recorded.model.name == live.model.info.name
        and recorded.model.options == live.model.info.options
        and recorded.agent.name == live.spec.name
        and recorded.agent.tools == live.spec.tools
        and (recorded.agent.prompt == live.spec.prompt or not live.spec.prompt)
    )
    if same and recorded is not None:
        live.head = Head.decode(await store.blob(recorded.head))
        live.spec = of_this_run(recorded.agent, live.spec)
        then = msgspec.structs.replace(recorded.agent, limits=live.spec.limits)
        here = msgspec.structs.replace(recorded.model, base_url=live.model.info.base_url)
        if then != live.spec or here != live.model.info:
            await live.append(head_event(live, recorded.head))
        return
    await live.append(*await take_new_head(live, store, config), *model_notices(live.model))


def of_this_run(recorded: AgentSpec, asked: AgentSpec) -> AgentSpec:
    """The recorded agent with the limits of this run, and with when its context is made smaller."""
    return msgspec.structs.replace(
        recorded,
        limits=asked.limits,
        include_rules=asked.include_rules,
        policy=asked.policy,
        zone=asked.zone,
        low=asked.low,
        gain=asked.gain,
    )


async def take_new_head(live: Live, store: Store, config: Config) -> tuple[Body, ...]:
    """Render the head anew; gives the event that says so, with the checks' warnings. Raises ConfigError
    where the head can't be used."""
    live.head, checks = new_head(live, config)
    for check in checks:
        if check.level == "error":
            raise ConfigError(check.text, code=check.code)
    digest = await store.put_blob(live.head.encode())
    notices = [Notice(level="warning", code=c.code, text=c.text, params=c.params) for c in checks]
    return head_event(live, digest), *notices


def head_event(live: Live, digest: str) -> HeadSet:
    return HeadSet(
        agent=live.spec,
        model=live.model.info,
        dialect=live.dialect.name,
        head=digest,
        tokens=live.head.tokens,
    )


def new_head(live: Live, config: Config) -> tuple[Head, list[Check]]:
    """Render the head for the session's agent, tools, model and protocol, and check it."""
    core, others = live.registry.docs(live.spec.core)
    head = build_head(
        live.spec,
        core,
        others,
        live.dialect,
        read_system(os.environ, shell=shell("")[0]),
        cache=config.paths.cache,
        roster=None if live.team is None else live.team.roster,
        servers=() if live.mcp is None else live.mcp.lines(),
    )
    schemas = {doc.name for doc in core} if live.dialect.name == "native" else set()
    checks = check_start(live.model.info, core, talks=live.spec.tools == ())
    checks += check_head(head.system, [doc.name for doc in core], schemas=schemas)
    return head, checks


def model_notices(model: Model) -> list[Notice]:
    from croze.llm.advice import unknown_notice

    notice = unknown_notice(model.info)
    return [] if notice is None else [notice]


async def switch_to_xml(live: Live, store: Store, config: Config) -> tuple[Body, ...]:
    """Go over to the xml protocol; gives the events that say so."""
    live.dialect = open_dialect("xml")
    return await take_new_head(live, store, config)
