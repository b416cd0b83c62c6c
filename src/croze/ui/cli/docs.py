"""`croze docs`: a documentation set for the project, written by several agents."""

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import click

from croze.text.display import one_line
from croze.types.errors import UsageError
from croze.types.event import Event
from croze.ui.cli.docs_review import Review
from croze.ui.cli.exits import Exit, exit_of_turn
from croze.ui.cli.framework import Command, Pick
from croze.ui.cli.interrupt import Interrupt
from croze.ui.cli.options import options_from, session_options
from croze.ui.cli.report import Report
from croze.ui.cli.state import State, pass_state
from croze.ui.i18n import _, mark

if TYPE_CHECKING:
    from croze.app.docs import DocsOptions, DocsReport, Progress
    from croze.app.options import RunOptions
    from croze.types.event import Stopped

STAGES = ("create", "structure", "detail", "index")


@click.command(
    cls=Command,
    name="docs",
    help=mark(
        "Write a documentation set for this project.\n\n"
        "Four stages: create settles for whom it is, structure divides it into pages with their sources, "
        "detail writes the pages, five at a time, and index checks the links and makes the index. Again, "
        "only pages whose sources or structure have changed are written; pages that you have edited stay "
        "as they are.\n\n"
        "The agents read, and run nothing; nothing outside of the folder is touched, and `croze undo` "
        "takes the run back."
    ),
)
@click.option(
    "--out", "-o", metavar="DIR",
    help=mark("The folder of the set, in the project (default: docs/reference)."),
)  # fmt: skip
@click.option("--stage", type=Pick(STAGES), help=mark("Run one stage alone."))
@click.option(
    "--review", is_flag=True,
    help=mark("Show the structure and ask: accept, edit, reject or say what to change. "
              "Without a terminal the run stops there."),
)  # fmt: skip
@click.option(
    "--accept", is_flag=True,
    help=mark("With --resume: accept the structure that waits, and go on."),
)  # fmt: skip
@click.option("--prompt", metavar="TEXT", help=mark("What you want of it, in your words."))
@click.option(
    "--source", "sources", multiple=True, metavar="GLOB",
    help=mark("Only these files may be sources, as in .gitignore. Repeatable."),
)  # fmt: skip
@click.option(
    "--language",
    metavar="NAME",
    help=mark("The language of the pages (default: as last time, else English)."),
)
@click.option(
    "--force", "-f", is_flag=True, help=mark("Write over pages that were edited by hand.")
)
@click.option("--json", "as_json", is_flag=True, help=mark("Print what was made as JSON."))
@session_options
@pass_state
def docs(state: State, /, *, as_json: bool, **given: Any) -> int:
    asked = {
        name: given.pop(name)
        for name in (
            "out",
            "stage",
            "review",
            "accept",
            "prompt",
            "sources",
            "language",
            "force",
        )
    }
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    options, verbose = options_from(given, headless=not (asked["review"] and at_terminal))
    if options.agent is not None:
        raise UsageError(
            _("--agent says nothing to {command}", command="croze docs"),
            hint=_("leave it out; `{command}` shows the options", command="croze docs --help"),
            code="option_of_session",
        )
    wanted = _wanted(asked, resumed=bool(options.resume or options.continue_))
    report = Report(state.out, "none", verbose=verbose)
    return asyncio.run(_docs(state, options, wanted, report, as_json=as_json))


def _wanted(asked: dict[str, Any], *, resumed: bool) -> "DocsOptions | None":
    """What is asked for; None where an earlier run goes on as it is."""
    from croze.app.docs import DocsOptions

    given = {name: value for name, value in asked.items() if value}
    for name in ("out", "prompt", "language"):
        if asked[name] is not None and not asked[name].strip():
            raise UsageError(
                _("--{name} is empty", name=name),
                hint=_("give it a value, or leave it out"),
                code="empty_option",
            )
    if asked["accept"] and not resumed:
        raise UsageError(
            _("--accept needs the run whose structure waits"),
            hint=_("croze docs --resume ID --accept; without --review every structure is accepted"),
            code="docs_accept",
        )
    return DocsOptions(**given) if given or not resumed else None


