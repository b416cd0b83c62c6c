"""What agents that work together say and do, as values: orders, leases, reports, plans, merges."""

from typing import Any, Literal

from msgspec import Struct, field

from croze.types.agent import AgentSpec, StopReason
from croze.types.model import Usage

INHERITED = "inherited"
"""In a fact's data: it was told at a sub-agent's opening, copied from the session named there (empty: made
for it)."""
HUB = "hub"
"""The label of the orders with which the hub opens its agents' sessions; no other order has it."""


class Lease(Struct, frozen=True, omit_defaults=True):
    """What a child may use of its parent's budget; None is no limit. `cost` in US dollars, `seconds` of
    wall-clock time, `steps` are model requests, those of its own children too."""

    steps: int | None = None
    seconds: float | None = None
    cost: float | None = None


class Order(Struct, frozen=True, omit_defaults=True):
    """What a sub-agent is to do. `agent` names one of the roster. `label` tells orders to the same agent
    apart. Given limits are held beside the lease that the parent's budget allows."""

    agent: str
    task: str
    label: str = ""
    limits: Lease = Lease()


class ChildReport(Struct, frozen=True, omit_defaults=True):
    """How a sub-agent ended. `text` is its answer, or what it had when it was stopped (`partial`).
    `usage` and `cost` are its own and its children's together; an unknown cost is None. `files` are the
    paths that it changed in the caller's workspace, `error` says why `ok` is false. `refused` counts the
    calls that it and its children were not allowed. `notes` is what the caller has to know beside the
    answer: of work in a tree of its own, what came back and what did not (then `ok` is false)."""

    agent: str
    session: str
    ok: bool
    text: str = ""
    reason: StopReason | Literal["refused", "died"] = "done"
    partial: bool = False
    error: str = ""
    label: str = ""
    steps: int = 0
    seconds: float = 0.0
    cost: float | None = None
    usage: Usage = Usage()
    files: tuple[str, ...] = ()
    refused: int = 0
    notes: str = ""


class GroupSpec(Struct, frozen=True, omit_defaults=True):
    """A group of agents that hear what is said to it. `cost` (US dollars) and `messages` are where its
    talk is ended."""

    name: str
    members: tuple[str, ...]
    description: str = ""
    cost: float | None = None
    messages: int = 100


class Roster(Struct, frozen=True, omit_defaults=True):
    """The agents and groups that a session may call, by name, sorted."""

    agents: tuple[AgentSpec, ...] = ()
    groups: tuple[GroupSpec, ...] = ()

    def agent(self, name: str) -> AgentSpec | None:
        return next((each for each in self.agents if each.name == name), None)

    def group(self, name: str) -> GroupSpec | None:
        return next((each for each in self.groups if each.name == name), None)


class ChildOpened(Struct, frozen=True, omit_defaults=True):
    """A sub-agent starts: its session, the agent it is, what it is to do, what it may use. `call_id` is
    the call that wants it, empty where a workflow does; `isolation` says where it writes. Where its session
    is taken up again, `since` is the last seq of what it held before."""

    child: str
    agent: str
    task: str
    call_id: str = ""
    label: str = ""
    lease: Lease = Lease()
    depth: int = 1
    isolation: Literal["shared", "worktree", "task"] = "shared"
    since: int = 0


class ChildClosed(Struct, frozen=True, omit_defaults=True):
    """A sub-agent is over. Where a log has none for a `ChildOpened`, the process died meanwhile. Steps,
    usage and cost are the child's and its children's, to be counted in the parent's budget."""

    child: str
    report: ChildReport


class PlanTask(Struct, frozen=True, omit_defaults=True):
    """One task of a plan. `needs` are the ids of those that must be done before; `child` is the session
    that works on it, `result` what came out, `attempts` how often it was tried."""

    id: str
    text: str
    agent: str = ""
    needs: tuple[str, ...] = ()
    state: Literal["pending", "running", "done", "failed", "skipped"] = "pending"
    result: str = ""
    error: str = ""
    child: str = ""
    attempts: int = 0


class PlanSet(Struct, frozen=True, omit_defaults=True):
    """The plan as it stands from here on, all of it. `revision` counts the plannings from 1; `reason` says
    why this one was made."""

    plan_id: str
    objective: str
    tasks: tuple[PlanTask, ...]
    state: Literal["working", "planning", "completing", "done", "failed"] = "working"
    revision: int = 1
    reason: str = ""


class FlowStepped(Struct, frozen=True, omit_defaults=True):
    """A node of a flow has run: the action that it gave and the shared state after it, as JSON values.
    A flow that was interrupted goes on from its last one. With the action `start` the flow begins at
    `node`; with `item` a batch has finished one, and `state` is {item, result}."""

    flow: str
    run_id: str
    node: str
    action: str
    state: dict[str, Any] = field(default_factory=dict)
    attempts: int = 1
    seconds: float | None = None


class TeamSaid(Struct, frozen=True, omit_defaults=True):
    """Something that one agent said to another (`to`) or to a `group`; `reply_to` is the `said_id` that it
    answers. `mentions` are the agents that it calls by @name. Where it could not be delivered, `error`
    says why."""

    said_id: str
    sender: str
    text: str
    to: str = ""
    group: str = ""
    reply_to: str = ""
    mentions: tuple[str, ...] = ()
    error: str = ""


class MergeConflict(Struct, frozen=True, omit_defaults=True):
    """A file of a child's work that could not be taken over: nothing of it was written."""

    path: str
    reason: str
    text: str = ""


class Merged(Struct, frozen=True, omit_defaults=True):
    """A child's work in a workspace of its own came back: the paths that were taken over, and those that
    could not be. `patch` is the blob with all of its work as a unified diff."""

    child: str
    applied: tuple[str, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()
    patch: str = ""
    call_id: str = ""
