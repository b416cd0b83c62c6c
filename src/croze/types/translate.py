"""Turns log events and deltas into the objects that programs outside see, in order."""

from typing import Any, assert_never

import msgspec

from croze.types.event import (
    Annotated,
    Answered,
    Asked,
    BackgroundTask,
    ChildClosed,
    ChildOpened,
    Compacted,
    Event,
    FactAdded,
    FilesChanged,
    FlowStepped,
    HeadSet,
    HooksRan,
    Merged,
    MessagesMarked,
    ModelCalled,
    ModelSaid,
    Notice,
    PlanSet,
    Retried,
    SessionOpened,
    Stopped,
    TeamSaid,
    TodoSet,
    ToolReturned,
    ToolStarted,
    Undoing,
    Undone,
    Unknown,
    UserSaid,
)
from croze.types.model import Cost, Usage
from croze.types.news import ChildNews
from croze.types.outward import (
    ApprovalAskedObject,
    ApprovalGivenObject,
    BackgroundTaskObject,
    CompletionObject,
    ConversationIdObject,
    ErrorObject,
    FileChangedObject,
    FollowUpQuestionObject,
    HookObject,
    InterruptedObject,
    NoticeObject,
    Outward,
    PlanResponseObject,
    PrunedObject,
    RetryObject,
    StoppedObject,
    SubAgentEventObject,
    SummaryObject,
    TextObject,
    ThinkingObject,
    TodoChangedObject,
    TokenUsageObject,
    ToolCallObject,
    ToolResultObject,
    WindowChangeObject,
)
from croze.types.parts import CallResult, Image, Text, Thinking, ToolCall
from croze.types.stream import Delta
from croze.types.translate_team import team_objects


