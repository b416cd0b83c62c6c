"""Speaking with other agents: with one that remembers, with a group."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from msgspec import Meta

from croze.text.headings import below
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.team import Reply, Team
from croze.types.errors import CrozeError
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolResult, View

SHARED = 7_000
"""Characters that the replies of a group have together; the rest of one can be read again."""
LEAST = 400
"""Characters of a reply that are shown, however many there are."""
DIGESTED = 300
"""Characters of each reply that stay in the history later."""


def _team(ctx: ToolContext) -> Team:
    if ctx.team is None:
        raise CrozeError("This agent can call no other agents.", code="no_team")
    return ctx.team


class TalkTo(Tool, frozen=True):
    """Say something to an agent and wait for its answer. It works in a session of its own, knows nothing
    of yours, and remembers what was said to it before. An agent that is busy answers when it is free."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="talk_to",
        summary="ask another agent; it remembers earlier talk",
        access=Access(read=True),
        aliases={"agent_name": "agent", "name": "agent", "content": "message"},
    )

    agent: Annotated[str, Meta(min_length=1, description="its name")]
    message: Annotated[str, Meta(min_length=1)]

    async def run(self, ctx: ToolContext) -> ToolResult:
        reply = await _team(ctx).talk(self.agent, self.message, call_id=ctx.call.id)
        data = {"agent": reply.agent, "ok": reply.ok, "text": reply.text, "error": reply.error}
        title = f"{reply.agent} answered" if reply.ok else f"{reply.agent} did not answer"
        return ToolResult(
            ok=reply.ok,
            message=f"{title}." if reply.ok else f"{title}: {reply.error}",
            text=reply.text,
            view=View(title=title, body=reply.text or reply.error),
            data=data,
            code=None if reply.ok else "no_answer",
        )

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        asked = _cut(str(call.args.get("message", "")), DIGESTED)
        return f"Said to {call.args.get('agent', '')}: {asked}\n{_cut(result.text, 3 * DIGESTED)}"


class TalkToGroup(Tool, frozen=True):
    """Say something to all members of a group but yourself and wait for their answers. Where you @mention
    members only those answer now; the others hear it when they are asked next. A member that is
    @mentioned in an answer is asked in turn, until nobody is or the group's limits end the talk."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="talk_to_group",
        summary="ask a group of agents, or those of it you @mention",
        access=Access(read=True),
        aliases={"group_name": "group", "name": "group", "content": "message"},
    )

    group: Annotated[str, Meta(min_length=1, description="its name")]
    message: Annotated[str, Meta(min_length=1)]

    async def run(self, ctx: ToolContext) -> ToolResult:
        replies = await _team(ctx).talk_to_group(self.group, self.message, call_id=ctx.call.id)
        whole, text = _together(replies, None), _together(replies, _share(replies))
        answers = [reply for reply in replies if reply.agent]
        good = sum(reply.ok for reply in answers)
        ended = "".join(f" {reply.error}" for reply in replies if not reply.agent)
        counted = f"{good} of {len(answers)} answers"
        return ToolResult(
            ok=good > 0,
            message=f"{self.group}: {counted} came.{ended}",
            text=text,
            whole=whole if whole != text else "",
            view=View(title=f"{self.group}: {counted}", body=whole),
            data=[
                {"agent": each.agent, "ok": each.ok, "text": each.text, "error": each.error}
                for each in answers
            ],
            code=None if good else "no_answer",
        )

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        asked = _cut(str(call.args.get("message", "")), DIGESTED)
        said = result.data if isinstance(result.data, list) else []
        answers = (
            f"{each['agent']}: {_cut(each['text'] or each['error'], DIGESTED)}" for each in said
        )
        return "\n".join((f"Said to {call.args.get('group', '')}: {asked}", *answers))


def _share(replies: Sequence[Reply]) -> int:
    """The characters that each reply gets; what short ones don't need goes to the long ones."""
    left = SHARED
    for at, size in enumerate(sorted(len(reply.text) for reply in replies)):
        share = left // (len(replies) - at)
        if size > share:
            return max(LEAST, share)
        left -= size
    return SHARED


def _together(replies: Sequence[Reply], most: int | None) -> str:
    """All replies with their names, each with at most so many characters."""
    blocks = []
    for reply in replies:
        if not reply.agent:
            continue  # the hub's own word stands in the message
        name = reply.agent if reply.ok else f"{reply.agent} did not answer: {reply.error}"
        text = below(reply.text if most is None else _cut(reply.text, most))
        blocks.append(f"## {name}\n{text}".rstrip())
    return "\n\n".join(blocks)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most].rstrip()} [… {len(text) - most:,} characters more]"
