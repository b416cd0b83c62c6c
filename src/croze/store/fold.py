"""The fold of a session's events into a conversation: transcript, totals, late facts merged in."""

import contextlib
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from croze.types.conversation import (
    Content,
    Conversation,
    ConversationMessage,
    ConversationSummary,
    LlmMetadata,
)
from croze.types.event import (
    Annotated,
    Event,
    HeadSet,
    ModelSaid,
    SessionOpened,
    ToolReturned,
    Undone,
    UserSaid,
)
from croze.types.model import Cost, Usage
from croze.types.parts import CallResult, Image, Part, Text, Thinking, ToolCall

ROLE_KEY = "croze.role"
"""Metadata key of an imported message that is neither the user's nor the model's: its role."""
JSON_KEY = "croze.json"
"""Metadata key of an imported message whose content is no text: it is stored as JSON text."""
FIRST_LENGTH = 200


def content_of(parts: Iterable[Part]) -> Content:
    """A message's parts as exported content: text where the message is text (thinking left out, calls
    of the xml protocol verbatim), else a list of typed objects."""
    parts = [part for part in parts if not isinstance(part, Thinking)]
    if all(isinstance(part, Text) or _is_tag(part) for part in parts):
        return "".join(part.text if isinstance(part, Text) else _raw(part) for part in parts)
    return [_object(part) for part in parts if not (isinstance(part, Text) and not part.text)]


def _is_tag(part: Part) -> bool:
    return isinstance(part, ToolCall) and part.raw.startswith("<")


def _raw(part: Part) -> str:
    return part.raw if isinstance(part, ToolCall) else ""


def _object(part: Part) -> dict[str, Any]:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case ToolCall():
            return {"type": "call", "id": part.id, "name": part.name, "args": part.args}
        case CallResult():
            text = "\n".join(filter(None, (part.message, part.text)))
            return {"type": "result", "id": part.call_id, "name": part.name, "text": text}
        case Image():
            return {"type": "image", "blob": part.blob, "media_type": part.media_type}
        case Thinking(text=text):
            return {"type": "thinking", "text": text}