async def _docs(
    state: State,
    options: "RunOptions",
    wanted: "DocsOptions | None",
    report: Report,
    *,
    as_json: bool,
) -> int:
    from croze.app.docs import check_docs, docs_options, docs_report, progress, write_docs

    interrupt = Interrupt()
    app = state.open()
    with interrupt.watching():
        try:
            check_docs(app.config.project.root, wanted)
            session = await app.session(docs_options(options))
            state.tell_store(app)
            interrupt.cancel = report.cancel = session.cancel
            review = Review(state, session)

            def watch(item: object) -> None:
                if isinstance(item, Event):
                    found = progress(item)
                    if found is not None and (text := told(found)):
                        report.note(text)
                    review.take(item)

            ends = (report.begin(session), session.subscribe(watch))
            try:
                stopped = await write_docs(session, wanted)
            finally:
                for end in ends:
                    end()
            found = docs_report(session.events)
            return _end(state, found, stopped, report, session.id, interrupt, as_json=as_json)
        except asyncio.CancelledError:
            return interrupt.code or Exit.INTERRUPTED
        finally:
            await app.aclose()


def _end(
    state: State,
    found: "DocsReport",
    stopped: "Stopped",
    report: Report,
    session: str,
    interrupt: Interrupt,
    *,
    as_json: bool,
) -> int:
    """Print what was made, and give the exit code."""
    code = exit_of_turn(stopped)
    if interrupt.code and stopped.reason == "cancelled":
        code = interrupt.code
    if as_json:
        state.out.json(_as_json(found, stopped, session, code))
    else:
        for line in lines(found):
            state.out.line(line)
    if found.waits:
        command = f"croze docs --resume {session[:8]} --accept"
        report.note(_("the structure waits for you; `{command}` goes on", command=command))
    if found.rejected:
        report.note(_("you rejected the structure; nothing was written"))
    return report.end(stopped, code)


def _as_json(found: "DocsReport", stopped: "Stopped", session: str, code: Exit) -> bytes:
    from msgspec.structs import asdict

    value = {
        "session": session,
        "ok": code is Exit.DONE,
        "exit_code": int(code),
        "reason": stopped.reason,
        "error": stopped.text if stopped.reason != "done" else None,
        "steps": stopped.steps,
        "seconds": stopped.seconds,
        "cost": stopped.cost,
        **asdict(found),
    }
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def told(found: "Progress") -> str:
    """A step of the pipeline in a line; empty for those that say nothing new."""
    if found.path:
        return _page_line(found.path, found.state, found.note)
    match found.stage:
        case "create":
            return _("what the set is about is settled")
        case "structure":
            return _("the structure has {count} pages", count=found.pages)
        case "links":
            return _("the links are checked")
        case _:
            return ""


def lines(found: "DocsReport") -> list[str]:
    """What was made, for a person."""
    shown = [found.title] if found.title else []
    if not found.pages:
        about = (found.summary, found.audience, found.scope)
        return [*shown, *(text for text in about if text)]
    if not any(page["state"] for page in found.pages) and not found.index:
        for page in found.pages:
            sources = ", ".join(page["sources"])
            shown.append(f"  {page['path']}: {page['title']} ({sources})")
        return shown
    for page in found.pages:
        if page["state"]:
            path = f"{found.out}/{page['path']}"
            shown.append("  " + _page_line(path, page["state"], page["note"]))
    if found.index:
        shown.append("  " + _page_line(f"{found.out}/index.md", found.index, ""))
    shown += [
        "  " + _("{path} removed: it is no longer in the structure", path=f"{found.out}/{path}")
        for path in found.gone
    ]
    return shown + ["  " + _link_line(note) for note in found.links]


def _page_line(path: str, state: str, note: str) -> str:
    words = {
        "written": _("written"),
        "unchanged": _("unchanged"),
        "kept": _("left as you have it"),
        "failed": _("failed"),
    }
    reason = f" ({one_line(note, 200)})" if note else ""
    return f"{path}: {words.get(state, state)}{reason}"


def _link_line(note: dict[str, Any]) -> str:
    where = {"page": note["page"], "target": one_line(note["target"], 120)}
    if note["state"] == "mended":
        return _("{page}: the broken link to {target} was mended", **where)
    if note["state"] == "removed":
        return _("{page}: the broken link to {target} was taken out", **where)
    return _("{page}: the link to {target} is broken", **where)
