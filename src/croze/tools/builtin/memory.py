"""The list of messages that the model has let go of: it names them, a policy takes them out."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from croze.tools.base import Remembered, Tool, ToolContext, ToolSpec
from croze.tools.digest import first
from croze.types.event import MessagesMarked
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolExample, ToolResult, View

SHORT = 8
"""Characters of an id as hints show it; they are unique in a session."""
LEAST = 4
"""Characters that an id must be given by at least."""
MAX_ROWS = 60
MAX_OFFERED = 10
GONE = frozenset({"hidden", "summarised", "replaced"})
"""Standings of a message that doesn't stand in the context any more."""

_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]*")
_STAYS = {
    "user": "what the user said stays",
    "fact": "documentation and facts of the project stay",
    "reply": "your own replies stay; name the results that they got",
}
_WHEN = {
    "batch": "They go when the context is compacted next: at its watermark, on a cold cache, or sooner "
    "where that pays. Until then nothing changes.",
    "zone": "They go before the next request.",
    "digest": "They go when the context is shortened next. Until then nothing changes.",
    "none": "This session's context is never shortened (policy none): they stay, unless the window "
    "overflows or the policy is changed.",
}


class ConversationMessageIdsWrite(Tool, frozen=True):
    """Let go of results in this conversation that you don't need any more, by the ids in their hints
    (`[Hint: message_id: …]`). Nothing is lost: read_result still gives them. What the user said, your
    own replies and the project's documentation stay."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="conversation_message_ids_write",
        summary="let go of earlier results by message id",
        access=Access(),
        examples=(
            ToolExample(
                "Let go of two results", {"message_ids": "9226b3a4,204e1cd8", "action": "append"}
            ),
        ),
        aliases={"ids": "message_ids", "message_id": "message_ids"},
    )

    message_ids: Annotated[
        str | tuple[str, ...], Meta(description="8-character ids, apart by commas")
    ]
    action: Annotated[
        Literal["create", "append", "delete"],
        Meta(description="create sets the list, append adds to it, delete takes off"),
    ] = "append"

    async def run(self, ctx: ToolContext) -> ToolResult:
        messages = ctx.remembered()
        known = {message.id: message for message in messages}
        before = tuple(id for id in ctx.marked if id in known)
        asked = _asked(self.message_ids)
        if not asked and self.action != "create":
            return ToolResult(
                ok=False, message=f"{self.action} needs message_ids.", code="invalid_arguments"
            )
        found = _Found.of(asked, messages)
        wanted = found.wanted
        if self.action != "delete":
            wanted = [message for message in wanted if found.takes(message)]
        if asked and not wanted:
            return ToolResult(
                ok=False,
                message="None of these messages can be named; the list is as it was.",
                text="\n".join([*found.problems, *_offered(messages, before)]),
                code="no_such_message",
                data={"message_ids": list(before), "unknown": found.unknown},
            )
        ids = dict.fromkeys(message.id for message in wanted)
        if self.action == "append":
            ids = dict.fromkeys((*before, *ids))
        elif self.action == "delete":
            ids = dict.fromkeys(id for id in before if id not in ids)
        after = tuple(ids)
        if after != ctx.marked:
            await ctx.emit(MessagesMarked(ids=after))
        when = [_WHEN.get(ctx.policy, _WHEN["batch"])] if after else []
        return _listed(known, after, [*found.problems, *when], found.unknown)

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return result.message


class ConversationMessageIdsRead(Tool, frozen=True):
    """Show which messages you have let go of, what each is and its tokens, and the largest ones that
    you could let go of."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="conversation_message_ids_read",
        summary="show which messages you have let go of",
        access=Access(read=True),
    )

    async def run(self, ctx: ToolContext) -> ToolResult:
        messages = ctx.remembered()
        known = {message.id: message for message in messages}
        marked = tuple(id for id in ctx.marked if id in known)
        return _listed(known, marked, _offered(messages, marked), [])

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return first(result, result.text.split("\n") if result.text else [], 10)


