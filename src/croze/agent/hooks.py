"""Running a session's hooks at their points: the user's programs and plugins, side by side, in bounded
time; what they decide is recorded, so that a replay runs none of them."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from croze.agent.live import Heard, Live
from croze.text.redact import redact, redact_value
from croze.text.tokens import estimate
from croze.tools.hooks import (
    FACT,
    MOST_TEXT,
    TIMEOUT,
    Answer,
    Hook,
    Ruling,
    combine,
    failed_answer,
    matches,
    read_answer,
    read_value,
    told,
)
from croze.types.errors import CrozeError
from croze.types.event import (
    Body,
    FactAdded,
    HookRun,
    HooksRan,
    SessionOpened,
    ToolReturned,
    UserSaid,
)
from croze.types.hook import Point
from croze.types.parts import Part, Text, ToolCall
from croze.workspace.piped import run_piped
from croze.workspace.process import ProcessError, child_environment

MOST_HOLDS = 10
"""How often in a turn hooks may say that the end isn't the end."""

OUTPUT_LIMIT = 1_000_000
ERROR_LIMIT = 20_000
"""Bytes of a hook's output, which may hold a call's whole input, and of its errors."""

_NAME = 200

Plugin = Callable[[Mapping[str, Any]], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class PluginHook:
    """One function of a plugin, for one point."""

    point: Point
    name: str
    function: Plugin


@dataclass(slots=True, kw_only=True)
class HookRunner:
    """The hooks of one session. All that match at a point run at the same time; failures are told the
    user and break nothing. `changed` names the file of a hook that is no longer what was trusted."""

    live: Live
    hooks: Sequence[Hook]
    plugins: Sequence[PluginHook]
    transcript: Path
    changed: Callable[[Hook], str]
    _starting: "asyncio.Task[tuple[HooksRan, Ruling] | None] | None" = None
    _notifying: "set[asyncio.Task[None]]" = field(default_factory=set)
    _late: list[HooksRan] = field(default_factory=list)
    _halt: str = ""

    def start(self, source: str) -> None:
        """The session has been opened. What its hooks say is told with the user's first message. A
        sub-agent's session is none of the user's: only its calls and its end have hooks."""
        if self._is_child:
            return
        work = self._fire("SessionStart", source, {"source": source})
        self._starting = asyncio.create_task(work)

    async def said(self, parts: Sequence[Part]) -> Heard:
        """The user has said something, which a hook may drop or add to."""
        self._halt = ""
        before: list[Body] = [*self._take_late()]
        after: list[Body] = []
        starting, self._starting = self._starting, None
        if starting is not None and (started := await _whole(starting)) is not None:
            before.append(started[0])
            after += self._facts("SessionStart", started[1].context)
        if self._is_child:
            return Heard(before=tuple(before))
        prompt = "\n\n".join(part.text for part in parts if isinstance(part, Text))
        fired = await self._fire("UserPromptSubmit", "", {"prompt": prompt})
        if fired is None:
            return Heard(before=tuple(before), after=tuple(after))
        ran, ruling = fired
        if ruling.decision == "deny" or ruling.halt is not None:
            reason = ruling.reason or ruling.halt or "a hook dropped the message"
            return Heard(before=(*before, ran), after=(), dropped=reason)
        after += self._facts("UserPromptSubmit", ruling.context)
        return Heard(before=(*before, ran), after=tuple(after))

    async def before_call(self, call: ToolCall) -> Ruling:
        fields = {"tool_name": call.name, "tool_input": dict(call.args)}
        fired = await self._fire("PreToolUse", call.name, fields)
        if fired is None:
            return Ruling()
        ran, ruling = fired
        if ruling.args == call.args:
            ruling = msgspec.structs.replace(ruling, args=None)
        if ruling.halt is not None:
            self._halt = ruling.halt
            ruling = msgspec.structs.replace(ruling, decision="deny")
        args = None if ruling.args is None else redact_value(ruling.args)[0]
        changes = {"decision": ruling.decision, "args": args, "call_id": call.id}
        facts = self._facts("PreToolUse", ruling.context, tool=call.name)
        await self._record(msgspec.structs.replace(ran, **changes), *facts)
        return ruling

    async def after_call(self, call: ToolCall, returned: ToolReturned) -> None:
        response = {
            "success": returned.ok,
            "message": returned.message,
            "text": returned.text,
            "code": returned.code,
            "data": returned.data,
        }
        fields = {
            "tool_name": call.name,
            "tool_input": dict(call.args),
            "tool_response": response,
        }
        fired = await self._fire("PostToolUse", call.name, fields)
        if fired is None:
            return
        ran, ruling = fired
        if ruling.halt is not None:
            self._halt = ruling.halt
        texts = ruling.context
        if ruling.decision == "deny" and ruling.reason:
            texts = (ruling.reason, *texts)
        ran = msgspec.structs.replace(ran, call_id=call.id)
        await self._record(ran, *self._facts("PostToolUse", texts, tool=call.name))

    async def stopping(self, answer: str) -> bool:
        """The turn is about to end; True where a hook makes it go on."""
        self._halt = ""
        point = self._end_point()
        holds = self._holds(point)
        fields = {"stop_hook_active": holds > 0, "last_assistant_message": answer}
        fired = await self._fire(point, "", fields)
        if fired is None:
            return False
        ran, ruling = fired
        if ruling.decision == "deny" and holds >= MOST_HOLDS:
            ran = msgspec.structs.replace(ran, decision="", reason="")
            enough = HookRun(
                name="croze", message=f"the turn ends: hooks held it {holds} times", ended="blocked"
            )
            await self._record(msgspec.structs.replace(ran, runs=(*ran.runs, enough)))
            return False
        if ruling.decision != "deny":
            await self._record(ran)
            return False
        texts = (ruling.reason or "Go on: the task is not done yet.", *ruling.context)
        await self._record(ran, *self._facts(point, texts))
        return True

    async def compacting(self, trigger: str) -> None:
        """The context is about to be made smaller."""
        fields = {"trigger": trigger, "custom_instructions": ""}
        fired = await self._fire("PreCompact", trigger, fields)
        if fired is not None:
            await self._record(fired[0])

    def notify(self, message: str) -> None:
        """The user is asked for something. It waits for nothing: the answer may come at once."""
        task = asyncio.create_task(self._notify(message))
        self._notifying.add(task)
        task.add_done_callback(self._notifying.discard)

    async def end(self, reason: str) -> None:
        """The session is about to be closed."""
        tasks: list[asyncio.Task[Any]] = [*self._notifying]
        tasks += [self._starting] if self._starting is not None else []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._is_child:
            return
        said = any(isinstance(event.body, UserSaid) for event in self.live.log.events)
        fired = await self._fire("SessionEnd", reason, {"reason": reason})
        if fired is not None and said:
            await self._record(fired[0])

    def halted(self) -> str:
        """Why a hook wants the turn to end, told once; empty where none does."""
        halt, self._halt = self._halt, ""
        return halt

    async def _notify(self, message: str) -> None:
        """What a notification's hooks did is recorded with what comes next: it may end anywhere."""
        fired = await self._fire("Notification", "", {"message": message})
        if fired is not None:
            self._late.append(fired[0])

    def _take_late(self) -> list[HooksRan]:
        late, self._late = self._late, []
        return late

    async def _record(self, ran: HooksRan, *facts: FactAdded) -> None:
        await self.live.append(*self._take_late(), ran, *facts)

    def _end_point(self) -> Point:
        return "SubagentStop" if self._is_child else "Stop"

    @property
    def _is_child(self) -> bool:
        opened = self.live.log.events[0].body
        return isinstance(opened, SessionOpened) and opened.parent is not None

    def _holds(self, point: Point) -> int:
        """How often the end has been held off since the user said something last."""
        count = 0
        for event in reversed(self.live.log.events):
            if isinstance(event.body, UserSaid):
                break
            if isinstance(event.body, HooksRan) and event.body.point == point:
                count += event.body.decision == "deny"
        return count

    def _facts(self, point: Point, texts: Sequence[str], *, tool: str = "") -> list[FactAdded]:
        if not texts:
            return []
        text = told(point, texts, tool=tool)
        return [
            FactAdded(
                key=f"{FACT}{point}",
                message_id=self.live.new_id(),
                text=text,
                layer="current",
                reason="a hook of the user says so",
                tokens=estimate(text),
            )
        ]

    async def _fire(
        self, point: Point, subject: str, fields: Mapping[str, Any]
    ) -> tuple[HooksRan, Ruling] | None:
        """Run what is configured for a point; None where nothing is."""
        hooks = [hook for hook in self.hooks if hook.point == point and matches(hook, subject)]
        plugins = [plugin for plugin in self.plugins if plugin.point == point]
        if not hooks and not plugins:
            return None
        value = {
            "session_id": self.live.log.session,
            "transcript_path": str(self.transcript),
            "cwd": str(self.live.workspace.root),
            "hook_event_name": point,
            **fields,
        }
        said = msgspec.json.encode(value, enc_hook=str)
        once = {(hook.command, hook.source): hook for hook in reversed(hooks)}
        work = [self._command(hook, said) for hook in reversed(once.values())]
        work += [_called(plugin, value) for plugin in plugins]
        ran = await asyncio.gather(*work)
        ruling = combine([answer for answer, _ in ran])
        event = HooksRan(
            point=point,
            runs=tuple(
                _unused(run) if answer.args not in (None, ruling.args) else run
                for answer, run in ran
            ),
            decision=ruling.decision,
            reason=ruling.reason,
            halt=ruling.halt or "",
        )
        return event, ruling

    async def _command(self, hook: Hook, said: bytes) -> tuple[Answer, HookRun]:
        name = _short(hook.command)
        begun = time.monotonic()
        exit_code = None
        if changed := self.changed(hook):
            answer = Answer(
                ended="not_run",
                message=f"{changed} is not as it was when it was trusted",
                decision="ask" if hook.point == "PreToolUse" else "",
                reason=f"the hook {name} can't be relied on: {changed} has changed",
            )
        else:
            answer, exit_code = await self._answer(hook, said)
        if hook.on_failure == "block":
            answer = failed_answer(hook.point, name, answer)
        run = HookRun(
            name=name,
            ended=answer.ended,
            exit_code=exit_code,
            seconds=round(time.monotonic() - begun, 6),
            message=answer.message,
        )
        return answer, run

    async def _answer(self, hook: Hook, said: bytes) -> tuple[Answer, int | None]:
        root = str(self.live.workspace.root)
        env = {**child_environment(self.live.env), "CROZE_PROJECT_DIR": root}
        if hook.source == "claude":
            env["CLAUDE_PROJECT_DIR"] = root
        try:
            piped = await run_piped(
                ["/bin/sh", "-c", hook.command],
                said=said,
                cwd=root,
                env=env,
                timeout=hook.timeout,
                output_limit=OUTPUT_LIMIT,
                error_limit=ERROR_LIMIT,
            )
        except (ProcessError, OSError) as error:
            message = error.message if isinstance(error, CrozeError) else str(error)
            return Answer(ended="not_run", message=_bounded(message)), None
        ended = piped.ended
        errors = _bounded(piped.errors)
        if ended.ended == "timeout":
            text = f"no answer within {hook.timeout:g} s"
            return Answer(ended="timeout", message=text), None
        if ended.exit_code is None:
            return Answer(
                ended="killed", message=f"killed by {ended.signal}. {errors}".strip()
            ), None
        if ended.ended == "reader" or (piped.output is None and ended.exit_code == 0):
            text = f"more output than is read: {ended.total:,} bytes"
            return Answer(ended="invalid", message=text), ended.exit_code
        output = piped.output or ""
        return read_answer(hook.point, ended.exit_code, output, errors), ended.exit_code


async def _called(plugin: PluginHook, value: Mapping[str, Any]) -> tuple[Answer, HookRun]:
    """A plugin's function, with a copy of the values: what it does to them concerns nobody else."""
    begun = time.monotonic()
    try:
        async with asyncio.timeout(TIMEOUT):
            given = plugin.function(msgspec.json.decode(msgspec.json.encode(value, enc_hook=str)))
            answer = read_value(plugin.point, await given if inspect.isawaitable(given) else given)
    except TimeoutError:
        answer = Answer(ended="timeout", message=f"no answer within {TIMEOUT:g} s")
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        answer = Answer(ended="failed", message="CancelledError")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin's mistake breaks no run
        answer = Answer(ended="failed", message=_bounded(f"{type(error).__name__}: {error}"))
    return answer, HookRun(
        name=plugin.name,
        ended=answer.ended,
        seconds=round(time.monotonic() - begun, 6),
        message=answer.message,
    )


async def _whole(
    task: "asyncio.Task[tuple[HooksRan, Ruling] | None]",
) -> tuple[HooksRan, Ruling] | None:
    """What a task comes to; whoever waits for it ends it when he is cancelled."""
    try:
        return await task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])


def _unused(run: HookRun) -> HookRun:
    text = "another hook before it gave this call another input, which is used"
    return msgspec.structs.replace(run, message="; ".join(filter(None, (run.message, text))))


def _short(command: str) -> str:
    text = redact(" ".join(command.split()))[0]
    return text if len(text) <= _NAME else f"{text[: _NAME - 1]}…"


def _bounded(text: str) -> str:
    text = redact(text.strip())[0]
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}\n[… cut]"
