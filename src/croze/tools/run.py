"""Runs the calls of a reply: resolve, check, approve, record, run, bound, redact, record.

Every call gets exactly one `ToolReturned`, whatever happens. Consecutive calls that only read run side
by side; what ends the turn runs after all others. Results are redacted before they are cut, so that no
half of a secret stays.
"""

import asyncio
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from croze.text.redact import redact, redact_value
from croze.text.tokens import estimate
from croze.tools.approve import Approver, Decision
from croze.tools.base import BoundTool, ToolContext, ToolKind
from croze.tools.bound import bounded
from croze.tools.registry import Registry
from croze.tools.results import (
    completion_refused,
    interrupted,
    not_allowed,
    redacted_changes,
    redacted_view,
    refused_by_user,
    tool_error,
)
from croze.types.errors import StoreError
from croze.types.event import Answered, Asked, Body, FilesChanged, ToolReturned, ToolStarted
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolResult, View

PARALLEL = 8
CAP = 8_000
READ_CAP = 40_000
"""Characters of a result's text that enter the log (CONTEXT.md, entry caps)."""
_READING = Access(read=True)
_READS = frozenset({"read_file", "describe_tools"})


class Host(Protocol):
    """What the runner needs of its session."""

    async def append(self, *bodies: Body, durable: bool = False) -> None: ...

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


@dataclass(frozen=True, slots=True)
class Outcome:
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
) -> Outcome:
    """Run the calls of one reply. `unavailable` tells of tools (by tag) that can't be used now, and why.

    Cancelled, it records a result for every call, then raises CancelledError. A `StoreError` is raised
    as it is: what can't be recorded must not go on.
    """
    run = _Run(registry=registry, approver=approver, host=host, unavailable=dict(unavailable or {}))
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
        await _shielded(run.close(prepared))
        raise
    results = tuple(run.results[id(item)] for item in prepared)
    ended = next((r for p, r in zip(prepared, results, strict=True) if p.ends_turn and r.ok), None)
    return Outcome(results=results, ended=ended, refused=run.refused)


@dataclass(slots=True)
class _Prepared:
    """A call on its way: `failure` is why it can't run, else `bound` is what runs."""

    call: ToolCall
    kind: ToolKind | None = None
    bound: BoundTool | None = None
    access: Access = _READING
    failure: ToolResult | None = None
    decision: Decision | None = None
    started: bool = False

    @property
    def ends_turn(self) -> bool:
        return self.kind is not None and self.kind.doc.ends_turn

    @property
    def parallel(self) -> bool:
        """Whether it may run beside others: it only reads (or fails at once), and nobody is asked."""
        if self.failure is not None:
            return True
        free = self.decision is not None and self.decision.verdict == "allow"
        return free and self.access.read and self.access.read_only and not self.ends_turn


