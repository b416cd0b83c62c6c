"""`croze init`: have the agent look round and write the project's law file."""

import asyncio
import sys
from typing import TYPE_CHECKING, Literal

import click

from croze.app.options import RunOptions
from croze.ui.cli.exits import Exit, exit_of_turn
from croze.ui.cli.framework import Command, Number, Pick
from croze.ui.cli.interrupt import Interrupt
from croze.ui.cli.report import Report
from croze.ui.cli.state import State, pass_state
from croze.ui.i18n import _, explain_code, mark

if TYPE_CHECKING:
    from pathlib import Path

    from croze.app.app import Session
    from croze.app.init import LawReport


@click.command(
    cls=Command,
    name="init",
    help=mark(
        "Look round in the project and write its guide for agents and people.\n\n"
        "The agent reads, runs nothing and writes one file, AGENTS.md or code_law.md, at the project's "
        "root: 'Repository Guidelines' of 200 to 400 words. From then on every session begins with it. "
        "An existing file is written anew only with --force."
    ),
)
@click.option(
    "--file", "name", metavar="NAME", default="",
    help=mark("The file to write: AGENTS.md (default) or code_law.md."),
)  # fmt: skip
@click.option("--force", "-f", is_flag=True, help=mark("Write an existing file anew."))
@click.option("--model", "-m", metavar="NAME", help=mark("Model to use, as provider:model."))
@click.option(
    "--dialect", type=Pick(("auto", "native", "xml")),
    help=mark("How the model writes tool calls; auto suits the model."),
)  # fmt: skip
@click.option("--max-turns", type=Number(whole=True), help=mark("Stop after N model requests."))
@click.option(
    "--max-cost", type=Number(whole=False),
    help=mark("Stop when N US dollars are spent (the model's price must be known)."),
)  # fmt: skip
@click.option(
    "--verbose", "-v", is_flag=True,
    help=mark("Show the model's text, thinking and command output as they come."),
)  # fmt: skip
@pass_state
def init(
    state: State,
    name: str,
    *,
    force: bool,
    model: str | None,
    dialect: Literal["auto", "native", "xml"] | None,
    max_turns: float | None,
    max_cost: float | None,
    verbose: bool,
) -> int:
    options = RunOptions(
        model=model,
        dialect=dialect,
        max_turns=None if max_turns is None else int(max_turns),
        max_cost=max_cost,
        name="init",
    )
    return asyncio.run(_init(state, options, name, force=force, verbose=verbose))


async def _init(state: State, options: RunOptions, name: str, *, force: bool, verbose: bool) -> int:
    from croze.app.init import check_free, check_name, init_options

    name = check_name(name)
    interrupt = Interrupt()
    app = state.open()
    with interrupt.watching():
        try:
            if not force and not _confirmed(state, app.config.project.root, name):
                check_free(app.config.project.root, name)
            session = await app.session(init_options(options, name))
            state.tell_store(app)
            report = Report(state.out, "text", verbose=verbose)
            interrupt.cancel = report.cancel = session.cancel
            end = report.begin(session)
            try:
                return await _write(app.config.project.root, session, name, report, interrupt)
            finally:
                end()
        except asyncio.CancelledError:
            return interrupt.code or Exit.INTERRUPTED
        finally:
            await app.aclose()


async def _write(
    root: "Path", session: "Session", name: str, report: Report, interrupt: Interrupt
) -> int:
    from croze.app.init import write_law

    law, stopped = await write_law(root, name, session.submit)
    if interrupt.code and stopped.reason == "cancelled":
        return report.end(stopped, interrupt.code)
    code = exit_of_turn(stopped)
    if law.problem and code in (Exit.DONE, Exit.REFUSED):
        code = Exit.FAILED
    report.end(stopped, code)
    report.note(told(law))
    if not law.problem:
        report.note(_("read it; `croze trust` then makes it the law here"))
    return int(code)


def _confirmed(state: State, root: "Path", name: str) -> bool:
    """Whether the user at the terminal wants an existing file written anew; nobody is asked else."""
    from croze.app.init import law_present

    if name not in law_present(root) or sys.stdin is None or not sys.stdin.isatty():
        return False
    state.out.note(_("{name} exists. Write it anew?", name=name) + " [y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes", "是")


def told(law: "LawReport") -> str:
    """How it came out, in a line."""
    if not law.problem:
        return _("wrote {name}: {words} words", name=law.name, words=law.words)
    problem, _hint = explain_code(law.code, law.problem, "", {"words": law.words})
    return _("{name} is not as it should be: {problem}", name=law.name, problem=problem)
