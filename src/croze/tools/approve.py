"""May a call run: at once, after asking the user, or not at all.

The mode decides first, then rules: `tool` or `tool(pattern)`, where deny beats ask beats allow. Names of
other agents' tools stand for ours (`Bash(npm test)`, `Edit(src/**)`). No rule lifts `plan`.
"""

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from croze.tools.aliases import rule_tools
from croze.tools.base import BoundTool
from croze.tools.command_rules import always_pattern, is_allowed_by, is_touched_by, prefix_of
from croze.types.agent import Mode
from croze.types.errors import ConfigError
from croze.types.parts import ToolCall
from croze.types.tool import Access

Effect = Literal["allow", "ask", "deny"]

_RULE = re.compile(r"(?P<name>[\w.*:\-]+)\s*(?:\((?P<pattern>.+)\))?\Z", re.DOTALL)
_PATHS = ("path", "target_file", "source", "destination", "paths")
_HOST = re.compile(r"[a-z0-9.\-]+\Z")
_GLOB = re.compile(r"([\\*?\[\]!#])")


class Rule(Struct, frozen=True):
    """One rule. `text` is as the user wrote it; `tools` are tags, one ending in `*` stands for all that
    begin so; an empty `pattern` covers every call of them."""

    effect: Effect
    text: str
    tools: tuple[str, ...]
    pattern: str = ""


class Decision(Struct, frozen=True):
    """`rule` is what "always" would add (empty: not offered); `flag` is the command line's way to allow
    the call (empty: there is none). `by` says what decided."""

    verdict: Effect
    reason: str
    rule: str = ""
    flag: str = ""
    by: Literal["rule", "mode"] = "mode"


@dataclass(frozen=True, slots=True, kw_only=True)
class Approver:
    """The mode and the rules of a session; a value: a new rule gives a new approver.

    `locate` gives the workspace-relative real path of a path that a call names, None where it leads
    out; by default the path itself, tidied. Raises ConfigError for a rule that can't be read.
    """

    mode: Mode = "ask"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    locate: Callable[[str], str | None] | None = None
    rules: tuple[Rule, ...] = field(init=False)

    def __post_init__(self) -> None:
        texts: tuple[tuple[Effect, tuple[str, ...]], ...] = (
            ("deny", self.deny),
            ("ask", self.ask),
            ("allow", self.allow),
        )
        rules = tuple(parse_rule(text, effect) for effect, each in texts for text in each)
        object.__setattr__(self, "rules", rules)

    def with_rule(self, rule: str) -> "Approver":
        """This approver with one more rule: `allow X`, `ask X`, `deny X`, or X alone for allow."""
        effect, text = _split_effect(rule)
        if effect == "deny":
            return replace(self, deny=(*self.deny, text))
        if effect == "ask":
            return replace(self, ask=(*self.ask, text))
        return replace(self, allow=(*self.allow, text))

    def decide(self, name: str, access: Access, call: ToolCall, bound: BoundTool) -> Decision:
        """Decide on a call of the tool `name` (its tag) whose arguments are checked."""
        subject = _Subject(name, access, call, bound, self.locate)
        if self.mode == "plan" and not access.read_only:
            return Decision(
                "deny",
                "plan mode only reads; the user has to leave it before anything is changed or run",
                flag="--mode ask",
            )
        always, flag = subject.always_rule(), subject.flag()
        found: dict[Effect, Rule] = {}
        for rule in self.rules:
            if rule.effect not in found and subject.matches(rule):
                found[rule.effect] = rule
        if rule_ := found.get("deny"):
            return Decision("deny", f"the rule «deny {rule_.text}» forbids it", by="rule")
        if rule_ := found.get("ask"):
            reason = f"the rule «ask {rule_.text}» wants a question"
            return Decision("ask", reason, flag="", by="rule")
        if access.read_only or self.mode == "full":
            return Decision("allow", f"mode {self.mode}")
        rule_ = found.get("allow")
        if rule_ and not (subject.wants_approval and rule_.pattern != subject.command):
            return Decision("allow", f"the rule «allow {rule_.text}»", by="rule")
        if rule_:
            return Decision("ask", "the model asks for your approval", always, flag)
        if self.mode == "auto-edit" and not (access.exec or access.net):
            return Decision("allow", "mode auto-edit")
        return Decision("ask", _needs(access), always, flag)