class Translator:
    """Turns one session's events and deltas into outward objects.

    `partial` lets pieces of text and thinking through as they arrive. It remembers what it needs of the
    running turn: the calls by id, the last text, the round (`rounds` have gone before).
    """

    def __init__(
        self, session: str, *, model: str | None = None, partial: bool = False, rounds: int = 0
    ) -> None:
        self._session = session
        self._model = model
        self._partial = partial
        self._calls: dict[str, ToolCall] = {}
        self._approvals: set[str] = set()
        self._answer = ""
        self._answer_raw = ""
        self._failed = False
        self._round = rounds
        self._children: dict[str, Translator] = {}

    def opening(self) -> ConversationIdObject:
        """The object that comes before all others."""
        return ConversationIdObject(
            session=self._session, conversation_id=self._session, model=self._model
        )

    def of(self, item: Event | Delta | ChildNews) -> list[Outward]:
        """What `item` looks like from outside; nothing for what concerns the log alone."""
        if isinstance(item, ChildNews):
            return self._news(item)
        if isinstance(item, Delta):
            return self._delta(item)
        if item.session != self._session:
            return []
        return self._event(item)

    def _news(self, news: ChildNews) -> list[Outward]:
        child, agent = news.path[-1]
        if child not in self._children:
            self._children[child] = Translator(child, partial=self._partial)
        return [
            SubAgentEventObject(
                session=self._session,
                child=child,
                agent=agent,
                path=tuple(name for _, name in news.path),
                event=msgspec.to_builtins(found),
                cost=news.cost,
                subtree_cost=news.subtree,
            )
            for found in self._children[child].of(news.item)
        ]

    def _delta(self, delta: Delta) -> list[Outward]:
        if not self._partial or not delta.text or delta.session not in ("", self._session):
            return []
        if delta.kind == "text":
            return [TextObject(session=self._session, text=delta.text, partial=True)]
        if delta.kind == "thinking":
            return [ThinkingObject(session=self._session, text=delta.text, partial=True)]
        return []

    def _event(self, event: Event) -> list[Outward]:
        at: dict[str, Any] = {"session": event.session, "seq": event.seq, "at": event.at}
        match event.body:
            case ModelSaid(purpose="main") as said:
                return self._said(said, at)
            case ModelSaid() as said:
                return [_usage(said, at)]
            case ToolReturned() as returned:
                return self._returned(returned, at)
            case Stopped() as stopped:
                return self._stopped(stopped, at)
            case Asked() as asked:
                return [self._asked(asked, at)]
            case Answered() as body:
                if body.ask_id not in self._approvals:
                    return []
                return [
                    ApprovalGivenObject(
                        ask_id=body.ask_id, answer=body.answer, by=body.by, note=body.note, **at
                    )
                ]
            case Notice(level="error") as body:
                self._failed = True
                return [ErrorObject(code=body.code, message=body.text, params=body.params, **at)]
            case Notice(level="info" | "warning" as level) as body:
                return [
                    NoticeObject(
                        level=level, code=body.code, message=body.text, params=body.params, **at
                    )
                ]
            case Retried() as body:
                return [
                    RetryObject(
                        attempt=body.attempt,
                        delay=body.delay,
                        code=body.error,
                        message=body.message,
                        **at,
                    )
                ]
            case ModelCalled() as body:
                return self._called(body, at)
            case Compacted() as body:
                return self._compacted(body, at)
            case HooksRan() as body:
                return [
                    HookObject(
                        point=body.point,
                        call_id=body.call_id,
                        decision=body.decision,
                        reason=body.reason,
                        runs=body.runs,
                        **at,
                    )
                ]
            case FilesChanged() as body:
                return [
                    FileChangedObject(call_id=body.call_id, change=change, **at)
                    for change in body.changes
                ]
            case TodoSet() as body:
                return [TodoChangedObject(items=body.items, **at)]
            case BackgroundTask() as body:
                return [
                    BackgroundTaskObject(
                        task_id=body.task_id,
                        kind=body.kind,
                        command=body.command,
                        state=body.state,
                        exit_code=body.exit_code,
                        signal=body.signal,
                        error=body.error,
                        seconds=body.seconds,
                        size=body.size,
                        last=body.last,
                        **at,
                    )
                ]
            case Undone(todo=tuple() as items):
                return [TodoChangedObject(items=items, **at)]
            case ChildOpened() | ChildClosed() | PlanSet() | FlowStepped() | TeamSaid() | Merged():
                return team_objects(event.body, at)
            case UserSaid():
                self._answer = self._answer_raw = ""
                self._failed = False
                return []
            case (
                SessionOpened()
                | HeadSet()
                | FactAdded()
                | ToolStarted()
                | MessagesMarked()
                | Annotated()
                | Undoing()
                | Undone()
                | Unknown()
                | Notice()
            ):
                return []
            case unreachable:
                assert_never(unreachable)

    def _said(self, said: ModelSaid, at: dict[str, Any]) -> list[Outward]:
        found: list[Outward] = []
        replaces = said.continues if said.joined else None
        texts: list[str] = []
        for part in said.parts:
            match part:
                case Text():
                    texts.append(part.text)
                    if part.text:
                        found.append(
                            TextObject(
                                text=part.text,
                                message_id=said.message_id,
                                replaces=replaces,
                                **at,
                            )
                        )
                case Thinking():
                    if part.text:
                        found.append(
                            ThinkingObject(text=part.text, message_id=said.message_id, **at)
                        )
                case ToolCall():
                    self._calls[part.id] = part
                    found.append(
                        ToolCallObject(
                            call_id=part.id,
                            name=part.name,
                            args=part.args,
                            raw=part.raw,
                            error=part.error.message if part.error else None,
                            **at,
                        )
                    )
                case CallResult() | Image():
                    pass
        goes_on = said.continues is not None and not said.joined
        self._answer = (self._answer if goes_on else "") + "".join(texts)
        self._answer_raw = ""
        if said.usage != Usage() or said.cost != Cost():
            found.append(_usage(said, at))
        return found

    def _returned(self, body: ToolReturned, at: dict[str, Any]) -> list[Outward]:
        found: list[Outward] = [
            ToolResultObject(
                call_id=body.call_id,
                name=body.name,
                ok=body.ok,
                message=body.message,
                text=body.text,
                data=body.data,
                code=body.code,
                truncated=body.truncated,
                seconds=body.seconds,
                **at,
            )
        ]
        call = self._calls.get(body.call_id)
        if call is None or not body.ok:
            return found
        if body.name == "attempt_completion":
            self._answer = str(call.args.get("result", "")) or body.text
            self._answer_raw = call.raw
        elif body.name == "plan_mode_respond":
            options = call.args.get("options")
            self._answer = str(call.args.get("response", ""))
            self._answer_raw = call.raw
            found.append(
                PlanResponseObject(
                    response=self._answer,
                    options=tuple(map(str, options)) if isinstance(options, list) else (),
                    raw=call.raw,
                    **at,
                )
            )
        return found

    def _asked(self, asked: Asked, at: dict[str, Any]) -> Outward:
        if asked.kind == "question":
            call = self._calls.get(asked.call_id)
            return FollowUpQuestionObject(
                ask_id=asked.ask_id,
                question=asked.text,
                options=asked.options,
                raw=call.raw if call else "",
                **at,
            )
        self._approvals.add(asked.ask_id)
        return ApprovalAskedObject(
            ask_id=asked.ask_id,
            call_id=asked.call_id,
            text=asked.text,
            rule=asked.rule,
            access=asked.access,
            parts=asked.parts,
            cwd=asked.cwd,
            **at,
        )

    def _called(self, body: ModelCalled, at: dict[str, Any]) -> list[Outward]:
        if body.purpose != "main":
            return []
        self._round += 1
        return [self._window(body.tokens, body.tokens, at)]

    def _compacted(self, body: Compacted, at: dict[str, Any]) -> list[Outward]:
        found: list[Outward] = [
            PrunedObject(
                policy=body.policy,
                reason=body.reason,
                tokens_before=body.tokens_before,
                tokens_after=body.tokens_after,
                **at,
            )
        ]
        if body.summary:
            found.append(SummaryObject(text=body.summary, **at))
        found.append(self._window(body.tokens_before, body.tokens_after, at))
        return found

    def _window(self, used: int, pruned: int, at: dict[str, Any]) -> WindowChangeObject:
        return WindowChangeObject(
            tokens_used=used, pruned_tokens_used=pruned, conversation_round=self._round, **at
        )

    def _stopped(self, stopped: Stopped, at: dict[str, Any]) -> list[Outward]:
        found: list[Outward] = []
        if stopped.reason == "done":
            # A continued reply was joined by the loop; a call's own source is better than its result.
            answer = self._answer if self._answer_raw else stopped.text or self._answer
            found.append(CompletionObject(result=answer, raw=self._answer_raw, **at))
        elif stopped.reason == "cancelled":
            found.append(InterruptedObject(message=stopped.text, **at))
        elif not self._failed:
            found.append(ErrorObject(code=stopped.reason, message=stopped.text, **at))
        found.append(
            StoppedObject(
                reason=stopped.reason,
                steps=stopped.steps,
                seconds=stopped.seconds,
                cost=stopped.cost,
                refused=stopped.refused,
                **at,
            )
        )
        return found


def _usage(said: ModelSaid, at: dict[str, Any]) -> TokenUsageObject:
    usage, cost = said.usage, said.cost
    return TokenUsageObject(
        model=said.model,
        input_tokens=usage.input,
        output_tokens=usage.output,
        cached_tokens=usage.cached,
        cache_write_tokens=usage.cache_write,
        thinking_tokens=usage.thinking,
        input_cost=cost.input,
        output_cost=cost.output,
        **at,
    )
