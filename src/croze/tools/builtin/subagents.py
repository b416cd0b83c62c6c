"""run_named_subagents: other agents work on tasks, side by side or one after the other."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from msgspec import Meta, to_builtins

from croze.text.headings import below
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.orders import OrdersError, read_orders
from croze.types.errors import CrozeError
from croze.types.parts import ToolCall
from croze.types.team import ChildReport
from croze.types.tool import Access, ToolExample, ToolResult, View

SHARED = 7_000
"""Characters that all answers have together; the rest can be read again."""
LEAST = 300
DIGESTED = 300
"""Characters of each answer that stay in the history later."""

FORM = """\
mode: parallel        # or serial: one after the other
subagents:
  - name: explore     # one of: {names}
    task: |
      All that it needs to know, in your words.
    label: a          # may be left out, as may max_turns, max_cost ($), max_time (s)
"""


class RunNamedSubagents(Tool, frozen=True):
    """Let other agents work for you and wait for their reports. Each works in a session of its own, in the
    same project, with the tools that it may use; it sees nothing of this conversation, so its task must
    say all that it needs and what you want back. Agents that write the same files should run serial. Each
    gets a share of the budget that is left; one that is stopped by it gives what it has."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="run_named_subagents",
        summary="let agents work on tasks, in parallel or serial",
        access=Access(read=True),
        examples=(
            ToolExample(
                "Two questions side by side",
                {
                    "subagents": "mode: parallel\nsubagents:\n  - name: explore\n    task: Where are "
                    "requests retried? Give files and lines.\n  - name: explore\n    task: |\n"
                    "      Which tests cover retries?\n      Name each and what it checks."
                },
            ),
        ),
        aliases={"agents": "subagents", "commands": "subagents"},
    )

    subagents: Annotated[
        str,
        Meta(
            min_length=1,
            description="YAML: mode (parallel or serial), subagents (a list of name, task, and if "
            "wanted label, max_turns, max_cost, max_time)",
        ),
    ]

    async def run(self, ctx: ToolContext) -> ToolResult:
        team = ctx.team
        if team is None:
            raise CrozeError("This agent can call no other agents.", code="no_team")
        names = [each.name for each in team.roster.agents]
        try:
            asked = read_orders(self.subagents, names)
        except OrdersError as error:
            form, _ = ctx.describe([self.spec.name])
            return ToolResult(
                ok=False,
                message=f"No agent was started. {error}",
                text=f"Write it so:\n{FORM.format(names=', '.join(names))}\n{form}",
                code="invalid_subagents",
                data={"agents": names},
            )
        reports = await team.run(asked.orders, asked.mode, call_id=ctx.call.id)
        whole, text = _together(reports, None), _together(reports, _share(reports))
        good = sum(report.ok for report in reports)
        counted = f"{good} of {len(reports)} sub-agents are done"
        unbegun = sum(not report.session for report in reports)
        started = unbegun < len(reports)
        if started and unbegun:
            counted += f", {unbegun} could not begin"
        return ToolResult(
            ok=good > 0 or any(report.partial for report in reports),
            message=f"{counted}." if started else f"No agent was started. {reports[0].error}",
            text=text,
            whole=whole if whole != text else "",
            view=View(title=counted, body=whole, kind="list"),
            data=[_facts(report) for report in reports],
            code=None if good else "subagents_failed" if started else "not_started",
        )

    def preview(self, ctx: ToolContext) -> View:
        return View(title="Run sub-agents", body=self.subagents)

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        if not isinstance(result.data, list):
            return result.message
        lines = [
            f"{_name(row['agent'], row['label'])} ({row['status']}): "
            f"{_cut(' '.join((row['text'] or row['error']).split()), DIGESTED)}"
            + (f" [changed {', '.join(row['files'][:5])}]" if row["files"] else "")
            for row in result.data
        ]
        return "\n".join((result.message, *lines))


def _facts(report: ChildReport) -> dict[str, Any]:
    found: dict[str, Any] = to_builtins(report)
    return {
        "agent": report.agent,
        "label": report.label,
        "session": report.session,
        "ok": report.ok,
        "status": _status(report),
        "reason": report.reason,
        "partial": report.partial,
        "text": _cut(report.text, SHARED),
        "error": report.error,
        "steps": report.steps,
        "seconds": report.seconds,
        "cost": report.cost,
        "usage": found.get("usage", {}),
        "files": list(report.files),
        "refused": report.refused,
        "notes": report.notes,
    }


def _status(report: ChildReport) -> str:
    if report.ok:
        return "done"
    if not report.session:
        return "not started"
    words = {
        "done": "done, but not all of it is merged",
        "steps": "its steps are used up",
        "cost": "its money is used up",
    }
    words |= {"seconds": "its time is used up", "cancelled": "stopped"}
    return words.get(report.reason, "failed")


def _together(reports: Sequence[ChildReport], most: int | None) -> str:
    """All reports, each answer with at most so many characters."""
    return "\n\n".join(_told(report, most) for report in reports)


def _told(report: ChildReport, most: int | None) -> str:
    facts = [_status(report)]
    if report.session:
        facts.append(f"{report.steps} step{'s' * (report.steps != 1)}")
    if report.cost:
        facts.append(f"${report.cost:.4f}")
    lines = [f"## {_name(report.agent, report.label)}: {', '.join(facts)}"]
    if report.error:
        lines.append(f"Error: {_cut(report.error, 600)}")
    if report.refused:
        calls = "1 of its calls was" if report.refused == 1 else f"{report.refused} calls were"
        lines.append(f"{calls} not allowed.")
    if report.files:
        more = len(report.files) - 20
        shown = ", ".join(report.files[:20])
        lines.append(f"Changed: {shown}{f' and {more} more' if more > 0 else ''}")
    if report.notes:
        lines.append(report.notes)
    if report.partial and report.text and report.reason != "done":
        lines.append("It was not finished. Its last words:")
    text = below(report.text if most is None else _cut(report.text, most))
    if text:
        lines.append(text)
    return "\n".join(lines)


def _share(reports: Sequence[ChildReport]) -> int:
    """The characters that each answer gets; what short ones don't need goes to the long ones."""
    left = SHARED
    for at, size in enumerate(sorted(len(report.text) for report in reports)):
        share = left // (len(reports) - at)
        if size > share:
            return max(LEAST, share)
        left -= size
    return SHARED


def _name(agent: str, label: str) -> str:
    return f"{agent} ({label})" if label else agent


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most].rstrip()} [… {len(text) - most:,} characters more]"
