"""A call as approval rules see it: its tool, its paths, its address, or its command taken apart."""

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from croze.tools.base import BoundTool
from croze.tools.command_rules import (
    always_pattern,
    exact_pattern,
    is_allowed_by,
    is_exactly,
    is_touched_by,
)
from croze.tools.rule_syntax import Rule
from croze.types.agent import Sandbox
from croze.types.parts import ToolCall
from croze.types.tool import Access
from croze.workspace.sensitive import is_sensitive

if TYPE_CHECKING:
    from croze.tools.classify import Classified, Kind, Part
    from croze.tools.trusted_path import Place

_PATHS = ("path", "target_file", "source", "destination", "paths")
_COMMANDS = "execute_command"
TERMINAL = "terminal:"
"""Begins the pattern of a rule that is for one live terminal."""
_HOST = re.compile(r"[a-z0-9.\-]+\Z")
_GLOB = re.compile(r"([\\*?\[\]!#])")


class Subject:
    """One call. A command is classed once, when it is first asked about."""

    def __init__(
        self, name: str, access: Access, call: ToolCall, bound: BoundTool, place: "Place"
    ) -> None:
        def value(field_name: str) -> object:
            return getattr(bound, field_name, call.args.get(field_name))

        command, url = value("command"), value("url")
        self.name = name
        self.access = access
        self.command = command.strip() if access.exec and isinstance(command, str) else None
        self.url = url if isinstance(url, str) else ""
        self.grant: str = getattr(bound, "grant", "")
        """Names the live terminal that is typed into; what an answer "always" is for."""
        self.unconfined: bool = getattr(bound, "unconfined", False)
        """Whether no sandbox holds what the call does."""
        self._rule: str = getattr(bound, "rule", "") if self.unconfined else ""
        self._typed: str = getattr(bound, "input", "") if self.grant else ""
        self.wants_approval = value("requires_approval") is True
        self.paths = tuple(_strings(value(each) for each in _PATHS))
        self._place = place
        self._classified: Classified | None = None

    @property
    def classified(self) -> "Classified":
        """The command's class and parts; of a call without one, an empty one."""
        if self._classified is None:
            from croze.tools.classify import Classified, classify  # only where there is a command

            if self.command is None:
                self._classified = Classified(self.kind)
            else:
                self._classified = classify(self.command, self._place)
        return self._classified

    @property
    def parts(self) -> "tuple[Part, ...]":
        """The command's simple commands; none of any other call, or where it was not understood."""
        return () if self.command is None else self.classified.parts

    @property
    def kind(self) -> "Kind":
        """What the call does to the world."""
        if self.command is not None:
            return self.classified.kind
        if self.access.net:
            return "network"
        if self.access.exec:
            return "execute"
        return "write" if self.access.write else "read"

    def sensitive_path(self) -> str:
        """The first path that may hold secrets, empty where none does."""
        for path in self.paths:
            real = self._place.locate(path)
            if is_sensitive(path) or (real is not None and is_sensitive(real)):
                return path
        return ""

    def matches(self, rule: Rule) -> bool:
        """Whether the rule covers the whole call (to allow it), or touches any of it. What may not be read
        by a tool may not be read by a command either, as far as it names it."""
        if self.command is not None and rule.effect != "allow" and rule.pattern:
            paths = [path for part in self.parts for path in part.paths]
            if rule.names("read_file") and _touches(rule.pattern, paths):
                return True
        if rule.effect != "allow" and self._is_forbidden_command(rule):
            return True
        named = rule.names(self.name) or bool(self._rule and rule.names(self._rule))
        if not named or not rule.pattern:
            return named
        if self.grant:
            return rule.pattern == self.grant
        if self.command is not None:
            if rule.effect == "allow":
                return is_exactly(rule.pattern, self.command)
            words = [part.argv for part in self.classified.parts]
            return is_touched_by(rule.pattern, self.command, words)
        if rule.pattern.startswith("domain:"):
            domain = rule.pattern.removeprefix("domain:")
            return self._is_of_domain(domain, narrow=rule.effect == "allow")
        return self._path_matches(rule.pattern, narrow=rule.effect == "allow")

    def _is_forbidden_command(self, rule: Rule) -> bool:
        """What may not be run as a command may not be run on a terminal, nor be typed there, as far as
        it can be seen in what is typed."""
        if self.name == _COMMANDS or not rule.names(_COMMANDS):
            return False
        if self.command is not None:
            words = [part.argv for part in self.classified.parts]
            return not rule.pattern or is_touched_by(rule.pattern, self.command, words)
        if not self.grant or not self._typed.strip():
            return False
        from croze.tools.classify import classify

        words = [part.argv for part in classify(self._typed, self._place).parts]
        return not rule.pattern or is_touched_by(rule.pattern, self._typed, words)

    def uncovered(self, rules: Iterable[Rule]) -> "list[Part]":
        """The parts of a command that neither only read nor are covered by one of these allow rules."""
        patterns = [rule.pattern for rule in rules if rule.pattern and rule.names(self.name)]
        return [
            part
            for part in self.classified.parts
            if part.why and not any(is_allowed_by(each, part.argv, part.text) for each in patterns)
        ]

    def _path_matches(self, pattern: str, *, narrow: bool) -> bool:
        """An allow rule has to cover every path, as written and as it really lies; others any."""
        if not narrow:
            places = (each for path in self.paths for each in (path, self._place.locate(path)))
            return _touches(pattern, places)
        from pathspec import GitIgnoreSpec  # only where a rule has a path

        spec = GitIgnoreSpec.from_lines([pattern])
        if not self.paths:
            return False
        for path in self.paths:
            here, real = tidy(path), tidy(self._place.locate(path))
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
        if not _HOST.match(host) or "\\" in self.url:
            return not narrow
        domain = domain.strip().lower().removeprefix("*.")
        return host == domain or host.endswith("." + domain)

    def always_rule(self, uncovered: "list[Part]", sandbox: Sandbox) -> str:
        """The rule for "always": the prefix of the one command that needs it, or a file's folder; none
        where several need one, and none for what reaches out, runs others or may hold secrets."""
        if self.command is not None:
            parts = {part.argv: part for part in uncovered or self.classified.parts}
            if len(parts) != 1:
                return ""
            (part,) = parts.values()
            pattern = "" if part.kind == "network" else always_pattern(part.argv)
            if pattern and self.wants_approval:
                pattern = exact_pattern(self.command)
            where = "" if sandbox == "off" else f" @{sandbox}"
            return f"{self.name}({pattern}){where}" if pattern else ""
        if self.grant:
            return f"{self.name}({self.grant})"
        if self._rule:
            return self._rule
        if self.access.exec or self.access.net or len(self.paths) != 1 or self.sensitive_path():
            return ""
        path = tidy(self._place.locate(self.paths[0]))
        if path is None or path.startswith("/"):
            return ""
        folder = posixpath.dirname(path)
        literal = _GLOB.sub(r"\\\1", folder or path)
        return f"{self.name}(/{literal}/**)" if folder else f"{self.name}(/{literal})"

    def flag(self, uncovered: "list[Part]") -> str:
        """What on the command line would have allowed this very call, quoted for a shell."""
        if self.command is not None:
            parts = uncovered or self.classified.parts
            texts = [always_pattern(part.argv) or exact_pattern(part.text) for part in parts]
            if not parts or self.wants_approval:
                texts = [exact_pattern(self.command)]
            patterns = dict.fromkeys(text for text in texts if text)
            return " ".join(f"--allow {_quoted(f'{self.name}({each})')}" for each in patterns)
        if self.kind == "read" and len(self.paths) == 1:
            return f"--allow {_quoted(f'{self.name}(/{_GLOB.sub(_ESCAPED, self.paths[0])})')}"
        if self.access.exec or self.access.net or self.access.read_only:
            return f"--allow {self._rule or self.name}"
        return "--mode auto-edit"


_ESCAPED = r"\\\1"


def _quoted(text: str) -> str:
    """`text` as one word of a shell, on one line and without two blanks in a row, whatever is in it."""
    if text.isprintable() and "  " not in text:
        return shlex.quote(text)
    return "$'" + "".join(_escapes(text)) + "'"


def _escapes(text: str) -> Iterator[str]:
    before = ""
    for char in text:
        if char in "\\'":
            yield f"\\{char}"
        elif char == "\n":
            yield "\\n"
        elif (char == " " and before == " ") or not char.isprintable():
            yield "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
        else:
            yield char
        before = char


def _touches(pattern: str, paths: Iterable[str | None]) -> bool:
    """Whether a deny or ask rule's glob matches any of the paths, in whatever case they are written."""
    from pathspec import GitIgnoreSpec  # only where a rule has a path

    spec = GitIgnoreSpec.from_lines([pattern])
    low = GitIgnoreSpec.from_lines([pattern.casefold()])
    return any(
        path is not None and (spec.match_file(path) or low.match_file(path.casefold()))
        for path in map(tidy, paths)
    )


def tidy(path: str | None) -> str | None:
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
