"""The orchestrator: a planner divides the objective into tasks, workers do them, as many at once as don't
need one another, and the session's own model writes the answer from their results.

The plan is on record: every change of it is a `PlanSet`, so a turn that was stopped or killed goes on from
the last one. What is done isn't done again; a worker that was at work is taken up where it stood.
"""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from croze.agent.budget import share_of
from croze.agent.host import CallHost
from croze.agent.limits import Meter
from croze.agent.live import Live, Workflow
from croze.agent.loop import stop, work
from croze.agent.subagent import Child
from croze.teams.completer import in_short, results
from croze.teams.plan import changed, failed, halted, ready, revised, without_hope
from croze.teams.planning import UNPAID, PlanningFailed, ask_planner, open_child, short_of, taken_up
from croze.teams.progress import RESULTS, Progress, progress_of
from croze.teams.worker import AGAIN, TAKEN_UP, assignment, is_not_done
from croze.tools.bound import bounded
from croze.types.agent import AgentSpec, StopReason
from croze.types.errors import CrozeError, StoreError
from croze.types.event import Notice, Stopped
from croze.types.team import Order, PlanSet, PlanTask

KEPT = 6_000
"""Characters of a result that the plan keeps; all of it stands in the worker's own conversation."""

Account = Callable[[Live], Awaitable[Notice | None]]
"""What the agents of the run have shared, told when the work is done."""


def orchestrator(*, planner: AgentSpec, parallel: int, replans: int, account: Account) -> Workflow:
    """The workflow. `parallel` workers are at work at most; for failed tasks it is planned again at most
    `replans` times a turn."""

    async def turn(live: Live, host: CallHost, meter: Meter) -> Stopped:
        return await _Turn(live, host, meter, planner, parallel, replans, account).run()

    return turn


