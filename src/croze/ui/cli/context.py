"""`croze context`: what the model saw at a step, why, what it cost, what was pruned; bringing it back."""

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from croze.types.errors import UsageError
from croze.ui.cli.exits import Exit
from croze.ui.cli.framework import Command
from croze.ui.cli.output import columns
from croze.ui.cli.state import State, pass_state
from croze.ui.cli.with_app import with_app, write_json
from croze.ui.i18n import _, mark

if TYPE_CHECKING:
    from collections.abc import Callable

    from croze.app.app import App
    from croze.ui.render import Screen

MESSAGES = 20
"""Messages that a report shows where nothing else is asked."""


@click.command(
    "context",
    cls=Command,
    help=mark(
        "Show what the model saw at a step of a conversation: sections, tokens, cost, reason, origin. "
        "All of it comes from the log, exact to the byte, also long after. Without a conversation: the "
        "newest one of this project."
    ),
)
@click.argument("conversation", required=False)
@click.option("--turn", metavar="N", help=mark("The step to look at; the last one by default."))
@click.option(
    "--diff", "pair", nargs=2, metavar="A B",
    help=mark("What came, went and changed from step A to step B."),
)  # fmt: skip
@click.option(
    "--why", "text", metavar="TEXT", help=mark("Why a text is in the context, or how it went.")
)
@click.option(
    "--breaks", is_flag=True,
    help=mark("Where the cached prefix broke: first byte, cause, price; and cold caches."),
)  # fmt: skip
@click.option(
    "--what-if", "specs", multiple=True, metavar="SPEC",
    help=mark(
        "Play the log under other settings: all, or policy=NAME,window=32k,prices=IN/CACHED/WRITE/OUT "
        "(or a model's name for its prices)."
    ),
)  # fmt: skip
@click.option("--receipts", is_flag=True, help=mark("What was pruned, when, and what it saved."))
@click.option("--show", metavar="ID", help=mark("Print a message in full, pruned or not."))
@click.option("--restore", metavar="ID", help=mark("Bring a pruned message back into the context."))
@click.option("--raw", is_flag=True, help=mark("Print the request's very bytes."))
@click.option(
    "--messages", type=click.IntRange(min=0), default=MESSAGES, metavar="N",
    help=mark("List the last N messages."),
)  # fmt: skip
@click.option(
    "--namespace", metavar="NAME", help=mark("The newest conversation kept under this name.")
)
@click.option("--json", "as_json", is_flag=True, help=mark("Print one line of JSON."))
@pass_state
def context(state: State, /, conversation: str | None, **given: Any) -> int:
    chosen = [name for name in _VIEWS if given[name]]
    if len(chosen) > 1:
        raise UsageError(
            _("{options} exclude each other", options=" and ".join(map(_option, chosen))),
            hint=_("ask for one at a time"),
            code="one_view",
        )
    if given["turn"] and chosen and chosen[0] not in ("text", "raw"):
        raise UsageError(
            _("{option} says nothing to {command}", option="--turn", command=_option(chosen[0])),
            hint=_("leave it out"),
            code="turn_of_view",
        )
    view = chosen[0] if chosen else "report"
    if view == "raw":
        return _raw(state, conversation, given)
    color = False

    async def work(app: "App") -> Any:
        nonlocal color
        color = _wants_color(app)
        return await _ask(app, view, conversation, given)

    value = with_app(state, work)
    if given["as_json"]:
        return write_json(state, value)
    from croze.ui.render import Screen

    def write(text: str) -> None:
        state.out.raw(text.encode("utf-8", "replace"))

    screen = Screen(write, color=color, width=columns())
    _drawer(view, given)(screen, value)
    return Exit.DONE


_VIEWS = {
    "pair": "--diff", "text": "--why", "breaks": "--breaks", "specs": "--what-if",
    "receipts": "--receipts", "show": "--show", "restore": "--restore", "raw": "--raw",
}  # fmt: skip


def _option(view: str) -> str:
    return _VIEWS[view]


def _wants_color(app: "App") -> bool:
    """As configured; by itself only on a terminal, and never against NO_COLOR."""
    wish = app.config.settings.ui.color
    shown = sys.stdout is not None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return wish == "always" or (wish == "auto" and shown)


async def _ask(app: "App", view: str, conversation: str | None, given: dict[str, Any]) -> Any:
    from croze.app import context as inspect

    place: dict[str, Any] = {"namespace": given["namespace"]}
    match view:
        case "pair":
            a, b = given["pair"]
            return await inspect.compare(app, a, b, conversation, **place)
        case "text":
            return await inspect.explain(
                app, given["text"], conversation, turn=given["turn"], **place
            )
        case "breaks":
            return await inspect.breaks(app, conversation, **place)
        case "specs":
            return await inspect.what_if(app, given["specs"], conversation, **place)
        case "receipts":
            return await inspect.receipts(app, conversation, **place)
        case "show":
            return await inspect.show(app, given["show"], conversation, **place)
        case "restore":
            return await inspect.restore(app, given["restore"], conversation, **place)
        case _:
            return await inspect.report(app, conversation, turn=given["turn"], **place)


def _drawer(view: str, given: dict[str, Any]) -> "Callable[[Screen, Any], None]":
    from croze.ui.inspector import past, report

    match view:
        case "pair":
            return past.draw_difference
        case "text":
            return past.draw_answer
        case "breaks":
            return past.draw_breaks
        case "specs":
            return past.draw_what_if
        case "receipts":
            return past.draw_receipts
        case "show":
            return past.draw_span
        case "restore":
            return past.draw_restored
        case _:

            def draw(screen: "Screen", value: Any) -> None:
                if hasattr(value, "sections"):
                    report.draw_report(screen, value, messages=given["messages"])
                else:
                    report.draw_unrecorded(screen, value, messages=given["messages"])

            return draw


def _raw(state: State, conversation: str | None, given: dict[str, Any]) -> int:
    """The request's bytes on standard output, and nothing else there."""

    async def work(app: "App") -> Any:
        from croze.app.context import body

        return await body(app, conversation, turn=given["turn"], namespace=given["namespace"])

    data, exact = with_app(state, work)
    state.out.raw(data)
    if exact.exact:
        return Exit.DONE
    from croze.ui.inspector.report import exactness

    state.out.note(f"croze: {exactness(exact)}")
    return Exit.FAILED