def ids_near(wanted: str, messages: Sequence[Remembered], limit: int = 3) -> list[Remembered]:
    """Messages whose ids look like `wanted`, the likest first."""
    from difflib import SequenceMatcher  # only where a model errs

    def likeness(message: Remembered) -> float:
        names = (message.id[: len(wanted)], message.call_id)
        return max(SequenceMatcher(None, wanted, name).ratio() for name in names)

    ranked = sorted(messages, key=likeness, reverse=True)
    return [message for message in ranked[:limit] if likeness(message) >= 0.6]


def matches(wanted: str, messages: Sequence[Remembered]) -> list[Remembered]:
    """The messages that an id may mean: the one of this very id or call, else all that begin so."""
    exact = [m for m in messages if wanted in (m.call_id, m.id)]
    if exact or len(wanted) < LEAST:
        return exact
    low = wanted.lower()
    return [m for m in messages if m.id.lower().startswith(low)]


def _row(message: Remembered) -> str:
    cost = "gone already" if message.standing in GONE else f"{message.tokens:,} tokens"
    return f"{message.id[:SHORT]} {cost}: {message.what}"


def _asked(message_ids: str | Sequence[str]) -> list[str]:
    text = message_ids if isinstance(message_ids, str) else ",".join(message_ids)
    words = (word for word in _ID.findall(text) if word.lower() not in ("hint", "message"))
    return list(dict.fromkeys(words))


@dataclass(slots=True)
class _Found:
    """What the ids of a call mean: the messages, and a line for each id that can't be taken."""

    wanted: list[Remembered] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, asked: Sequence[str], messages: Sequence[Remembered]) -> "_Found":
        found = cls()
        for wanted in asked:
            fitting = matches(wanted, messages)
            if len(fitting) == 1:
                found.wanted.append(fitting[0])
                continue
            found.unknown.append(wanted)
            if fitting:
                each = "; ".join(f"{m.id[: SHORT + 5]} ({m.what})" for m in fitting[:4])
                found.problems.append(f"{wanted}: {len(fitting)} messages begin so: {each}.")
            elif len(wanted) < LEAST:
                found.problems.append(f"{wanted}: too short, give {SHORT} characters.")
            else:
                near = " or ".join(m.id[:SHORT] for m in ids_near(wanted, messages))
                hint = f" Did you mean {near}?" if near else ""
                found.problems.append(f"{wanted}: no message of this conversation.{hint}")
        return found

    def takes(self, message: Remembered) -> bool:
        """Whether this message may be let go of; where not, the reason is noted."""
        reason = _STAYS.get(message.kind)
        if reason is None and message.standing in GONE:
            reason = "it doesn't stand in the context any more"
        if reason is None:
            return True
        self.problems.append(f"{message.id[:SHORT]}: not marked, {reason} ({message.what}).")
        return False


def _offered(messages: Sequence[Remembered], marked: Sequence[str]) -> list[str]:
    free = [
        message
        for message in messages
        if message.kind == "result" and message.standing not in GONE and message.id not in marked
    ]
    largest = sorted(free, key=lambda message: -message.tokens)[:MAX_OFFERED]
    shown = [_row(message) for message in largest if message.tokens]
    return ["The largest results that you could let go of:", *shown] if shown else []


def _listed(
    known: Mapping[str, Remembered], ids: Sequence[str], more: Sequence[str], unknown: Sequence[str]
) -> ToolResult:
    messages = [known[id] for id in ids]
    tokens = sum(message.tokens for message in messages if message.standing not in GONE)
    many = f"{len(ids)} message{'' if len(ids) == 1 else 's'} marked, about {tokens:,} tokens."
    message = many if ids else "No message is marked."
    rows = [_row(each) for each in messages[:MAX_ROWS]]
    if len(messages) > MAX_ROWS:
        rows.append(f"… and {len(messages) - MAX_ROWS} more")
    text = "\n".join((*rows, *more))
    return ToolResult(
        ok=True,
        message=message,
        text=text,
        view=View(title=message, body=text, kind="list"),
        data={"message_ids": list(ids), "tokens": tokens, "unknown": list(unknown)},
    )
