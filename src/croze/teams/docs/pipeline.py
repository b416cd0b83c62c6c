"""The documentation pipeline as a session's turn: create → structure → detail → index, on record.

What was asked for stands in a fact before the user's word (`OPTIONS`); a word alone is taken as the wish
and all else as it is by default.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from croze.agent.host import CallHost
from croze.agent.limits import Meter
from croze.agent.live import Live, Workflow
from croze.agent.loop import stop
from croze.teams.docs.folder import Folder
from croze.teams.docs.manifest import Manifest
from croze.teams.docs.page_nodes import LINKS, TO_INDEX, Detail, Index, Links
from croze.teams.docs.plan_nodes import (
    ACCEPT,
    DETAIL,
    NEW,
    REJECTED,
    REVIEW,
    WAIT,
    Accept,
    Create,
    Review,
    Structure,
)
from croze.teams.docs.shop import Ended, Shop
from croze.teams.docs.texts import ROSTER
from croze.teams.docs.values import DocsOptions, DocsState, Stage
from croze.teams.flow import DONE, Flow, Node, Record
from croze.teams.flow_record import START, Past, past
from croze.types.errors import CrozeError, UsageError
from croze.types.event import Event, FactAdded, FlowStepped, Notice, Stopped, UserSaid
from croze.types.parts import Text
from croze.types.stream import Delta
from croze.workspace.tree import TreeOptions

FLOW = "docs"
OPTIONS = "docs_options"
"""The key of the fact whose data are the options of what follows."""

STARTS: Mapping[Stage | None, str] = {
    None: "Create",
    "create": "Create",
    "structure": "Structure",
    "detail": "Detail",
    "index": "Links",
}
"""The node that a stage alone begins with."""


Account = Callable[[Live], Awaitable[Notice | None]]
"""What the run's shared cache did, to be told at the end; None where that is nothing."""


def documentation(tree: TreeOptions | None, account: Account) -> Workflow:
    """The workflow; `tree` says how the project is listed for all its agents."""

    async def turn(live: Live, host: CallHost, meter: Meter) -> Stopped:
        children = live.with_children()
        if children is None:
            raise CrozeError("This session can't call agents, so it can't write documentation.")
        if live.approver.mode == "plan":
            raise UsageError(
                "In the mode plan nothing is written, documentation neither.",
                hint="Leave --mode plan out.",
                code="docs_plan_mode",
            )
        children.roster = lambda: ROSTER
        facts = await live.gather(live)
        if facts:
            await live.append(*facts)
        found = standing(live.log.events)
        state = found.state or begun(live, live.log.events)
        shop = Shop(
            live=live,
            host=host,
            meter=meter,
            children=children,
            folder=Folder(live, state.options.out),
            tree=tree,
        )
        try:
            state = await _run(shop, found, state)
        except Ended as error:
            return await stop(live, host, meter, error.reason, error.message)
        notice = await account(live) if meter.spent.steps else None
        if notice is not None:
            await live.append(notice)
        failed = any(done.state == "failed" for done in state.done)
        text = summary(state)
        live.publish(Delta(kind="text", text=text, session=live.log.session))
        return await stop(live, host, meter, "failed" if failed else "done", text)

    return turn


class Standing(msgspec.Struct, frozen=True):
    """Where the pipeline stands: the run that this turn goes on with, and its state; `start` is the node
    that an accepted structure goes on from. Nothing where a new one begins."""

    past: Past | None = None
    state: DocsState | None = None
    start: str = ""


def standing(events: Sequence[Event]) -> Standing:
    """What the log says of the pipeline that the next turn is about."""
    steps = [event.body for event in events if isinstance(event.body, FlowStepped)]
    found = past(steps, FLOW)
    if found is None:
        return Standing()
    begun_at = max(
        event.seq
        for event in events
        if isinstance(event.body, FlowStepped)
        and (event.body.flow, event.body.action) == (FLOW, START)
    )
    said = [e.body for e in events if e.seq > begun_at and isinstance(e.body, UserSaid)]
    later = [e.body for e in events if e.seq > begun_at and _is_options(e.body)]
    state = state_of(found)
    if found.action == WAIT and state is not None:
        accepts = any(options_of(fact).accept for fact in later)
        accepts = accepts or any(_text(each).casefold() == ACCEPT for each in said)
        if accepts:
            return Standing(found, state, "Accept")
        return Standing(found, state, "Review") if not said else Standing()
    if said or state is None:
        return Standing()
    return Standing(found, state)


