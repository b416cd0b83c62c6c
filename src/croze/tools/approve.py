"""May a call run: at once, after asking the user, or not at all.

A call is classed (read, write, execute, network); then mode and rules decide, where deny beats ask beats
allow and no rule lifts `plan`. What is answered is a value: the same for a terminal, a run without a
user, programs and other front ends.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from croze.tools.base import BoundTool
from croze.tools.rule_syntax import Effect, Rule, RuleSet, split_effect
from croze.tools.subject import Subject
from croze.tools.trusted_path import Place
from croze.types.agent import Mode, Sandbox
from croze.types.errors import ConfigError
from croze.types.event import AskedPart
from croze.types.parts import ToolCall
from croze.types.tool import Access

if TYPE_CHECKING:
    from croze.tools.classify import Classified, Part

NO_SANDBOX = "there is no sandbox here, so every command is asked about"
UNCONFINED = "it runs outside of the sandbox"
OUTSIDE = f"{UNCONFINED}, and the mode full never asks"
Kind = Literal["read", "write", "execute", "network"]
_NEEDS: dict[Kind, str] = {
    "read": "it reads",
    "write": "it changes files",
    "execute": "it runs a command",
    "network": "it uses the network",
}


class Decision(Struct, frozen=True):
    """`rule` is what "always" would add (empty: not offered); `flag` is the command line's way to allow
    the call (empty: there is none). `by` says what decided, `kind` is the call's class, `parts` are the
    simple commands with what they need an answer for."""

    verdict: Effect
    reason: str
    rule: str = ""
    flag: str = ""
    by: Literal["rule", "mode"] = "mode"
    kind: Kind = "execute"
    parts: tuple[AskedPart, ...] = ()


def _no_rules() -> RuleSet:
    return RuleSet()


def _unconfined() -> Sandbox | None:
    return "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Approver:
    """The mode and the rules of a session; a value: a new rule gives a new approver.

    `saved` gives the rules that are kept for the user and the project, as they stand at each decision.
    `sandbox` gives what commands run in now, None where there is none though none was waived. `root` is the
    workspace (by default there is none), `search` its commands' PATH, and `locate` gives the workspace-relative real path of a path
    that a call names, None where it leads out; by default the path itself. Raises ConfigError for a rule
    that can't be read.
    """

    mode: Mode = "ask"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    saved: Callable[[], RuleSet] = _no_rules
    sandbox: Callable[[], Sandbox | None] = _unconfined
    root: Path = Path(os.devnull)
    search: str = "/usr/local/bin:/usr/bin:/bin"
    locate: Callable[[str], str | None] | None = None
    rules: tuple[Rule, ...] = field(init=False)

    def __post_init__(self) -> None:
        rules = RuleSet(allow=self.allow, ask=self.ask, deny=self.deny).parsed()
        object.__setattr__(self, "rules", rules)

    def with_rule(self, rule: str) -> "Approver":
        """This approver with one more rule: `allow X`, `ask X`, `deny X`, or X alone for allow."""
        effect, text = split_effect(rule)
        if effect == "deny":
            return replace(self, deny=(*self.deny, text))
        if effect == "ask":
            return replace(self, ask=(*self.ask, text))
        return replace(self, allow=(*self.allow, text))

    def decide(self, name: str, access: Access, call: ToolCall, bound: BoundTool) -> Decision:
        """Decide on a call of the tool `name` (its tag) whose arguments are checked."""
        subject = self._subject(name, access, call, bound)
        try:
            rules = [*self.rules, *self.saved().parsed()]
        except ConfigError as error:  # what was forbidden there is not known
            return Decision("deny", f"{error.message} ({error.hint})", kind=subject.kind)
        sandbox = self.sandbox() or "off"
        return self._decide(subject, [rule for rule in rules if rule.holds_in(sandbox)])

    def classify(self, name: str, access: Access, call: ToolCall, bound: BoundTool) -> "Classified":
        """The class of a call and, of a command, its parts: each with why it isn't free by itself."""
        return self._subject(name, access, call, bound).classified

    def _subject(self, name: str, access: Access, call: ToolCall, bound: BoundTool) -> Subject:
        locate = self.locate or _as_written
        place = Place(root=self.root, search=self.search, locate=locate)
        return Subject(name, access, call, bound, place)

    def _decide(self, subject: Subject, rules: list[Rule]) -> Decision:
        kind = subject.kind
        if rule := _first("deny", rules, subject):
            reason = f"the rule «deny {rule.text}» forbids it"
            return Decision("deny", reason, by="rule", kind=kind)
        if self.mode == "plan" and kind != "read":
            reason = (
                "plan mode only reads; the user has to leave it before anything is changed or run"
            )
            return Decision("deny", reason, flag="--mode ask", kind=kind)
        if rule := _first("ask", rules, subject):
            reason = f"the rule «ask {rule.text}» wants a question"
            if self.mode == "full":
                reason = f"{reason}, and the mode full never asks"
                return Decision("deny", reason, flag="--mode ask", by="rule", kind=kind)
            return replaced(subject, Decision("ask", reason, by="rule", kind=kind), [])
        if self.mode == "full":
            leaves = subject.unconfined and self.sandbox() != "off"
            if leaves and not _first("allow", rules, subject):
                return Decision("deny", OUTSIDE, flag=subject.flag([]), kind=kind)
            return Decision("allow", "mode full", kind=kind)
        allows = [rule for rule in rules if rule.effect == "allow"]
        if subject.command is not None:
            return self._decide_command(subject, allows)
        rule = _first("allow", allows, subject)
        if rule and not subject.wants_approval:
            return Decision("allow", f"the rule «allow {rule.text}»", by="rule", kind=kind)
        if subject.wants_approval:
            return self._ask(subject, "the model asks for your approval", [])
        if kind == "read":
            if path := subject.sensitive_path():
                return self._ask(subject, f"it reads {path}, which may hold secrets", [])
            return Decision("allow", "it only reads", kind=kind)
        if self.mode == "auto-edit" and kind == "write":
            return Decision("allow", "mode auto-edit", kind=kind)
        return self._ask(subject, UNCONFINED if subject.unconfined else _NEEDS[kind], [])

    def _decide_command(self, subject: Subject, allows: list[Rule]) -> Decision:
        """A command: each part has to only read or be allowed, or a rule speaks of the whole."""
        found = subject.classified
        whole = _first("allow", allows, subject)
        uncovered = [] if whole else subject.uncovered(allows)
        needed = found.kind != "read" and not whole and bool(uncovered or not found.parts)
        if subject.wants_approval and not (whole and whole.pattern):
            return self._ask(subject, "the model asks for your approval", uncovered)
        if needed:
            from croze.tools.option_rules import GENERAL

            why = uncovered[0].why if uncovered else found.why
            general = why == GENERAL or any(part.kind == "network" for part in uncovered)
            reason = _NEEDS[found.kind] if general else f"it {why}"
            return self._ask(subject, reason, uncovered)
        if whole:
            return Decision("allow", f"the rule «allow {whole.text}»", by="rule", kind=found.kind)
        if found.kind != "read":
            return Decision("allow", "rules allow each part", by="rule", kind=found.kind)
        if self.sandbox() is None:
            return self._ask(subject, NO_SANDBOX, [])
        return Decision("allow", "it only reads", kind="read")

    def _ask(self, subject: Subject, reason: str, uncovered: "list[Part]") -> Decision:
        decision = Decision(
            "ask",
            reason,
            rule=subject.always_rule(uncovered, self.sandbox() or "off"),
            flag=subject.flag(uncovered),
            kind=subject.kind,
        )
        return replaced(subject, decision, uncovered)


def replaced(subject: Subject, decision: Decision, uncovered: "list[Part]") -> Decision:
    """The decision with the command's parts, those that need the answer with their reason."""
    from msgspec.structs import replace as with_fields

    needing = {part.text for part in uncovered}
    parts = tuple(
        AskedPart(text=part.text, why=part.why if part.text in needing else "")
        for part in subject.parts
    )
    return with_fields(decision, parts=parts)


def _first(effect: Effect, rules: list[Rule], subject: Subject) -> Rule | None:
    return next((rule for rule in rules if rule.effect == effect and subject.matches(rule)), None)


def _as_written(path: str) -> str | None:
    return path