class _Turn:
    """One turn of it. `plan` is what stands in the log, or is about to."""

    def __init__(
        self,
        live: Live,
        host: CallHost,
        meter: Meter,
        planner: AgentSpec,
        parallel: int,
        replans: int,
        account: Account,
    ) -> None:
        self._live = live
        self._host = host
        self._meter = meter
        self._planner = planner
        self._parallel = parallel
        self._account = account
        past = self._past()
        self._replans = replans - past.replans
        self._heard = live.last_user
        self.plan = past.plan or PlanSet(plan_id="", objective="", tasks=(), state="done")
        self._unpaid = False

    async def run(self) -> Stopped:
        """Plan, work, complete, from wherever the log stands."""
        # What the workers are told of the project is looked up once, here.
        facts = await self._live.gather(self._live)
        if facts:
            await self._live.append(*facts)
        await self._begin(self._past())
        while True:
            over = self._meter.exceeded()
            if self._unpaid and over is None:
                over = (
                    short_of(self._meter),
                    "What is left of the budget is too small for a worker.",
                )
            if over is not None:
                text = f"{over[1]} {in_short(self.plan)}"
                return await self._stop(over[0], text)
            if self.plan.state == "planning":
                try:
                    await self._make_plan()
                except PlanningFailed as error:
                    ended = await self._unplanned(error)
                    if ended is not None:
                        return ended
            elif self.plan.state == "working":
                await self._work()
            else:
                return await self._complete()

    async def _begin(self, past: Progress) -> None:
        """Bring the plan into a state to go on from."""
        plan, said = self.plan, "\n\n".join(past.said)
        if plan.state == "done":
            await self._set(
                PlanSet(
                    plan_id=self._live.source.uuid(),
                    objective=said or plan.objective,
                    tasks=(),
                    state="planning",
                    reason="a new objective",
                )
            )
        elif past.said:
            await self._hear(past)
        elif plan.state == "failed":
            await self._set(replace(halted(plan), state="planning", reason="it is taken up again"))
        elif plan.state == "working" and halted(plan) != plan:
            await self._set(halted(plan))

    async def _hear(self, past: Progress) -> None:
        """Plan anew with what the user has said since the last planning."""
        self._heard = self._live.last_user
        more = "\n\n".join(past.said)
        await self._set(
            replace(
                halted(self.plan),
                objective=f"{self.plan.objective}\n\nLater the user said: {more}",
                state="planning",
                reason="the user said more",
            )
        )

    async def _make_plan(self) -> None:
        """Have the plan made, or made anew, and take it."""
        plan = self.plan
        tasks = await ask_planner(self._live, self._planner, plan, self._past())
        if plan.tasks:
            plan = revised(plan, tasks, plan.reason)
        else:
            plan = replace(plan, tasks=tasks, state="working")
        await self._set(plan)

    async def _unplanned(self, error: PlanningFailed) -> Stopped | None:
        """No plan came out. Where there was one before, what of it can still be done is done; else the turn
        is over."""
        goes_on = bool(self.plan.tasks) and error.reason == "failed"
        notice = Notice(
            level="warning" if goes_on else "error",
            code=error.code,
            text=error.message,
            params={**error.params, "hint": error.hint},
        )
        if goes_on:
            self._replans = 0
            await self._live.append(notice)
            await self._set(replace(self.plan, state="working"))
            return None
        self.plan = replace(self.plan, state="failed", reason=error.message)
        return await self._stop(error.reason, error.message, notice)

    async def _work(self) -> None:
        """Let workers do what can be done until the plan is over, or has to be made anew, or a limit is
        reached; all of them have ended then."""
        running: set[asyncio.Task[None]] = set()
        try:
            while True:
                if self._unpaid and not running:
                    self._unpaid = share_of(self._meter.left(), 1) is None
                if not self._pausing():
                    self.plan = without_hope(self.plan)
                    open_tasks = sum(task.state == "pending" for task in self.plan.tasks)
                    for task in ready(self.plan)[: self._parallel - len(running)]:
                        running.add(self._start(task, share=open_tasks + 1))
                if not running:
                    break
                ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for each in ended:
                    each.result()
        except BaseException:
            for each in running:
                each.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await self._set(halted(self.plan))
            raise
        if self._unpaid or self._meter.exceeded() is not None:
            await self._set(halted(self.plan))
        elif self._live.last_user > self._heard:
            await self._hear(self._past())
        elif self._replans > 0 and failed(self.plan):
            self._replans -= 1
            names = ", ".join(task.id for task in failed(self.plan))
            await self._set(replace(self.plan, state="planning", reason=f"failed: {names}"))
        else:
            await self._set(replace(self.plan, state="completing"))

    def _pausing(self) -> bool:
        """Whether nothing new is started: a limit is reached, or the plan has to be made anew once what
        runs has ended."""
        return (
            self._unpaid
            or self._meter.exceeded() is not None
            or self._live.last_user > self._heard
            or (self._replans > 0 and bool(failed(self.plan)))
        )

    def _start(self, task: PlanTask, *, share: int) -> asyncio.Task[None]:
        attempts = task.attempts + (not task.child)
        self.plan = changed(
            self.plan, task.id, state="running", attempts=attempts, result="", error=""
        )
        return asyncio.create_task(self._do(task, share), name=f"task {task.id}")

    async def _do(self, task: PlanTask, share: int) -> None:
        """One task, by one worker, to its end."""
        try:
            child, same = await self._open_worker(task, share)
        except StoreError:
            raise
        except CrozeError as error:
            if error.code == UNPAID:  # perhaps it can be, when others have ended
                self._unpaid = True
                self.plan = changed(self.plan, task.id, state="pending", attempts=task.attempts)
            else:
                await self._set(changed(self.plan, task.id, state="failed", error=str(error)))
            return
        await self._set(changed(self.plan, task.id, child=child.session))
        try:
            if not (same and await taken_up(child)):
                note = AGAIN if same else TAKEN_UP if task.child else ""
                await child.submit(assignment(self.plan, task, note, room=self._room))
        except asyncio.CancelledError:
            report = await child.close()
            self.plan = changed(self.plan, task.id, result=bounded(report.text, KEPT)[0])
            raise
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - what breaks a worker fails its task
            child.error = str(error) or type(error).__name__
        report = await child.close()
        gave_up = is_not_done(report.text)
        result = report.text if report.ok else f"{report.text}\n\n{report.notes}".strip()
        await self._set(
            changed(
                self.plan,
                task.id,
                state="done" if report.ok and not gave_up else "failed",
                result=bounded(result, KEPT)[0],
                error=report.error or ("The worker could not do it." if gave_up else ""),
            )
        )

    async def _open_worker(self, task: PlanTask, share: int) -> tuple[Child, bool]:
        """A worker, and whether it is the one that was at this task already."""
        order = Order(agent=task.agent, task=task.text, label=task.id)
        if task.child:
            try:
                return await open_child(self._live, order, share=share, resume=task.child), True
            except StoreError:
                pass  # its conversation is gone, or another process has it
        return await open_child(self._live, order, share=share), False

    async def _complete(self) -> Stopped:
        """Have the session's model write the answer."""
        live = self._live
        if not self._past().told:
            told = results(self.plan, self._room)
            await live.tell(RESULTS, told, "the results of the plan's tasks")
        reason, text = await work(live, self._host, self._meter)
        if reason != "done":
            return await self._stop(reason, text)
        failures = failed(self.plan)
        self.plan = replace(self.plan, state="failed" if failures else "done")
        account = await self._account(live) if self.plan.tasks else None
        return await self._stop(
            "failed" if failures else "done", text, *([account] if account else [])
        )

    @property
    def _room(self) -> int:
        """Characters that results may take of a request: some 15 % of what the model's window holds."""
        return int(self._live.budget.available * 0.15) * 3

    def _past(self) -> Progress:
        return progress_of(self._live.log.events, self._planner.name)

    async def _set(self, plan: PlanSet) -> None:
        self.plan = plan
        await self._live.append(plan, durable=True)

    async def _stop(self, reason: StopReason, text: str, *before: Notice) -> Stopped:
        """The end of the turn, with the plan as it stands."""
        return await stop(self._live, self._host, self._meter, reason, text, self.plan, *before)