def state_of(found: Past) -> DocsState | None:
    """The state on record; None where it was recorded in another shape."""
    try:
        return msgspec.convert(found.state, DocsState)
    except msgspec.ValidationError:
        return None


def begun(live: Live, events: Sequence[Event]) -> DocsState:
    """The state that a new run begins with. Where nothing but a word is given, it is the wish, and the
    folder is the last run's."""
    wish, options, said = "", DocsOptions(), 0
    for event in reversed(events):
        if isinstance(event.body, UserSaid):
            said += 1
            wish = wish if said > 1 else _text(event.body)
        elif _is_options(event.body):
            options = options_of(event.body)
            break
    else:
        said = 2
    if said > 1:
        options = DocsOptions(out=options.out, prompt=wish)
    return DocsState(user_query=wish, working_dir=str(live.workspace.root), options=options)


def options_of(body: Any) -> DocsOptions:
    """The options in a fact. Raises UsageError for what isn't any."""
    try:
        return msgspec.convert(body.data, DocsOptions)
    except msgspec.ValidationError as error:
        raise UsageError(f"The options of the documentation can't be read: {error}.") from error


def options_fact(options: DocsOptions, message_id: str) -> FactAdded:
    """The options on record; they are for the pipeline, no model is told."""
    return FactAdded(
        key=OPTIONS,
        message_id=message_id,
        text="",
        layer="current",
        reason="what the documentation is to be",
        data=msgspec.to_builtins(options),
    )


async def _run(shop: Shop, found: Standing, state: DocsState) -> DocsState:
    live = shop.live
    start = found.start or ("" if found.past else STARTS[state.options.stage])
    run_id = found.past.run_id if found.past else live.source.uuid()
    flow = build(shop, start, record=live.append, run_id=run_id)
    if found.past is not None and not found.start:
        return await flow.go_on(found.past, DocsState)
    if not found.past:
        take_over(shop.manifest, state)
    return await flow.run(state)


def build(
    shop: Shop, start: str, *, record: Record | None = None, run_id: str = ""
) -> Flow[DocsState]:
    """The flow: its nodes, and which action leads where."""
    create, structure, review, accept = Create(shop), Structure(shop), Review(shop), Accept(shop)
    detail, links, index = Detail(shop), Links(shop), Index(shop)
    nodes: list[Node[DocsState, Any, Any]] = [
        create, structure, review, accept, detail, links, index,
    ]  # fmt: skip
    edges: dict[tuple[Node[DocsState, Any, Any], str], Node[DocsState, Any, Any]] = {
        (create, NEW): structure,
        (create, ACCEPT): accept,
        (structure, REVIEW): review,
        (structure, ACCEPT): accept,
        (review, NEW): structure,
        (review, REVIEW): review,
        (review, ACCEPT): accept,
        (accept, DETAIL): detail,
        (detail, LINKS): links,
        (links, TO_INDEX): index,
    }
    first = next((node for node in nodes if node.name == start), create)
    return Flow(first, edges, name=FLOW, ends=(DONE, WAIT, REJECTED), record=record, run_id=run_id)


def take_over(manifest: Manifest, state: DocsState) -> None:
    """What the last run left: its wishes where none are said now, and for a later stage alone what the
    earlier ones made."""
    options = state.options
    state.options = replace(
        options,
        prompt=options.prompt or manifest.prompt,
        sources=options.sources or manifest.globs,
        language=options.language or manifest.language or "English",
    )
    if options.stage not in (None, "create"):
        state.brief = manifest.brief
    if options.stage in ("detail", "index"):
        state.pages, state.known = manifest.pages, manifest.known


def summary(state: DocsState) -> str:
    """How the run ended, in a few lines."""
    if not state.done and not state.index:
        if state.pages:
            return f"The structure has {len(state.pages)} pages."
        return f"The set is about: {state.brief.title if state.brief else ''}."
    counts = {
        name: sum(done.state == name for done in state.done)
        for name in ("written", "unchanged", "kept", "failed")
    }
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    lines = [f"{state.options.out}: {told or 'the index and the links'}."]
    lines += [f"{d.path}: {d.note}" for d in state.done if d.state in ("kept", "failed")]
    lines += [f"{note.page}: link to {note.target} {note.state}" for note in state.links]
    return "\n".join(lines)


def _is_options(body: object) -> bool:
    return isinstance(body, FactAdded) and body.key == OPTIONS


def _text(said: UserSaid) -> str:
    return "\n".join(part.text for part in said.parts if isinstance(part, Text)).strip()
