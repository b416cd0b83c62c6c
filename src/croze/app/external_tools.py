"""External tools as a session has them: found under the user's trust, asked for their help beside it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from croze.app.config import Config
from croze.app.knowledge import finder_for
from croze.knowledge.external_tools import ExternalTool, ExternalTools
from croze.knowledge.skills import Skills
from croze.types.errors import ConfigError
from croze.workspace.sandbox import Confinement
from croze.workspace.wrapper import Entrance

BESIDE = 0.3
"""Seconds after the opening in which no tool is asked: the first request goes before."""


class ToolsBeside:
    """The tools of one session. Those whose help isn't known are asked for it while the session goes on; what
    they said is there when the tools are looked at next."""

    def __init__(self, tools: ExternalTools) -> None:
        self._tools = tools
        self._asking: asyncio.Task[None] | None = None

    def now(self) -> Sequence[ExternalTool]:
        tools = self._tools.look()
        unasked = self._tools.unasked(tools)
        if unasked and (self._asking is None or self._asking.done()):
            self._asking = asyncio.create_task(self._ask(unasked))
        return tools

    async def close(self) -> None:
        """Ask no more."""
        if self._asking is not None:
            self._asking.cancel()
            with suppress(asyncio.CancelledError):
                await self._asking

    async def _ask(self, tools: list[ExternalTool]) -> None:
        await asyncio.sleep(BESIDE)
        await self._tools.ask(tools)


def external_tools(
    config: Config, env: Mapping[str, str], confinement: Confinement | None
) -> ExternalTools:
    """The tools of the project and the user. Without a `confinement` they aren't asked for anything."""
    return ExternalTools(
        finder_for(config, env),
        config.paths.cache,
        env,
        partial(_sandbox, confinement),
        trusted_in(config),
    )


def skills_of(config: Config, env: Mapping[str, str]) -> Skills:
    """The skills of the project and the user."""
    return Skills(finder_for(config, env), config.paths.cache, trusted_in(config))


async def _sandbox(confinement: Confinement | None) -> tuple[bool, Entrance | None]:
    """In a sandbox, or where the user wants none without one; else not at all."""
    if confinement is None:
        return False, None
    if confinement.off:
        return True, None
    wrapper = await confinement.for_reading(offline=True)
    return wrapper is not None, wrapper


def trusted_in(config: Config) -> Callable[[str], str]:
    """The hash of the content that the user trusts of a file of the project; empty for none."""

    def trusted(path: str) -> str:
        trust = config.trust
        try:
            return trust.once.get(path) or trust.kept.files.get(path, "")
        except ConfigError:
            return ""

    return trusted


async def asked_tools(config: Config, env: Mapping[str, str], name: str = "") -> list[ExternalTool]:
    """The tools with their help: those that were never asked are asked now, and those of this `name`
    anew."""
    from croze.app.assemble import confinement_for
    from croze.app.options import RunOptions

    options = RunOptions().resolved(config.settings)
    confinement = confinement_for(config, options, env, lambda: "plan")
    try:
        tools = external_tools(config, env, confinement)
        found = tools.look()
        wanted = [each for each in found if each.usable and is_named(each, name)] if name else []
        await tools.ask(wanted or tools.unasked(found))
        return tools.look()
    finally:
        confinement.close()


def is_named(tool: ExternalTool, name: str) -> bool:
    return name in (tool.name, tool.file)
