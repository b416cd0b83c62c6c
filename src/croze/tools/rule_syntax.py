"""Approval rules as people write them: `tool`, `tool(pattern)`, and where they hold: `tool(pattern) @workspace`.

Names of other agents' tools stand for ours (`Bash(npm test)`, `Edit(src/**)`, `WebFetch(domain:x.org)`).
"""

import re
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from croze.tools.aliases import rule_tools
from croze.tools.command_rules import prefix_of
from croze.types.agent import Sandbox
from croze.types.errors import ConfigError

Effect = Literal["allow", "ask", "deny"]

_RULE = re.compile(
    r"(?P<name>[\w.*:\-]+)\s*(?:\((?P<pattern>.+)\))?(?:\s+@(?P<sandbox>[a-z-]+))?\s*\Z", re.DOTALL
)
_SANDBOXES: tuple[Sandbox, ...] = ("read-only", "workspace", "off")
"""From the tightest to none."""


class Rule(Struct, frozen=True):
    """One rule. `text` is as the user wrote it; `tools` are tags, one ending in `*` stands for all that
    begin so, `mcp__server` for all of that server; an empty `pattern` covers every call of them; `sandbox` is where it was given."""

    effect: Effect
    text: str
    tools: tuple[str, ...]
    pattern: str = ""
    sandbox: Sandbox | None = None

    def names(self, tool: str) -> bool:
        """Whether the rule speaks of the tool."""
        return any(
            tool == each
            or (each.endswith("*") and tool.startswith(each[:-1]))
            or (each.startswith("mcp__") and tool.startswith(f"{each}__"))
            for each in self.tools
        )

    def holds_in(self, sandbox: Sandbox) -> bool:
        """What was allowed in one sandbox is allowed in a tighter one; what was forbidden in one is
        forbidden in a looser one."""
        if self.sandbox is None:
            return True
        given, now = _SANDBOXES.index(self.sandbox), _SANDBOXES.index(sandbox)
        return now <= given if self.effect == "allow" else now >= given


class RuleSet(Struct, frozen=True, forbid_unknown_fields=True):
    """Rules as texts, as they are kept in files."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def parsed(self) -> tuple[Rule, ...]:
        """The rules, the strongest effect first. Raises ConfigError for one that can't be read."""
        texts: tuple[tuple[Effect, tuple[str, ...]], ...] = (
            ("deny", self.deny),
            ("ask", self.ask),
            ("allow", self.allow),
        )
        return tuple(parse_rule(text, effect) for effect, each in texts for text in each)


@lru_cache(maxsize=1024)
def parse_rule(text: str, effect: Effect) -> Rule:
    """Read one rule. Raises ConfigError that shows the form."""
    _, plain = split_effect(text) if text.startswith(f"{effect} ") else (effect, text.strip())
    found = _RULE.match(plain)
    pattern = (found["pattern"] or "").strip() if found else ""
    name = found["name"] if found else ""
    if not found or "*" in name[:-1] or pattern.startswith(("!", "#")):
        raise _bad_rule(text, effect, "it has to be a tool's name, or a name with a pattern in ( )")
    written: str | None = found["sandbox"]
    sandbox = next((each for each in _SANDBOXES if each == written), None)
    if sandbox != written:
        raise _bad_rule(text, effect, "after @ stands read-only, workspace or off")
    tools = rule_tools(name, forbidding=effect != "allow")
    if tools == ("execute_command",) and "*" in pattern and not pattern.startswith("="):
        prefix = prefix_of(pattern)
        if prefix is None or any("*" in word for word in prefix):
            raise _bad_rule(
                text,
                effect,
                "in a command * may only stand at the end, as in npm test:*, or the pattern begins with =",
            )
    return Rule(
        effect=effect,
        text=plain,
        tools=tools,
        pattern="" if pattern == "*" else pattern,
        sandbox=sandbox,
    )


def split_effect(rule: str) -> tuple[Effect, str]:
    """`deny X` as its effect and the rule; a rule alone allows."""
    first, _, rest = rule.strip().partition(" ")
    effects: tuple[Effect, ...] = ("allow", "ask", "deny")
    for effect in effects:
        if rest and first == effect:
            return effect, rest.strip()
    return "allow", rule.strip()


def _bad_rule(text: str, effect: Effect, why: str) -> ConfigError:
    return ConfigError(
        f"The rule «{effect} {text}» can't be read: {why}.",
        hint="For example: execute_command(npm test:*), write_to_file(src/**), web_crawl(domain:x.org).",
        code="bad_rule",
        rule=text,
    )
