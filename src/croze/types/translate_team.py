"""The outward objects of what agents do together."""

from typing import Any

from croze.types.outward import (
    MergedObject,
    Outward,
    PlanObject,
    SubAgentFinishedObject,
    SubAgentStartedObject,
    TeamMessageObject,
)
from croze.types.team import ChildClosed, ChildOpened, FlowStepped, Merged, PlanSet, TeamSaid

TeamBody = ChildOpened | ChildClosed | PlanSet | FlowStepped | TeamSaid | Merged


def team_objects(body: TeamBody, at: dict[str, Any]) -> list[Outward]:
    """What one such event looks like from outside; a flow's steps are for the log alone."""
    match body:
        case ChildOpened():
            return [
                SubAgentStartedObject(
                    child=body.child,
                    agent=body.agent,
                    task=body.task,
                    call_id=body.call_id,
                    label=body.label,
                    depth=body.depth,
                    isolation=body.isolation,
                    lease=body.lease,
                    **at,
                )
            ]
        case ChildClosed():
            return [SubAgentFinishedObject(child=body.child, report=body.report, **at)]
        case PlanSet():
            return [
                PlanObject(
                    plan_id=body.plan_id,
                    objective=body.objective,
                    state=body.state,
                    revision=body.revision,
                    tasks=body.tasks,
                    reason=body.reason,
                    **at,
                )
            ]
        case TeamSaid():
            return [
                TeamMessageObject(
                    said_id=body.said_id,
                    sender=body.sender,
                    text=body.text,
                    to=body.to,
                    group=body.group,
                    reply_to=body.reply_to,
                    mentions=body.mentions,
                    error=body.error,
                    **at,
                )
            ]
        case Merged():
            return [
                MergedObject(child=body.child, applied=body.applied, conflicts=body.conflicts, **at)
            ]
        case FlowStepped():
            return []
