"""Runs the calls of a reply: resolve, check, approve, record, run, bound, redact, record.

Every call gets exactly one `ToolReturned`, whatever happens. Consecutive calls that only read run side
by side; what ends the turn runs after all others. Results are redacted before they are cut, so that no
half of a secret stays.
"""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from croze.text.redact import redact, redact_value
from croze.text.tokens import estimate
from croze.tools.approve import Approver, Decision
from croze.tools.base import BoundTool, ToolContext
from croze.tools.bound import bounded, first_left_out
from croze.tools.digest import CAP as DIGEST_CAP
from croze.tools.digest import digest_of
from croze.tools.prepared import CallHooks, Prepared
from croze.tools.registry import Registry
from croze.tools.results import (
    completion_refused,
    interrupted,
    not_allowed,
    redacted_changes,
    redacted_parts,
    redacted_view,
    refused_by_user,
    tool_error,
    without_place,
)
from croze.tools.shielded import shielded
from croze.types.errors import StoreError
from croze.types.event import Answered, Asked, Body, FilesChanged, ToolReturned, ToolStarted
from croze.types.parts import ToolCall
from croze.types.tool import ToolResult, View

PARALLEL = 8
CAP = 8_000
READ_CAP = 40_000
"""Characters of a result's text that enter the log (CONTEXT.md, entry caps)."""
READ_RESULT = "read_result"
HELD_BACK = frozenset({"mcp_changed", "mcp_doubtful"})
"""Codes of results that say: not called, for want of a user's yes."""
_READS = frozenset(
    {"read_file", "describe_tools", "load_skill", "load_extra_document", READ_RESULT}
)


class Host(Protocol):
    """What the runner needs of its session."""

    async def append(self, *bodies: Body, durable: bool = False) -> None: ...

    async def started(self, *starts: ToolStarted, reading: Collection[str], durable: bool) -> None:
        """Append what begins now. `reading` are the ids of the commands that are proven only to read."""
        ...

    def context(self, call: ToolCall) -> ToolContext: ...

    async def decide(self, asked: Asked) -> Answered:
        """Put the question to the user, or refuse where none is present; records both."""
        ...

    def new_message_id(self) -> str: ...

    def explain(self, call: ToolCall) -> str:
        """The right form of the called tool, in the session's protocol."""
        ...

    async def changes(self, call: ToolCall) -> FilesChanged | None:
        """The files that the call has changed, None where it changed none."""
        ...


class Outcome(Struct, frozen=True):
    """The results in the order of the calls; `ended` is the one that ended the turn; `refused` counts
    the calls that rules, mode or user did not let run."""

    results: tuple[ToolReturned, ...]
    ended: ToolReturned | None
    refused: int


async def run_calls(
    calls: Sequence[ToolCall],
    *,
    registry: Registry,
    approver: Approver,
    host: Host,
    unavailable: Mapping[str, str] | None = None,
    hooks: CallHooks | None = None,
) -> Outcome:
    """Run the calls of one reply. `unavailable` tells of tools (by tag) that can't be used now, and why;
    `hooks` are asked before each call and told after it.

    Cancelled, it records a result for every call, then raises CancelledError. A `StoreError` is raised
    as it is: what can't be recorded must not go on.
    """
    run = _Run(
        registry=registry,
        approver=approver,
        host=host,
        unavailable=dict(unavailable or {}),
        hooks=hooks,
    )
    prepared = [run.prepare(registry.resolve(call)) for call in calls]
    order = sorted(range(len(prepared)), key=lambda at: prepared[at].ends_turn)
    try:
        at = 0
        while at < len(order):
            group = [prepared[order[at]]]
            while group[-1].parallel and at + len(group) < len(order):
                following = prepared[order[at + len(group)]]
                if not following.parallel:
                    break
                group.append(following)
            at += len(group)
            await run.run_group(group, last=at == len(order))
    except asyncio.CancelledError:
        await shielded(run.close(prepared))
        raise
    results = tuple(run.results[id(item)] for item in prepared)
    ended = next((r for p, r in zip(prepared, results, strict=True) if p.ends_turn and r.ok), None)
    return Outcome(results=results, ended=ended, refused=run.refused)