@dataclass(slots=True, kw_only=True)
class _Run:
    registry: Registry
    approver: Approver
    host: Host
    unavailable: dict[str, str]
    results: dict[int, ToolReturned] = field(default_factory=dict)
    refused: int = 0

    def prepare(self, call: ToolCall) -> _Prepared:
        """Find the tool, check the arguments, see what it touches and what the rules say."""
        kind = self.registry.get(call.name)
        item = _Prepared(call=call, kind=kind)
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

    async def run_group(self, group: Sequence[_Prepared], *, last: bool) -> None:
        """One call, or several that only read side by side; results are recorded in their order."""
        if len(group) == 1:
            item = group[0]
            result, seconds = await self._one(item)
            await _shielded(self._record(item, result, seconds, durable=last))
            return
        await self._start([item for item in group if item.failure is None])
        gate = asyncio.Semaphore(PARALLEL)

        async def run(item: _Prepared) -> tuple[ToolResult, float | None]:
            async with gate:
                return await self._run(item)

        tasks = [asyncio.create_task(run(item)) for item in group]
        try:
            for at, (item, task) in enumerate(zip(group, tasks, strict=True)):
                result, seconds = await task
                final = last and at == len(group) - 1
                await _shielded(self._record(item, result, seconds, durable=final))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self, prepared: Sequence[_Prepared]) -> None:
        """After a cancel: a result for every call that has none."""
        for item in prepared:
            if id(item) not in self.results:
                await self._record(item, interrupted(begun=item.started), None, durable=True)

    async def _one(self, item: _Prepared) -> tuple[ToolResult, float | None]:
        if item.failure is None and item.ends_turn:
            item.failure = self._completion_refused(item)
        if item.failure is None:
            item.failure = await self._refused(item)
        if item.failure is not None:
            return item.failure, None
        await self._start([item])
        return await self._run(item)

    async def _start(self, items: Sequence[_Prepared]) -> None:
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
            await self.host.append(*starts, durable=durable)
        for item in items:
            item.started = True

    async def _run(self, item: _Prepared) -> tuple[ToolResult, float | None]:
        """The call itself, timed; whatever it raises becomes its result."""
        if item.bound is None:
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
        return result, round(time.monotonic() - begun, 6)

    def _decide(self, item: _Prepared) -> Decision:
        assert item.bound is not None
        return self.approver.decide(item.call.name, item.access, item.call, item.bound)

    def _completion_refused(self, item: _Prepared) -> ToolResult | None:
        if all(result.ok for result in self.results.values()):
            return None
        return completion_refused(item.call.name)

    async def _refused(self, item: _Prepared) -> ToolResult | None:
        """None where the call may run, else the refusal as its result."""
        decision = self._decide(item)  # again: an "always" may have come since
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

    def _asked(self, item: _Prepared, decision: Decision) -> Asked:
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
        )

    async def _record(
        self, item: _Prepared, result: ToolResult, seconds: float | None, *, durable: bool
    ) -> None:
        call = item.call
        changed = await self.host.changes(call) if item.started else None
        cap = READ_CAP if call.name in _READS or item.ends_turn else CAP
        whole, _ = redact(result.text)
        text, left_out = bounded(whole, cap)
        blobs, truncated = result.blobs, result.truncated
        if left_out:
            kept = await self.host.context(call).keep(whole.encode("utf-8", "replace"))
            blobs = (*blobs, kept)
            more = f"{left_out:,} of {len(whole):,} characters left out (kept as {kept[:12]}); ask for less at a time to see them"
            truncated = f"{truncated}; {more}" if truncated else more
        digest = ""
        if item.kind is not None:
            try:
                digest = item.kind.digest(call, msgspec.structs.replace(result, text=whole))
            except Exception as error:  # noqa: BLE001 (a plugin's digest must not lose the result)
                digest = f"{result.message} ({type(error).__name__} in its digest)"
        message, _ = redact(" ".join(result.message.split()))
        returned = ToolReturned(
            call_id=call.id,
            message_id=self.host.new_message_id(),
            name=call.name,
            ok=result.ok,
            message=message,
            text=text,
            view=redacted_view(result.view),
            data=redact_value(result.data)[0],
            code=result.code if result.ok else result.code or "failed",
            truncated=truncated,
            observed=result.observed,
            blobs=blobs,
            digest=bounded(redact(digest)[0], CAP)[0],
            seconds=seconds,
            tokens=estimate(text) + estimate(message),
        )
        bodies: list[Body] = [] if changed is None else [redacted_changes(changed)]
        await self.host.append(*bodies, returned, durable=durable)
        self.results[id(item)] = returned

    def _wrong(self, call: ToolCall, code: str, message: str) -> ToolResult:
        known = self.registry.get(call.name) is not None
        return ToolResult(
            ok=False, message=message, text=self.host.explain(call) if known else "", code=code
        )


async def _shielded(work: Awaitable[None]) -> None:
    """Finish `work` even where the task is cancelled meanwhile; the cancel comes after it."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled
