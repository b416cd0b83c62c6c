"""Hooks: what they are told, how their answers are read, and what several of them decide together.

The contract is the one that users know from other agents: JSON on standard input; exit code 0 and
something to read on standard output, 2 and a reason on standard error to block, anything else a warning.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, get_args

import msgspec
from msgspec import UNSET, Struct, UnsetType

from croze.text.redact import redact
from croze.tools.aliases import RULES, TOOLS
from croze.tools.approve import Decision
from croze.types.hook import Ended, Point
from croze.types.parts import ToolCall
from croze.types.tool import ToolResult

POINTS: tuple[Point, ...] = get_args(Point)
FACT = "hook:"
"""How the keys of facts begin that hooks tell the model."""

TIMEOUT = 60.0
"""Seconds that a hook has where it isn't given another time."""

MOST_TEXT = 10_000
"""Characters of what a hook says that are kept, each of its texts."""

PLAIN: frozenset[str] = frozenset({"UserPromptSubmit", "SessionStart"})
"""Points where plain output is context for the model."""

CONTEXT: frozenset[str] = PLAIN | {"PreToolUse", "PostToolUse"}
BLOCKS: frozenset[str] = frozenset(
    {"PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop"}
)
"""Points where a hook can block; elsewhere what it says then is shown to the user."""

HALTS: frozenset[str] = BLOCKS - {"Stop", "SubagentStop"}

_SHORT = 300

Verdict = Literal["", "allow", "ask", "deny"]
_RANK: dict[Verdict, int] = {"": 0, "allow": 1, "ask": 2, "deny": 3}


class Hook(Struct, frozen=True, kw_only=True):
    """A hook as it was configured. `matcher` is a regular expression for a tool's name (or what else a
    point has); empty matches all. `timeout` is in seconds. `on_failure` says whether a hook that fails
    blocks. `pinned` maps files of the project that the command names to the SHA-256 that is trusted."""

    point: Point
    command: str
    matcher: str = ""
    timeout: float = TIMEOUT
    on_failure: Literal["warn", "block"] = "warn"
    source: Literal["user", "project", "claude"] = "user"
    pinned: Mapping[str, str] = {}


class Answer(Struct, frozen=True, kw_only=True):
    """What one hook said. `message` is for the user, `context` for the model; `halt` (None: go on) is why
    the turn is to end, `args` another input for the call."""

    ended: Ended = "ok"
    decision: Verdict = ""
    reason: str = ""
    args: dict[str, Any] | None = None
    context: str = ""
    message: str = ""
    halt: str | None = None


class Ruling(Struct, frozen=True, kw_only=True):
    """What the hooks of a point decided together: deny beats ask beats allow."""

    decision: Verdict = ""
    reason: str = ""
    args: dict[str, Any] | None = None
    context: tuple[str, ...] = ()
    halt: str | None = None

    def applied(self, decision: Decision) -> Decision:
        """The decision on a call after the hooks have spoken. An `allow` spares the mode's question, never
        one that a rule wants, and lifts nothing that is forbidden."""
        if self.decision == "allow" and decision.verdict == "ask" and decision.by == "mode":
            return msgspec.structs.replace(decision, verdict="allow", reason="a hook allows it")
        if self.decision == "ask" and decision.verdict == "allow":
            reason = f"a hook wants a question: {self.reason}" if self.reason else "a hook asks"
            return msgspec.structs.replace(decision, verdict="ask", reason=reason, rule="", flag="")
        return decision

    def refusal(self, call: ToolCall) -> ToolResult:
        """The result of a call that a hook did not let run."""
        reason = self.reason or self.halt or "it gave no reason"
        short = " ".join(reason.split())
        whole = len(short) <= _SHORT
        said = short if whole else f"{short[:_SHORT]}…"
        return ToolResult(
            ok=False,
            message=f"{call.name} was not run, a hook of the user blocked it: {said}",
            text="" if whole else reason,
            code="blocked_by_hook",
            data={"reason": reason},
        )

    @staticmethod
    def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
        """What the model is told where a hook gave its call another input."""
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        return f"A hook of the user changed this call's input before it ran ({', '.join(names)})."


class _Specific(Struct, rename="camel"):
    hook_event_name: str | None = None
    permission_decision: Literal["allow", "deny", "ask"] | None = None
    permission_decision_reason: str | None = None
    updated_input: dict[str, Any] | None = None
    additional_context: str | None = None


class _Output(Struct, rename="camel"):
    go_on: bool | UnsetType = msgspec.field(default=UNSET, name="continue")
    stop_reason: str | None = None
    system_message: str | None = None
    decision: Literal["approve", "allow", "block", "deny", "ask"] | None = None
    reason: str | None = None
    hook_specific_output: _Specific | None = None


_decoder = msgspec.json.Decoder(_Output)
_DECISIONS: dict[str, Verdict] = {
    "approve": "allow",
    "allow": "allow",
    "ask": "ask",
    "block": "deny",
    "deny": "deny",
}