@dataclass(slots=True, kw_only=True)
class _Run:
    registry: Registry
    approver: Approver
    host: Host
    unavailable: dict[str, str]
    hooks: CallHooks | None
    results: dict[int, ToolReturned] = field(default_factory=dict)
    refused: int = 0

    def prepare(self, call: ToolCall) -> Prepared:
        """Find the tool, check the arguments, see what it touches and what the rules say."""
        kind = self.registry.get(call.name)
        item = Prepared(call=call, kind=kind)
        if call.error is not None:
            item.failure = self._wrong(call, call.error.code, call.error.message)
        elif kind is None:
            near = self.registry.near(call.name)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            message = f"There is no tool named {call.name!r}.{hint}"
            item.failure = ToolResult(
                ok=False, message=message, code="unknown_tool", data={"near": near}
            )
        elif call.name in self.unavailable:
            message = f"{call.name} can't be used now: {self.unavailable[call.name]}"
            item.failure = ToolResult(ok=False, message=message, code="unavailable")
        else:
            try:
                item.bound = kind.bind(call.args)
                item.access = item.bound.access()
                item.decision = self._decide(item)
            except msgspec.ValidationError as error:
                item.failure = self._wrong(call, "invalid_arguments", f"{call.name}: {error}.")
            except Exception as error:  # noqa: BLE001 (a plugin's mistake is a result)
                item.failure = tool_error(error)
        return item

    async def run_group(self, group: Sequence[Prepared], *, last: bool) -> None:
        """One call, or several that only read side by side; results are recorded in their order."""
        if len(group) > 1 and self.hooks is not None:
            await asyncio.gather(*map(self._before, group))
        if len(group) == 1 or not all(item.parallel for item in group):
            for item in group:
                result, seconds = await self._one(item)
                final = last and item is group[-1]
                await shielded(self._record(item, result, seconds, durable=final))
                await self._after(item)
            return
        await self._start([item for item in group if item.failure is None])
        gate = asyncio.Semaphore(PARALLEL)

        async def run(item: Prepared) -> tuple[ToolResult, float | None]:
            async with gate:
                return await self._run(item)

        tasks = [asyncio.create_task(run(item)) for item in group]
        try:
            for at, (item, task) in enumerate(zip(group, tasks, strict=True)):
                result, seconds = await task
                final = last and at == len(group) - 1
                await shielded(self._record(item, result, seconds, durable=final))
                await self._after(item)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self, prepared: Sequence[Prepared]) -> None:
        """After a cancel: a result for every call that has none."""
        for item in prepared:
            if id(item) not in self.results:
                await self._record(item, interrupted(begun=item.started), None, durable=True)

    async def _one(self, item: Prepared) -> tuple[ToolResult, float | None]:
        if item.failure is None and item.ends_turn:
            item.failure = self._completion_refused(item)
        await self._before(item)
        if item.failure is None:
            item.failure = await self._refused(item)
        if item.failure is not None:
            return item.failure, None
        await self._start([item])
        return await self._run(item)

    async def _before(self, item: Prepared) -> None:
        """Let the hooks speak of a call, once: they may block it or give it another input."""
        if self.hooks is None or item.failure is not None or item.ruling is not None:
            return
        ruling = item.ruling = await self.hooks.before_call(item.call)
        if ruling.args is not None:
            item.asked_args = item.call.args
            item.call = msgspec.structs.replace(item.call, args=ruling.args)
            fresh = self.prepare(self.registry.resolve(item.call))
            item.call, item.bound, item.access = fresh.call, fresh.bound, fresh.access
            item.failure, item.decision = fresh.failure, fresh.decision
        if ruling.decision == "deny":
            item.failure = ruling.refusal(item.call)
            self.refused += 1

    async def _after(self, item: Prepared) -> None:
        if self.hooks is not None and item.started:
            await self.hooks.after_call(item.call, self.results[id(item)])

    async def _start(self, items: Sequence[Prepared]) -> None:
        starts = []
        for item in items:
            args, _ = redact_value(dict(item.call.args))
            starts.append(
                ToolStarted(
                    call_id=item.call.id, name=item.call.name, access=item.access, args=args
                )
            )
        if starts:
            durable = any(not item.access.read_only for item in items)
            reading = [item.call.id for item in items if item.only_reads]
            await self.host.started(*starts, reading=reading, durable=durable)
        for item in items:
            item.started = True

    async def _run(self, item: Prepared) -> tuple[ToolResult, float | None]:
        """The call itself, timed; whatever it raises becomes its result."""
        if item.failure is not None or item.bound is None:
            return item.failure or tool_error(RuntimeError("the call was not checked")), None
        begun = time.monotonic()
        try:
            result = await item.bound.run(self.host.context(item.call))
        except StoreError:
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            result = tool_error(error)  # the tool's own: nobody cancelled this call
        except Exception as error:  # noqa: BLE001 (a tool's failure is a result)
            result = tool_error(error)
        if not result.ok and result.code in HELD_BACK:
            self.refused += 1
        return result, round(time.monotonic() - begun, 6)

    def _decide(self, item: Prepared) -> Decision:
        assert item.bound is not None
        return self.approver.decide(item.call.name, item.access, item.call, item.bound)

    def _completion_refused(self, item: Prepared) -> ToolResult | None:
        if all(result.ok for result in self.results.values()):
            return None
        return completion_refused(item.call.name)

    async def _refused(self, item: Prepared) -> ToolResult | None:
        """None where the call may run, else the refusal as its result."""
        if item.access.exec:
            confinement = self.host.context(item.call).workspace.confinement
            if confinement is not None:
                await confinement.look()  # what is decided in a false belief would cost the command
        # Again: an "always" may have come since.
        decision = item.ruled(self._decide(item))
        if decision.verdict == "allow":
            return None
        if decision.verdict == "deny":
            self.refused += 1
            return not_allowed(item.call, decision)
        asked = self._asked(item, decision)
        answered = await self.host.decide(asked)
        if answered.answer == "always" and decision.rule:
            self.approver = self.approver.with_rule(f"allow {decision.rule}")
        if answered.answer in ("once", "always"):
            return None
        self.refused += 1
        if answered.by == "headless":
            return not_allowed(item.call, decision)
        return refused_by_user(answered.note)

    def _asked(self, item: Prepared, decision: Decision) -> Asked:
        assert item.bound is not None
        view: View | None
        try:
            view = item.bound.preview(self.host.context(item.call))
        except Exception:  # noqa: BLE001 (the question is put without a preview)
            view = None
        always = ("always",) if decision.rule else ()
        return Asked(
            ask_id=self.host.new_message_id(),
            kind="approval",
            text=f"May {item.call.name} run? ({decision.reason})",
            call_id=item.call.id,
            options=("once", *always, "no"),
            view=redacted_view(view),
            rule=redact(decision.rule)[0],
            access=decision.kind,
            parts=redacted_parts(decision.parts),
            cwd=_folder(self.approver.root, item.bound) if item.access.exec else "",
        )

    async def _record(
        self, item: Prepared, result: ToolResult, seconds: float | None, *, durable: bool
    ) -> None:
        call = item.call
        result = without_place(result, self.host.context(call).workspace.mask)
        changed = await self.host.changes(call) if item.started else None
        cap = READ_CAP if call.name in _READS or item.ends_turn else CAP
        message_id = self.host.new_message_id()
        whole, _ = redact(result.text)
        text, left_out = bounded(whole, cap, self._way_to(message_id))
        if item.ruling and item.asked_args is not None and item.started:
            changes = item.ruling.changed(item.asked_args, call.args)
            text = "\n\n".join(filter(None, (text, changes)))
        blobs, truncated, kept = result.blobs, result.truncated, ""
        if left_out:
            kept = await self.host.context(call).keep(whole.encode("utf-8", "replace"))
            blobs = (*blobs, kept)
            more = f"{left_out:,} of {len(whole):,} characters left out (kept as {kept[:12]})"
            truncated = f"{truncated}; {more}" if truncated else more
        digest_cap = READ_CAP if call.name == "read_file" else DIGEST_CAP
        digest = digest_of(item.kind, call, result, text, cap=digest_cap)
        message, _ = redact(" ".join(result.message.split()))
        if result.whole:
            every, _ = await asyncio.to_thread(redact, result.whole)
            kept = await self.host.context(call).keep(every.encode("utf-8", "replace"))
            blobs = (*blobs, kept)
            if way := self._way_to(message_id).format(line=first_left_out(text, every)):
                message = f"{message} Lines left out: {way}."
        returned = ToolReturned(
            call_id=call.id,
            message_id=message_id,
            name=call.name if item.kind else redact(call.name)[0],
            ok=result.ok,
            message=message,
            text=text,
            view=redacted_view(result.view),
            data=redact_value(result.data)[0],
            code=result.code if result.ok else result.code or "failed",
            truncated=truncated,
            observed=result.observed,
            blobs=blobs,
            whole=kept,
            look=result.look if not left_out else None,
            images=result.images,
            digest=digest,
            seconds=seconds,
            tokens=estimate(text) + estimate(message) + result.image_tokens,
        )
        bodies: list[Body] = [] if changed is None else [redacted_changes(changed)]
        await self.host.append(*bodies, returned, durable=durable)
        self.results[id(item)] = returned

    def _way_to(self, message_id: str) -> str:
        """How the model gets what a bounded result leaves out."""
        if self.registry.get(READ_RESULT) is None:
            return ""
        return f"{READ_RESULT} with id {message_id[:8]} and start_line {{line}} gives them"

    def _wrong(self, call: ToolCall, code: str, message: str) -> ToolResult:
        known = self.registry.get(call.name) is not None
        return ToolResult(
            ok=False, message=message, text=self.host.explain(call) if known else "", code=code
        )


def _folder(root: Path, bound: BoundTool) -> str:
    """Where a command would run: in the root, or in the folder below it that its call names."""
    named = getattr(bound, "cwd", "")
    return str(root / named) if isinstance(named, str) else str(root)
