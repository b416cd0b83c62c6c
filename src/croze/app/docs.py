"""`croze docs` as front ends see it: its options, how it is asked for, what came out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from croze.agent.session import Session
from croze.app.options import RunOptions
from croze.teams.docs.folder import checked_out
from croze.teams.docs.pipeline import FLOW, options_fact, state_of
from croze.teams.docs.plan_nodes import ACCEPT, NO, REJECTED, WAIT, YES
from croze.teams.docs.texts import DOCS
from croze.teams.docs.values import OUT, DocsOptions, Page, PageDone
from croze.teams.flow_record import ITEM, START, past
from croze.types.event import Asked, Event, FlowStepped, Stopped
from croze.workspace.files import Files

__all__ = ["NO", "OUT", "YES", "DocsOptions", "DocsReport", "Progress"]

TASK = "Write the documentation of this project."


class DocsReport(Struct, frozen=True):
    """What a run made. `pages` are as the structure has them, each with `state` (written, unchanged, kept,
    failed; None: not come to) and `note`; `links` the broken ones and what became of them; `waits`: the
    structure waits for the user's word. `index`: written, unchanged, kept, or empty."""

    out: str = OUT
    title: str = ""
    summary: str = ""
    audience: str = ""
    scope: str = ""
    pages: tuple[dict[str, Any], ...] = ()
    links: tuple[dict[str, Any], ...] = ()
    gone: tuple[str, ...] = ()
    index: str = ""
    waits: bool = False
    rejected: bool = False


class Progress(Struct, frozen=True):
    """A step of the pipeline, for whoever watches: a `stage` that is over (`pages`: how many the structure
    has), or a page (`path`) with its `state`."""

    stage: str = ""
    pages: int = 0
    path: str = ""
    state: str = ""
    note: str = ""


def docs_options(options: RunOptions) -> RunOptions:
    """The options of a session that writes documentation."""
    return msgspec.structs.replace(options, agent=DOCS.name, name=options.name or "docs")


def check_docs(root: Path, options: DocsOptions | None) -> None:
    """Raise UsageError where the folder of a set can't be what is asked for, before a session is opened."""
    if options is not None:
        checked_out(Files(root, kind="project"), options.out)


async def write_docs(session: Session, options: DocsOptions | None) -> Stopped:
    """One run of the pipeline; without `options` the session's last one goes on. One that only accepts
    takes up the structure that waits. Raises what `Session.submit` does."""
    if options is None:
        return await session.submit("")
    await session.add_fact(options_fact(options, session.new_id()))
    if options == DocsOptions(accept=True) and waits(session.events):
        return await session.submit(ACCEPT)
    return await session.submit(f"{TASK} {options.prompt}".strip())


def waits(events: Sequence[Event]) -> bool:
    """Whether the session's last run ended where the user's word on the structure is wanted."""
    found = past(_steps(events), FLOW)
    return found is not None and found.action == WAIT


def docs_report(events: Sequence[Event]) -> DocsReport:
    """What the session's last run has made so far."""
    found = past(_steps(events), FLOW)
    state = state_of(found) if found is not None else None
    if found is None or state is None:
        return DocsReport()
    done = {each.path: each for each in state.done}
    for result in found.items.values():
        if isinstance(result, dict) and "state" in result:
            page = msgspec.convert(result, PageDone)
            done[page.path] = page
    brief = state.brief
    return DocsReport(
        out=state.options.out,
        title=brief.title if brief else "",
        summary=brief.summary if brief else "",
        audience=brief.audience if brief else "",
        scope=brief.scope if brief else "",
        pages=tuple(_page(page, done.get(page.path)) for page in state.pages),
        links=tuple(msgspec.to_builtins(note) for note in state.links),
        gone=state.gone,
        index=state.index,
        waits=found.action == WAIT,
        rejected=found.action == REJECTED,
    )


def progress(event: Event) -> Progress | None:
    """What an event says of the pipeline's progress; None where that is nothing."""
    body = event.body
    if not isinstance(body, FlowStepped) or body.flow != FLOW or body.action == START:
        return None
    if body.action != ITEM:
        return Progress(stage=body.node.lower(), pages=len(body.state.get("pages", ())))
    result = body.state.get("result")
    if body.node != "Detail" or not isinstance(result, dict):
        return None
    done = msgspec.convert(result, PageDone)
    return Progress(path=done.path, state=done.state, note=done.note)


def is_review(event: Event) -> bool:
    """Whether the user is asked about the structure."""
    body = event.body
    return isinstance(body, Asked) and body.options == (YES, NO) and not body.call_id


def _steps(events: Sequence[Event]) -> list[FlowStepped]:
    return [event.body for event in events if isinstance(event.body, FlowStepped)]


def _page(page: Page, done: PageDone | None) -> dict[str, Any]:
    return {
        **msgspec.structs.asdict(page),
        "state": done.state if done else None,
        "note": done.note if done else "",
    }
