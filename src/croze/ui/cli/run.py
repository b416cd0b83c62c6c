"""`croze run`: one task from the command line, the answer on standard output."""

import asyncio
import select
import sys
from typing import TYPE_CHECKING, Any

import click

from croze.app.options import RunOptions
from croze.types.errors import CrozeError, UsageError
from croze.types.outward import ErrorObject, encode
from croze.ui.cli.answer import Schema, read_schema
from croze.ui.cli.collector import started
from croze.ui.cli.exits import Exit, exit_of_turn
from croze.ui.cli.framework import Command, Pick
from croze.ui.cli.interrupt import Interrupt
from croze.ui.cli.options import options_from, session_options
from croze.ui.cli.report import Report
from croze.ui.cli.state import State, pass_state
from croze.ui.i18n import _, mark

if TYPE_CHECKING:
    from croze.app.app import Session


@click.command(
    cls=Command,
    name="run",
    help=mark(
        "Do one task and print the answer.\n\n"
        'What comes on standard input is added to the task, so `git diff | croze run "review this"` '
        "works. Nobody is asked: an action that would need a yes is refused, the agent goes on without "
        "it and the exit code is 4; --allow and --mode say beforehand what may be done."
    ),
    epilog=mark(
        "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a limit was reached, 4 an action was refused, "
        "75 the model could not be reached, 129, 130 and 143 stopped by a signal, 141 the output was closed."
    ),
)
@click.argument("task", nargs=-1)
@click.option(
    "--output-format", "-o", type=Pick(("text", "json", "stream-json")), default="text",
    help=mark("text prints the answer; json one object at the end; stream-json one object a line as things happen."),
)  # fmt: skip
@click.option(
    "--output-schema", metavar="FILE",
    help=mark("JSON Schema that the answer must satisfy; the answer is then JSON."),
)  # fmt: skip
@session_options
@pass_state
def run(
    state: State,
    /,
    task: tuple[str, ...],
    output_format: str,
    output_schema: str | None,
    **given: Any,
) -> int:
    options, verbose = options_from(given, headless=True)
    schema = read_schema(output_schema) if output_schema else None
    if schema is not None:
        options = _with_schema(options, schema)
    prompt = _prompt(state, " ".join(task))
    if not prompt and not (options.resume or options.continue_):
        raise UsageError(
            _("there is no task"),
            hint=_('say what to do: croze run "fix the failing test"'),
            code="no_task",
        )
    report = Report(state.out, output_format, verbose=verbose)
    try:
        return asyncio.run(_run(state, options, prompt, report, schema))
    except CrozeError as error:
        if output_format != "text":
            state.out.json(encode(ErrorObject(session="", code=error.code, message=error.message)))
        raise


def _with_schema(options: RunOptions, schema: Schema) -> RunOptions:
    from msgspec.structs import replace

    return replace(options, output_schema=schema.document)


def _prompt(state: State, task: str) -> str:
    """The task with what stands on standard input, where that is a pipe or a file."""
    given = ""
    if sys.stdin is not None and not sys.stdin.closed and not sys.stdin.isatty():
        _say_when_waiting(state)
        given = sys.stdin.buffer.read().decode("utf-8", "replace").strip("\n")
    return "\n\n".join(part for part in (task.strip(), given) if part.strip())


def _say_when_waiting(state: State) -> None:
    """Tell the user why nothing happens when a pipe stays open and silent."""
    try:
        ready, _writable, _failed = select.select([sys.stdin], [], [], 0.5)
    except (OSError, ValueError):
        return
    if not ready:
        state.out.note(_("croze: reading standard input until its end (</dev/null gives none)"))


async def _run(
    state: State, options: RunOptions, prompt: str, report: Report, schema: Schema | None
) -> int:
    interrupt = Interrupt()
    app = state.open()
    with interrupt.watching():
        try:
            session = await app.session(options)
            state.tell_store(app)
            started()
            return await _turns(session, prompt, report, schema, interrupt)
        except asyncio.CancelledError:
            return interrupt.code or Exit.INTERRUPTED
        finally:
            await app.aclose()


async def _turns(
    session: "Session",
    prompt: str,
    report: Report,
    schema: Schema | None,
    interrupt: Interrupt,
) -> int:
    interrupt.cancel = report.cancel = session.cancel
    unsubscribe = report.begin(session)
    try:
        text = schema.demand(prompt) if schema else prompt
        stopped = await session.submit(text)
        problem = ""
        if schema and stopped.reason == "done" and (problem := schema.check(report.answer)):
            stopped = await session.submit(schema.again(problem))
            problem = schema.check(report.answer) if stopped.reason == "done" else ""
    finally:
        unsubscribe()
        session.subscribe(report.late)
    if report.pipe_closed:
        raise BrokenPipeError
    if interrupt.code and stopped.reason == "cancelled":
        return report.end(stopped, interrupt.code)
    if problem:
        return report.end(stopped, Exit.FAILED, problem=problem)
    return report.end(stopped, exit_of_turn(stopped), data=schema and schema.parse(report.answer))