def text_of(content: Content) -> str:
    """The words of a content, for a title, a search or a snippet."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(text_of, content)))
    found = content.get("text")
    return found if isinstance(found, str) else ""


class _Draft(Struct):
    """A message while later events may still change it."""

    id: str
    role: str
    seq: int
    at: int
    parts: list[Part] = field(default_factory=list)
    content: Content | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    step: int | None = None
    usages: list[Usage] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)

    def message(self) -> ConversationMessage:
        metadata = {k: v for k, v in self.metadata.items() if k not in (ROLE_KEY, JSON_KEY)}
        content = content_of(self.parts) if self.content is None else self.content
        if (
            self.metadata.get(JSON_KEY) is True
            and self.content is None
            and isinstance(content, str)
        ):
            with contextlib.suppress(msgspec.DecodeError):
                content = msgspec.json.decode(content)
        llm = None
        if self.model:
            llm = LlmMetadata(
                model_name=self.model,
                input_tokens=_whole([usage.input for usage in self.usages]),
                output_tokens=_whole([usage.output for usage in self.usages]),
                cached_tokens=_whole([usage.cached for usage in self.usages]),
                input_cost=_whole([cost.input for cost in self.costs]),
                output_cost=_whole([cost.output for cost in self.costs]),
                conversation_round=self.step or None,
            )
        return ConversationMessage(
            message_id=self.id,
            role=self.role,
            content=content,
            created_at=self.at,
            metadata=metadata,
            llm_metadata=llm,
            seq=self.seq,
        )


class Fold:
    """Takes a session's events in order and gives what they amount to."""

    def __init__(self, session: str) -> None:
        self._opened = SessionOpened(name=f"Conversation {session[:8]}")
        self._session = session
        self._created = 0
        self._updated = 0
        self._seq = 0
        self._name = self._opened.name
        self._description = ""
        self._metadata: dict[str, Any] = {}
        self._model = ""
        self._shown: list[_Draft] = []
        self._hidden: list[_Draft] = []
        self._by_id: dict[str, _Draft] = {}
        self._undone: Undone | None = None
        self._tools: dict[str, int] = {}

    def add(self, event: Event) -> None:
        self._seq = event.seq
        self._created = self._created or event.at
        self._updated = max(self._updated, event.at)
        match event.body:
            case SessionOpened() as opened:
                self._opened = opened
                self._name = opened.name
                self._description = opened.description
                self._metadata = dict(opened.metadata)
            case HeadSet(model=model):
                self._model = model.name
            case UserSaid() as said:
                role = said.metadata.get(ROLE_KEY)
                draft = _Draft(
                    said.message_id,
                    role if isinstance(role, str) else "user",
                    event.seq,
                    event.at,
                    parts=list(said.parts),
                    metadata=dict(said.metadata),
                )
                self._show(draft)
            case ModelSaid() as said:
                self._reply(event, said)
            case ToolReturned() as returned:
                self._result(event, returned)
            case Annotated() as late:
                self._annotate(late)
            case Undone() as undone:
                self._undone = undone
            case _:
                pass

    def _show(self, draft: _Draft) -> None:
        self._shown.append(draft)
        self._by_id[draft.id] = draft

    def _reply(self, event: Event, said: ModelSaid) -> None:
        before = self._by_id.get(said.continues) if said.continues else None
        if before is not None:
            if said.joined:
                before.parts.clear()
                before.id = said.message_id
            before.parts.extend(said.parts)
            before.metadata |= said.metadata
            before.usages.append(said.usage)
            before.costs.append(said.cost)
            self._by_id[said.message_id] = before
            return
        draft = _Draft(
            said.message_id,
            "assistant",
            event.seq,
            event.at,
            parts=list(said.parts),
            metadata=dict(said.metadata),
            model=said.model,
            step=said.step,
            usages=[said.usage],
            costs=[said.cost],
        )
        if said.purpose == "main":
            self._show(draft)
        else:
            self._hidden.append(draft)
            self._by_id[draft.id] = draft

    def _result(self, event: Event, returned: ToolReturned) -> None:
        self._tools[returned.name] = self._tools.get(returned.name, 0) + 1
        self._shown.append(
            _Draft(
                returned.call_id,
                "tool",
                event.seq,
                event.at,
                content="\n".join(filter(None, (returned.message, returned.text))),
                metadata={
                    "call_id": returned.call_id,
                    "reply_to": returned.message_id,
                    "name": returned.name,
                    "ok": returned.ok,
                },
            )
        )
        for name in (returned.call_id, returned.message_id):  # a late fact may name it by either
            self._by_id.setdefault(name, self._shown[-1])

    def _annotate(self, late: Annotated) -> None:
        if late.target is None:
            self._name = late.name or self._name
            if late.description is not None:
                self._description = late.description
            self._metadata = self._metadata | late.metadata
            return
        draft = self._by_id.get(late.target)
        if draft is None:
            return
        if late.content is not None:
            draft.content = late.content
        draft.metadata |= late.metadata
        if late.usage is not None:
            draft.usages = [late.usage]
        if late.cost is not None:
            draft.costs = [late.cost]

    def _held(self) -> list[_Draft]:
        """The messages that aren't undone; those that are still count among tokens and cost."""
        undone = self._undone
        return [d for d in self._shown if undone is None or not undone.hides(d.seq)]

    def summary(self) -> ConversationSummary:
        calls = [d for d in (*self._shown, *self._hidden) if d.model]
        costs = [cost.total for d in calls for cost in d.costs]
        usages = [usage for d in calls for usage in d.usages]
        known = [cost for cost in costs if cost is not None]
        shown = self._held()
        first = next((d for d in shown if d.role == "user"), None)
        opened = self._opened
        return ConversationSummary(
            id=self._session,
            name=self._name,
            description=self._description,
            metadata=self._metadata,
            namespace=opened.namespace,
            project=opened.project,
            parent=opened.parent,
            forked_from=opened.forked_from,
            created_at=self._created,
            updated_at=self._updated,
            last_seq=self._seq,
            model=self._model or (calls[-1].model if calls else ""),
            first=_head(text_of(first.message().content)) if first else "",
            message_count=len(shown),
            steps=len({d.step for d in calls}),
            input_tokens=sum(usage.input or 0 for usage in usages),
            output_tokens=sum(usage.output or 0 for usage in usages),
            cached_tokens=sum(usage.cached or 0 for usage in usages),
            cost=sum(known) if known else None,
            unpriced=len(costs) - len(known),
            tools=dict(self._tools),
        )

    def conversation(self) -> Conversation:
        summary = self.summary()
        messages = tuple(draft.message() for draft in self._held())
        return Conversation(
            **{name: getattr(summary, name) for name in summary.__struct_fields__},
            messages=messages,
        )


def fold(events: Iterable[Event], session: str = "") -> Fold:
    """The fold over `events`; `session` names it where there may be none."""
    result: Fold | None = Fold(session) if session else None
    for event in events:
        if result is None:
            result = Fold(event.session)
        result.add(event)
    return result or Fold(session)


def _head(text: str) -> str:
    line = " ".join(text[: FIRST_LENGTH * 4].split())
    return line if len(line) <= FIRST_LENGTH else line[: FIRST_LENGTH - 1] + "…"


_Number = TypeVar("_Number", int, float)


def _whole(values: list[_Number | None]) -> _Number | None:
    """The sum; unknown where a part is."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(values) else None
