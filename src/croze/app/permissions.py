"""Approval rules for front ends: what holds, what a rule set says to a call, and what it would have said
in past sessions."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from croze.app.assemble import confinement_for, real_path
from croze.app.config import Config
from croze.app.options import RunOptions
from croze.app.rules import KeptRules, Scope
from croze.app.timetravel import chosen, root_of
from croze.tools.approve import Approver, Decision
from croze.tools.base import BoundTool, ToolContext
from croze.tools.registry import Registry, builtin
from croze.tools.rule_syntax import Effect, RuleSet, parse_rule
from croze.types.agent import Mode, Sandbox
from croze.types.errors import UsageError
from croze.types.event import Answered, Asked, Event, ModelSaid, ToolReturned
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolResult, View

if TYPE_CHECKING:
    from croze.app.app import App

EFFECTS: tuple[Effect, ...] = ("deny", "ask", "allow")
Outcome = Literal["allow", "ask", "deny"]


class KeptRule(Struct, frozen=True):
    """A rule that holds. `source` is user or project for kept rules, else the setting's source;
    `known` is false where no tool of croze has a name that it speaks of (a server's may)."""

    effect: Effect
    rule: str
    source: str
    path: str
    known: bool


class Trial(Struct, frozen=True, kw_only=True):
    """Which rules to try: those that hold, and more. None for mode and sandbox: as configured."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    mode: Mode | None = None
    sandbox: Sandbox | None = None
    alone: bool = False


class TestedPart(Struct, frozen=True):
    """A simple command. `why` says why it isn't free by itself, empty where it only reads; `allowed` that
    a rule covers it."""

    text: str
    why: str
    allowed: bool


class Tested(Struct, frozen=True):
    """What would happen to one call. `kind` is its class, `parts` are a command's simple commands;
    `understood` is false where the command could not be taken apart."""

    tool: str
    subject: str
    verdict: Effect
    kind: str
    reason: str
    by: str
    rule: str
    flag: str
    understood: bool
    parts: tuple[TestedPart, ...] = ()


class Simulated(Struct, frozen=True):
    """One call of a past session, then and now. `then` is what happened to it: allow without a question,
    ask, or deny; `answer` the user's (once, always, no), empty where none was given."""

    session: str
    tool: str
    subject: str
    kind: str
    then: Outcome
    answer: str
    now: Effect
    reason: str

    @property
    def saved(self) -> bool:
        """A question less."""
        return self.then == "ask" and self.now != "ask"

    @property
    def risk(self) -> bool:
        """Nobody was or would be asked any more, though it does more than read; or it was refused."""
        refused = self.then == "deny" or self.answer == "no"
        return self.now == "allow" and (refused or (self.then == "ask" and self.kind != "read"))


class Simulation(Struct, frozen=True):
    """Past sessions under a rule set. `unread` counts calls that could not be judged again."""

    sessions: int
    calls: tuple[Simulated, ...]
    unread: int

    @property
    def questions_then(self) -> int:
        return sum(call.then == "ask" for call in self.calls)

    @property
    def questions_now(self) -> int:
        return sum(call.now == "ask" for call in self.calls)


def rules(config: Config) -> tuple[KeptRule, ...]:
    """All rules that hold here, the strongest first. Raises ConfigError for one that can't be read."""
    kept = KeptRules.of(config)
    registry = builtin()
    found: list[KeptRule] = []
    for effect in EFFECTS:
        for scope in ("user", "project"):
            file = kept.file(scope)
            for text in getattr(file.rules(), effect):
                found.append(_kept(effect, text, scope, str(file.path), registry))
        source = config.source(f"permissions.{effect}")
        for text in getattr(config.settings.permissions, effect):
            found.append(_kept(effect, text, f"settings: {source}", "", registry))
    return tuple(found)


def _kept(effect: Effect, text: str, source: str, path: str, registry: Registry) -> KeptRule:
    return KeptRule(effect, text, source, path, is_known(text, effect, registry))


def is_known(text: str, effect: Effect, registry: Registry | None = None) -> bool:
    """Whether a built-in tool has a name that the rule speaks of. Raises ConfigError for a bad rule."""
    rule = parse_rule(text, effect)
    return any(rule.names(name) for name in (registry or builtin()).names)


def add(config: Config, scope: Scope, effect: Effect, rule: str) -> tuple[bool, Path]:
    """Keep a rule; whether it is new, and in which file. Raises ConfigError for a bad one."""
    file = KeptRules.of(config).file(scope)
    return file.add(effect, rule), file.path


def remove(
    config: Config, scopes: Iterable[Scope], effect: Effect | None, rule: str
) -> tuple[tuple[Effect, Path], ...]:
    """Drop a rule wherever it is kept; what it was, and in which file."""
    kept = KeptRules.of(config)
    found: list[tuple[Effect, Path]] = []
    for scope in scopes:
        file = kept.file(scope)
        if file.path.exists():
            found += [(had, file.path) for had in file.remove(effect, rule)]
    return tuple(found)


def approver(app: "App", trial: Trial, root: Path | None = None) -> Approver:
    """The approver of a session that is opened here, with the trial's rules."""
    config = app.config
    where = root or config.project.root
    settings = config.settings.permissions
    mode = trial.mode or settings.mode
    wanted = RunOptions(sandbox=trial.sandbox or settings.sandbox)
    confinement = confinement_for(config, wanted, app.env, lambda: mode)
    base = RuleSet() if trial.alone else RuleSet(settings.allow, settings.ask, settings.deny)
    return Approver(
        mode=mode,
        allow=(*base.allow, *trial.allow),
        ask=(*base.ask, *trial.ask),
        deny=(*base.deny, *trial.deny),
        saved=_none if trial.alone else KeptRules.of(config),
        sandbox=confinement.level,
        root=where,
        search=app.env.get("PATH", ""),
        locate=lambda path: real_path(path, where),
    )


def _none() -> RuleSet:
    return RuleSet()


class _Call(Struct, frozen=True):
    """A call of a tool that isn't run: the approver reads its arguments."""

    touches: Access

    async def run(self, ctx: ToolContext) -> ToolResult:
        raise NotImplementedError

    def access(self) -> Access:
        return self.touches

    def preview(self, ctx: ToolContext) -> View:
        return View(title="")


def judge(app: "App", subject: str, trial: Trial, *, tool: str = "execute_command") -> Tested:
    """What would happen to a command, or to a call of `tool` with this path or address. Raises
    UsageError for an unknown tool, ConfigError for a bad rule."""
    registry = builtin()
    call = registry.resolve(ToolCall("000000000", tool, {}))
    kind = registry.get(call.name)
    if kind is None:
        raise UsageError(
            f"There is no tool named {tool}.",
            hint="`croze permissions test --help` shows the form.",
            code="no_tool",
            tool=tool,
        )
    access = kind.doc.access
    name = "command" if access.exec else "url" if access.net else "path"
    call = msgspec.structs.replace(call, args={name: subject})
    return _tested(approver(app, trial), call, _Call(access), access, subject)


def _tested(
    made: Approver, call: ToolCall, bound: BoundTool, access: Access, subject: str
) -> Tested:
    decision: Decision = made.decide(call.name, access, call, bound)
    classified = made.classify(call.name, access, call, bound)
    open_ = {part.text for part in decision.parts if part.why}
    parts = tuple(
        TestedPart(
            text=part.text,
            why=part.why,
            allowed=bool(part.why) and decision.verdict != "deny" and part.text not in open_,
        )
        for part in classified.parts
    )
    return Tested(
        tool=call.name,
        subject=subject,
        verdict=decision.verdict,
        kind=decision.kind,
        reason=decision.reason,
        by=decision.by,
        rule=decision.rule,
        flag=decision.flag,
        understood=bool(parts) or not access.exec,
        parts=parts,
    )


async def simulate(app: "App", sessions: Sequence[str], trial: Trial) -> Simulation:
    """Judge the calls of past sessions again, by these rules; without ids those of the current one.
    Nothing is run. Raises ConversationNotFound, UsageError, ConfigError."""
    names: list[str | None] = list(sessions) or [None]
    found: list[Simulated] = []
    unread = 0
    for name in names:
        session = await chosen(app, name)
        events = await app.store.read(session)
        made = approver(app, trial, await root_of(app, session, events))
        calls, lost = _judged(session, events, made)
        found += calls
        unread += lost
    return Simulation(len(names), tuple(found), unread)


def _judged(session: str, events: Sequence[Event], made: Approver) -> tuple[list[Simulated], int]:
    registry = builtin()
    asked: dict[str, Asked] = {}
    answers: dict[str, Answered] = {}
    returned: dict[str, ToolReturned] = {}
    calls: list[ToolCall] = []
    for event in events:
        match event.body:
            case ModelSaid(purpose="main") as body:
                calls += [part for part in body.parts if isinstance(part, ToolCall)]
            case Asked(kind="approval") as body:
                asked[body.call_id] = body
            case Answered() as body:
                answers[body.ask_id] = body
            case ToolReturned() as body:
                returned[body.call_id] = body
            case _:
                pass
    found: list[Simulated] = []
    unread = 0
    for written in calls:
        result = returned.get(written.id)
        if result is None or result.code in _NEVER_JUDGED:
            continue
        call = registry.resolve(written)
        kind = registry.get(call.name)
        try:
            if kind is None:
                raise msgspec.ValidationError(call.name)
            bound = kind.bind(call.args)
        except msgspec.ValidationError:
            unread += 1
            continue
        decision = made.decide(call.name, bound.access(), call, bound)
        question = asked.get(written.id)
        answer = answers.get(question.ask_id) if question is not None else None
        found.append(
            Simulated(
                session=session,
                tool=call.name,
                subject=_subject(call),
                kind=decision.kind,
                then=_then(question, result),
                answer=answer.answer if answer is not None and answer.by == "user" else "",
                now=decision.verdict,
                reason=decision.reason,
            )
        )
    return found, unread


_NEVER_JUDGED = frozenset(
    ["invalid_arguments", "unknown_tool", "not_run", "unavailable", "ambiguous_body", "malformed"]
)


def _then(question: Asked | None, result: ToolReturned) -> Outcome:
    if question is not None:
        return "ask"
    return "deny" if result.code == "not_allowed" else "allow"


def _subject(call: ToolCall) -> str:
    for name in ("command", "path", "target_file", "url", "source"):
        value = call.args.get(name)
        if isinstance(value, str) and value:
            return value
    return ""
