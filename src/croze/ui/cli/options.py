"""The options that say how a session runs, shared by the chat and `croze run`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from croze.types.errors import UsageError
from croze.ui.cli.framework import Number, Pick
from croze.ui.cli.state import State
from croze.ui.i18n import _, mark

if TYPE_CHECKING:
    from croze.app.options import RunOptions

F = TypeVar("F", bound=Callable[..., Any])

MODES = ("plan", "ask", "auto-edit", "full")


def _trust(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    state = ctx.find_object(State)
    if wanted and state is not None:
        state.trust = True


_OPTIONS = (
    click.option(
        "--model", "-m", metavar="NAME", help=mark("Model to use, as provider:model.")
    ),
    click.option(
        "--resume", "-r", metavar="ID",
        help=mark("Go on with this conversation (the start of its id is enough)."),
    ),
    click.option(
        "--continue", "-c", "continue_", is_flag=True,
        help=mark("Go on with the last conversation here."),
    ),
    click.option("--namespace", metavar="NAME", help=mark("Keep conversations under this name.")),
    click.option(
        "--mode", type=Pick(MODES),
        help=mark(
            "What runs without a question: plan only reads, ask asks before changes and commands, "
            "auto-edit asks before commands, full never asks."
        ),
    ),
    click.option(
        "--sandbox", type=Pick(("read-only", "workspace", "off")),
        help=mark("Where commands may write; off runs them unconfined."),
    ),
    click.option(
        "--allow", multiple=True, metavar="RULE",
        help=mark("Allow these calls without a question, such as 'execute_command(make test)'. Repeatable. "
                  "'network' gives commands in the sandbox network."),
    ),
    click.option(
        "--deny", multiple=True, metavar="RULE",
        help=mark("Never allow these calls; wins over every other rule. Repeatable."),
    ),
    click.option(
        "--max-turns", type=Number(whole=True), help=mark("Stop after N model requests.")
    ),
    click.option(
        "--max-cost", type=Number(whole=False),
        help=mark("Stop when N US dollars are spent (the model's price must be known)."),
    ),
    click.option("--max-time", type=Number(whole=False), help=mark("Stop after N seconds.")),
    click.option("--agent", metavar="NAME", help=mark("Use this agent of the project or yours.")),
    click.option("--system-prompt", metavar="TEXT", help=mark("Replace the agent's own prompt.")),
    click.option(
        "--include-rules", is_flag=True,
        help=mark("Put the project's rules into the context of a named agent too."),
    ),
    click.option(
        "--dialect", type=Pick(("auto", "native", "xml")),
        help=mark("How the model writes tool calls; auto suits the model."),
    ),
    click.option(
        "--policy", type=Pick(("batch", "digest", "zone", "none")),
        help=mark("When and how the context is made smaller."),
    ),
    click.option(
        "--zone", metavar="SIZE",
        help=mark("Above what size: 80k, 1.5M, a number of tokens, a share such as 0.5, or auto."),
    ),
    click.option(
        "--trust", is_flag=True, expose_value=False, callback=_trust,
        help=mark("Let the project's files act and instruct as they are now, for this run only: its "
                  "settings, hooks, servers, agents, rules. For a repository that you know."),
    ),
    click.option(
        "--record", metavar="FILE", help=mark("Write the model's replies to FILE as a script.")
    ),
    click.option(
        "--verbose", "-v", is_flag=True,
        help=mark("Show the model's text, thinking and command output as they come."),
    ),
)  # fmt: skip


def session_options(command: F) -> F:
    """Add the options of a session to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def options_from(given: dict[str, Any], *, headless: bool) -> "tuple[RunOptions, bool]":
    """The options as a value, and whether to be verbose. Raises `UsageError` for an empty value: it
    comes from an unset variable of a script, and without it something else would happen."""
    from croze.app.options import RunOptions

    for name in ("model", "resume", "namespace", "agent", "record"):
        if given[name] is not None and not given[name].strip():
            raise UsageError(
                _("--{name} is empty", name=name),
                hint=_("give it a value, or leave it out"),
                code="empty_option",
            )
    if given["resume"] and given["continue_"]:
        raise UsageError(
            _("--resume and --continue exclude each other"),
            hint=_("leave one of them out"),
            code="resume_or_continue",
        )
    if given["zone"] is not None:
        _check_zone(given["zone"])
    verbose = given.pop("verbose")
    if given["max_turns"] is not None:
        given["max_turns"] = int(given["max_turns"])
    return RunOptions(headless=headless, **given), verbose


def _check_zone(text: str) -> None:
    """Raise `UsageError` where a zone is none."""
    from croze.app.options import is_zone

    if not is_zone(text):
        raise UsageError(
            _("--zone {value} is no size", value=text),
            hint=_("give 80k, 1.5M, 81920, a share such as 0.5, or auto"),
            code="bad_zone",
            value=text,
        )
