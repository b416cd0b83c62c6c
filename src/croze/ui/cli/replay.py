"""`croze replay`: rebuild every request of a recorded conversation and compare it byte for byte."""

import asyncio
from typing import TYPE_CHECKING

import click

from croze.ui.cli.exits import Exit
from croze.ui.cli.framework import Command
from croze.ui.cli.state import State, pass_state
from croze.ui.i18n import _, mark

if TYPE_CHECKING:
    from croze.app.app import App
    from croze.app.options import ReplayReport


@click.command(
    cls=Command,
    name="replay",
    help=mark(
        "Run a recorded conversation again without a network and compare every request with the record, "
        "byte for byte. The first difference is shown and the exit code is 1."
    ),
)
@click.argument("conversation")
@pass_state
def replay(state: State, conversation: str) -> int:
    report = asyncio.run(_replay(state.open(), conversation))
    if report.divergence is None:
        state.out.line(_("{count} requests, all the same byte for byte", count=report.requests))
        return Exit.DONE
    state.out.line(_("{count} requests are the same, then:", count=report.requests))
    state.out.line(report.divergence)
    return Exit.FAILED


async def _replay(app: "App", conversation: str) -> "ReplayReport":
    try:
        return await app.replay(conversation)
    finally:
        await app.aclose()
