"""What the log says of a flow that ran before: a fold, from which an interrupted one goes on."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from croze.types.team import FlowStepped

START = "start"
"""The action of a flow's first event: `node` is about to run, with the state that it begins with."""

ITEM = "item"
"""The action of an event that tells of one finished item of a batch: `state` is {item, result}."""


class Past(Struct, frozen=True):
    """Where a run stands: the last node that ended, its action, the state after it; `items` are the
    finished ones of the batch that was at work then, by key."""

    run_id: str
    node: str
    action: str
    state: dict[str, Any]
    items: dict[str, Any] = {}


def past(steps: Iterable[FlowStepped], flow: str, run_id: str = "") -> Past | None:
    """The flow's last run (or the one with `run_id`) as far as it is on record; None where there is
    none."""
    found: Past | None = None
    for step in steps:
        if step.flow != flow or (run_id and step.run_id != run_id):
            continue
        if step.action != ITEM:
            found = Past(step.run_id, step.node, step.action, step.state)
        elif found is not None and step.run_id == found.run_id:
            found.items[str(step.state.get("item", ""))] = step.state.get("result")
    return found