class _Subject:
    """A call as rules see it."""

    def __init__(
        self,
        name: str,
        access: Access,
        call: ToolCall,
        bound: BoundTool,
        locate: Callable[[str], str | None] | None,
    ) -> None:
        def value(field_name: str) -> object:
            return getattr(bound, field_name, call.args.get(field_name))

        command, url = value("command"), value("url")
        self.name = name
        self.access = access
        self.command = command.strip() if access.exec and isinstance(command, str) else None
        self.url = url if isinstance(url, str) else ""
        self.wants_approval = value("requires_approval") is True
        self.paths = tuple(_strings(value(each) for each in _PATHS))
        self._locate = locate or (lambda path: path)

    def matches(self, rule: Rule) -> bool:
        named = any(
            self.name == tool or (tool.endswith("*") and self.name.startswith(tool[:-1]))
            for tool in rule.tools
        )
        if not named or not rule.pattern:
            return named
        narrow = rule.effect == "allow"
        if self.command is not None:
            match = is_allowed_by if narrow else is_touched_by
            return match(rule.pattern, self.command)
        if rule.pattern.startswith("domain:"):
            return self._is_of_domain(rule.pattern.removeprefix("domain:"), narrow=narrow)
        return self._path_matches(rule.pattern, narrow=narrow)

    def _path_matches(self, pattern: str, *, narrow: bool) -> bool:
        """An allow rule has to cover every path, as written and as it really lies; others any."""
        from pathspec import GitIgnoreSpec  # only where a rule has a path

        spec = GitIgnoreSpec.from_lines([pattern])
        if not narrow:
            low = GitIgnoreSpec.from_lines([pattern.casefold()])
            tidied = (_tidy(each) for path in self.paths for each in (path, self._locate(path)))
            return any(
                path is not None and (spec.match_file(path) or low.match_file(path.casefold()))
                for path in tidied
            )
        if not self.paths:
            return False
        for path in self.paths:
            here, real = _tidy(path), _tidy(self._locate(path))
            if real is None or real.startswith("/") or not spec.match_file(real):
                return False
            if here is None or "\\" in path:
                return False
            if not here.startswith("/") and not spec.match_file(here):
                return False
        return True

    def _is_of_domain(self, domain: str, *, narrow: bool) -> bool:
        try:
            host = urlsplit(self.url.strip()).hostname or ""
        except ValueError:
            return not narrow
        if not _HOST.match(host):
            return not narrow
        domain = domain.strip().lower().removeprefix("*.")
        return host == domain or host.endswith("." + domain)

    def always_rule(self) -> str:
        """The rule for "always": a command's prefix or a file's folder; none for what reaches out."""
        if self.command is not None:
            pattern = always_pattern(self.command)
            return f"{self.name}({pattern})" if pattern else ""
        if self.access.exec or self.access.net or len(self.paths) != 1:
            return ""
        path = _tidy(self._locate(self.paths[0]))
        if path is None or path.startswith("/"):
            return ""
        folder = posixpath.dirname(path)
        literal = _GLOB.sub(r"\\\1", folder or path)
        return f"{self.name}(/{literal}/**)" if folder else f"{self.name}(/{literal})"

    def flag(self) -> str:
        if self.command is not None:
            exact = self.command if prefix_of(self.command) is None and self.command else ""
            pattern = always_pattern(self.command) or (exact if "\n" not in exact else "")
            rule = f"{self.name}({pattern})" if pattern else self.name
            return f"--allow {shlex.quote(rule)}"
        if self.access.exec or self.access.net:
            return f"--allow {self.name}"
        return "--mode auto-edit"


def parse_rule(text: str, effect: Effect) -> Rule:
    """Read one rule. Raises ConfigError that shows the form."""
    _, plain = _split_effect(text) if text.startswith(f"{effect} ") else (effect, text.strip())
    found = _RULE.match(plain)
    pattern = (found["pattern"] or "").strip() if found else ""
    name = found["name"] if found else ""
    if not found or "*" in name[:-1] or pattern.startswith(("!", "#")):
        raise _bad_rule(text, effect, "it has to be a tool's name, or a name with a pattern in ( )")
    tools = rule_tools(name)
    if tools == ("execute_command",) and "*" in pattern:
        prefix = prefix_of(pattern)
        if prefix is None or any("*" in word for word in prefix):
            raise _bad_rule(
                text, effect, "in a command * may only stand at the end, as in npm test:*"
            )
    return Rule(effect=effect, text=plain, tools=tools, pattern="" if pattern == "*" else pattern)


def _bad_rule(text: str, effect: Effect, why: str) -> ConfigError:
    return ConfigError(
        f"The rule «{effect} {text}» can't be read: {why}.",
        hint="For example: execute_command(npm test:*), write_to_file(src/**), web_crawl(domain:x.org).",
        code="bad_rule",
        rule=text,
    )


def _split_effect(rule: str) -> tuple[Effect, str]:
    first, _, rest = rule.strip().partition(" ")
    if rest and first in ("allow", "ask", "deny"):
        effect: Effect = first  # type: ignore[assignment]
        return effect, rest.strip()
    return "allow", rule.strip()


def _tidy(path: str | None) -> str | None:
    """The path as globs see it; None where it leads out of the workspace."""
    if path is None or "\0" in path:
        return None
    tidied = posixpath.normpath(path.replace("\\", "/"))
    return None if tidied == ".." or tidied.startswith("../") else tidied


def _strings(values: Iterable[object]) -> Iterable[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            yield from (item for item in value if isinstance(item, str))


def _needs(access: Access) -> str:
    parts = [
        what
        for what, wanted in (
            ("changes files", access.write),
            ("runs a command", access.exec),
            ("uses the network", access.net),
        )
        if wanted
    ]
    return f"it {' and '.join(parts)}"
