"""The top of the command tree: the list of commands, and the chat where none is given."""

from typing import Any

import click
from click.core import ParameterSource

from croze import __version__
from croze.types.errors import UsageError
from croze.ui.cli.framework import LazyGroup
from croze.ui.cli.options import options_from, session_options
from croze.ui.cli.state import State
from croze.ui.i18n import _, mark

_RUN = mark("Do one task without a chat and print the answer.")

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("croze.ui.cli.run:run", _RUN),
    "exec": ("croze.ui.cli.run:run", mark("Another name of run.")),
    "init": ("croze.ui.cli.init:init", mark("Look round and write the project's guide.")),
    "session": ("croze.ui.cli.session:session", mark("List, show, search and move conversations.")),
    "context": (
        "croze.ui.cli.context:context",
        mark("Show what the model saw at a step, why, and what it cost."),
    ),
    "replay": (
        "croze.ui.cli.replay:replay",
        mark("Check that a recorded conversation can be rebuilt byte for byte."),
    ),
    "stats": (
        "croze.ui.cli.stats:stats",
        mark("Show tokens, money, tools and what the cache saved."),
    ),
    "undo": ("croze.ui.cli.timetravel:undo", mark("Take back the last turn: files and words.")),
    "redo": ("croze.ui.cli.timetravel:redo", mark("Bring back what was undone last.")),
    "diff": ("croze.ui.cli.timetravel:diff", mark("Show what a conversation has changed.")),
    "checkpoints": (
        "croze.ui.cli.timetravel:checkpoints",
        mark("List the turns that undo can go back to."),
    ),
    "commit": ("croze.ui.cli.timetravel:commit", mark("Commit what a conversation has changed.")),
    "knowledge": (
        "croze.ui.cli.knowledge:knowledge",
        mark("Show the files that tell agents something, and what became of each."),
    ),
    "blame": (
        "croze.ui.cli.blame:blame",
        mark("Show which conversation, agent and turn wrote each line of a file."),
    ),
    "docs": ("croze.ui.cli.docs:docs", mark("Write a documentation set for this project.")),
    "permissions": (
        "croze.ui.cli.permissions:permissions",
        mark("Show, change and try the rules of what may run without a question."),
    ),
    "trust": (
        "croze.ui.cli.trust:trust",
        mark("Show what of this project would act or instruct, and let it."),
    ),
    "tools": (
        "croze.ui.cli.tools:tools",
        mark("List, show and make the tools that agents use."),
    ),
    "lib": ("croze.ui.cli.lib:lib", mark("Add documentation of libraries for agents to know.")),
    "mcp": ("croze.ui.cli.mcp:mcp", mark("Add, try and approve servers of outside tools.")),
    "config": ("croze.ui.cli.config:config", mark("Show and change settings.")),
    "demo": ("croze.ui.cli.demo:demo", mark("Watch a scripted model mend a real bug.")),
    "doctor": ("croze.ui.cli.doctor:doctor", mark("Check that everything croze needs is there.")),
    "completion": (
        "croze.ui.cli.completion:completion",
        mark("Print the completion script for your shell."),
    ),
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    invoke_without_command=True,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=mark(
        "croze is a coding agent: it reads, edits and tests the code in this folder for you.\n\n"
        'Without a command it opens a chat. `croze -p "task"` does one task and ends.\n\n'
        "It needs a model: set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY, or start Ollama; "
        "`croze demo` shows it at work without one. `croze doctor` says what is missing."
    ),
    epilog=mark(
        "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a limit was reached, 4 an action was refused, "
        "75 the model could not be reached, 129, 130 and 143 stopped by a signal, 141 the output was closed."
    ),
)
@click.version_option(
    __version__, "-V", "--version", message="croze %(version)s",
    help=mark("Show the version."),
)  # fmt: skip
@session_options
@click.pass_context
def cli(ctx: click.Context, /, **given: Any) -> int | None:
    if ctx.invoked_subcommand is not None:
        _hand_on(ctx, given)
        return None
    state = ctx.find_object(State)
    assert state is not None
    from croze.ui.repl.open import open_chat
    from croze.ui.repl.trust import open_asking

    options, _verbose = options_from(given, headless=False)
    return open_chat(open_asking(state), options, state.out)


def _hand_on(ctx: click.Context, given: dict[str, Any]) -> None:
    """`croze --model a:b run …` is `croze run --model a:b …`, and so for docs; other commands run no session."""
    named = {
        name: value
        for name, value in given.items()
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    command = str(ctx.invoked_subcommand)
    if command in ("run", "exec", "docs"):
        ctx.default_map = {**(ctx.default_map or {}), command: named}
    elif named:
        option = next(p.opts[0] for p in ctx.command.params if p.name in named)
        raise UsageError(
            _("{option} says nothing to {command}", option=option, command=f"croze {command}"),
            hint=_(
                "leave it out; `{command}` shows the options", command=f"croze {command} --help"
            ),
            code="option_of_session",
        )