def matches(hook: Hook, subject: str) -> bool:
    """Whether the hook is for this subject: a tool by its tag, or what else the point has."""
    if hook.matcher in ("", "*"):
        return True
    pattern = re.compile(hook.matcher)
    if hook.point in ("PreToolUse", "PostToolUse"):
        return any(pattern.fullmatch(name) for name in names_of(subject))
    return not subject or pattern.fullmatch(subject) is not None


@cache
def names_of(tag: str) -> tuple[str, ...]:
    """A tool's tag and the names that other agents have for it or for its kind."""
    others = [name for name, known in TOOLS.items() if known == tag]
    kinds = [name for name, tags in RULES.items() if tag in tags]
    return tuple(dict.fromkeys((tag, *others, *kinds)))


def read_answer(point: Point, exit_code: int, output: str, errors: str) -> Answer:
    """What a program said that ended by itself."""
    if exit_code == 2:
        reason = _kept(errors) or "a hook blocked it"
        if point not in BLOCKS:
            return Answer(ended="blocked", message=reason)
        message = reason if point == "UserPromptSubmit" else ""
        return Answer(ended="blocked", decision="deny", reason=reason, message=message)
    if exit_code != 0:
        return Answer(ended="failed", message=_kept(errors) or _kept(output))
    return read_output(point, output)


def read_output(point: Point, output: str) -> Answer:
    """The answer in a text: a JSON object, or plain words where those are context."""
    text = output.strip()
    if not text.startswith("{"):
        return Answer(context=_kept(text)) if point in PLAIN else Answer()
    try:
        return _answer(point, _decoder.decode(text))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return Answer(ended="invalid", message=_kept(str(error)))


def read_value(point: Point, value: object) -> Answer:
    """The answer that a Python hook gave: nothing, words, or an object of the same form as JSON."""
    if value is None:
        return Answer()
    if isinstance(value, str):
        return read_output(point, value)
    try:
        return _answer(point, _decoder.decode(msgspec.json.encode(value)))
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError) as error:
        return Answer(ended="invalid", message=_kept(str(error)))


def _answer(point: Point, said: _Output) -> Answer:
    specific = said.hook_specific_output or _Specific()
    if specific.hook_event_name not in (None, point):
        text = f"hookSpecificOutput is for {specific.hook_event_name}, not for {point}"
        return Answer(ended="invalid", message=_kept(text))
    halt = None
    if said.go_on is False and point in HALTS:
        halt = _kept(said.stop_reason or said.reason or "") or "a hook ended the turn"
    decision, reason = "", said.reason or ""
    if point in BLOCKS and said.decision is not None:
        decision = said.decision
    if point == "PreToolUse" and specific.permission_decision is not None:
        decision = specific.permission_decision
        reason = specific.permission_decision_reason or reason
    verdict = _DECISIONS.get(decision, "")
    if point != "PreToolUse" and verdict != "deny":
        verdict = ""
    if said.go_on is False and point in ("Stop", "SubagentStop"):
        verdict = ""  # it is to stop, and it does
    return Answer(
        ended="blocked" if verdict == "deny" else "ok",
        decision=verdict,
        reason=_kept(reason) if verdict else "",
        args=specific.updated_input if point == "PreToolUse" else None,
        context=_kept(specific.additional_context or "") if point in CONTEXT else "",
        message=_kept(said.system_message or ""),
        halt=halt,
    )


def failed_answer(hook_point: Point, name: str, answer: Answer) -> Answer:
    """The answer of a hook that failed though it must not: it blocks."""
    if answer.ended in ("ok", "blocked") or hook_point not in BLOCKS:
        return answer
    reason = f"the hook {name} failed, and nothing goes on without it"
    return msgspec.structs.replace(answer, decision="deny", reason=reason)


def combine(answers: Sequence[Answer]) -> Ruling:
    """What the answers come to. Of several new inputs the first holds; an `allow` for the old input says
    nothing of the new one."""
    args = next((answer.args for answer in answers if answer.args is not None), None)
    counted = [a for a in answers if a.decision != "allow" or a.args == args or args is None]
    strongest = max(counted, key=lambda a: _RANK[a.decision], default=Answer())
    reasons = (a.reason for a in counted if a.decision == strongest.decision and a.decision)
    return Ruling(
        decision=strongest.decision,
        reason="; ".join(dict.fromkeys(filter(None, reasons))),
        args=args,
        context=tuple(answer.context for answer in answers if answer.context),
        halt=next((answer.halt for answer in answers if answer.halt is not None), None),
    )


def told(point: str, texts: Iterable[str], *, tool: str = "") -> str:
    """What hooks say, as the model reads it."""
    where = f" after {tool}" if tool and point == "PostToolUse" else f" on {tool}" if tool else ""
    return f"A hook of the user ({point}){where} says:\n" + "\n".join(texts)


def _kept(text: str) -> str:
    """A hook's text as it is kept: without secrets, of bounded length."""
    text = redact(text.strip())[0]
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}\n[… cut]"
