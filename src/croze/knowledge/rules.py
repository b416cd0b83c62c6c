"""Rules: files that say how work is done, when each of them holds, and which give way to others."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec
from msgspec import Struct

from croze.knowledge.find import Finder, Found, Loaded
from croze.knowledge.globs import Globs, read_globs
from croze.knowledge.instructions import (
    LAW,
    ROOT,
    imports,
    nested,
    single,
)
from croze.knowledge.kinds import CURSOR, RULES
from croze.text.display import one_line
from croze.workspace.ignore import EXCLUDED_FOLDERS

if TYPE_CHECKING:
    from croze.workspace.files import Mark

When = Literal["always", "match", "ask"]
INDEX = "index"
_LONGEST = 4_000
_SUMMARY = 200
"""Characters of a description."""
_How = TypeVar("_How")


class Rule(Struct, frozen=True, kw_only=True):
    """One rule file. It holds `always`, where a file that matches `globs` is in play, or where the model
    has asked for it; and only below `folder`, where it has one. `found.state` says whether it is used
    at all; the text of one that is "untrusted" is material. `digest` changes with what is told of it;
    `shown` is its path as models and people see it; `plain` is one without front matter at a known place."""

    found: Found
    when: When = "always"
    text: str = ""
    description: str = ""
    globs: Globs = Globs()
    folder: str = ""
    shown: str = ""
    digest: str = ""
    plain: bool = False

    @property
    def usable(self) -> bool:
        return bool(self.text) and self.found.state in ("loaded", "untrusted")


class RuleFiles:
    """The rule files of a project and its user: found anew each time, read only where they have changed.
    What came out for a file is kept as long as its mark is the same."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._known: dict[str, tuple[Mark, Loaded]] = {}
        self._rules: dict[tuple[str, object], tuple[Loaded, Rule]] = {}
        self._nested: set[str] = set()

    def read(self, folders: Iterable[str] = ()) -> list[Rule]:
        """All of them, the higher first; of AGENTS.md and CLAUDE.md beside those of the root the ones in
        the `folders`, and in those where an earlier call has found some. One that can't be used is among
        them and has no text."""
        found = [*self._finder.find(RULES), *self._finder.find(CURSOR)]
        found.sort(key=lambda each: each.source != "project")  # the project goes before the user
        indexed = {each.folder for each in found if each.acts and each.name == INDEX}
        rules = [
            self._kept(self._loaded(each), each.folder in indexed, read_rule) for each in found
        ]
        plain = [self._kept(self._loaded(each), "", _plain) for each in self._finder.find(ROOT)]
        wanted = {folder for folder in folders if _looked_into(folder)}
        for folder in sorted(wanted | self._nested, key=_by_depth):
            there = self._finder.find(nested(folder))
            (self._nested.add if there else self._nested.discard)(folder)
            plain += [self._kept(self._loaded(each), folder, _plain) for each in there]
        rules += [rule for each in plain for rule in (each, *self._imported(each))]
        return _decided(rules, [self._loaded(each) for each in self._finder.find(LAW)])

    def _loaded(self, found: Found) -> Loaded:
        """A file with its text, from memory where it hasn't changed."""
        if not found.acts:
            return Loaded(found)
        known = self._known.get(found.path)
        if known is None or known[0] != found.mark:
            known = self._known[found.path] = (found.mark, self._finder.read(found))
        return known[1]

    def _kept(self, loaded: Loaded, how: _How, read: Callable[[Loaded, _How], Rule]) -> Rule:
        """What `read` makes of a file, from memory where it is the same."""
        key = (loaded.found.path, how)
        known = self._rules.get(key)
        if known is None or known[0] is not loaded:
            known = self._rules[key] = (loaded, self._finished(read(loaded, how)))
        return known[1]

    def _imported(self, rule: Rule) -> list[Rule]:
        """What a CLAUDE.md imports, as files of their own that hold where it does."""
        if not rule.usable or rule.found.name != "CLAUDE":
            return []

        def take(path: str) -> Loaded | None:
            return next(map(self._loaded, self._finder.find(single(path))), None)

        return [
            self._kept(each, rule.folder, _plain)
            for each in imports(rule.found.path, rule.text, take)
        ]

    def _finished(self, rule: Rule) -> Rule:
        """With its path as it is shown, and its digest."""
        found = rule.found
        if found.state in ("loaded", "untrusted") and not rule.text.strip():
            found = msgspec.structs.replace(found, state="broken", reason="it is empty")
        home = f"{self._finder.places.home}/"
        path = found.path
        shown = f"~/{path.removeprefix(home)}" if path.startswith(home) else path
        shown = one_line(shown, _LONGEST)
        parts = (rule.text, rule.folder, rule.when, *rule.globs.patterns, found.state)
        digest = sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]
        return msgspec.structs.replace(rule, found=found, shown=shown, digest=digest)


def _plain(loaded: Loaded, folder: str) -> Rule:
    """A file that holds as it stands."""
    return Rule(found=loaded.found, text=loaded.text.strip("\n"), folder=folder, plain=True)


def read_rule(loaded: Loaded, in_index: bool = False) -> Rule:
    """What a file with front matter says of itself. Where that is broken, it holds always and whole.
    `in_index`: its folder has an index, so that it is on demand unless it says otherwise."""
    found = loaded.found
    if found.state not in ("loaded", "untrusted"):
        return Rule(found=found)
    from croze.knowledge.front_matter import parse  # only where there is a file

    matter = parse(loaded.text)
    try:
        if matter.problem:
            raise ValueError(matter.problem)
        always = matter.flag("alwaysApply")
        description = matter.text("description")
        globs = read_globs(_texts(matter.fields.get("globs", [])))
    except ValueError as error:
        return Rule(found=_noted(found, f"{error}; it is told whole"), text=loaded.text.strip("\n"))
    text = matter.body.strip("\n")
    when: When = "ask" if matter.present or in_index else "always"
    if always or found.name == INDEX:
        when = "always"
    elif globs.patterns:
        when = "match"
    elif when == "ask" and found.source != "project":
        when = "always"  # read_file doesn't reach it
    if globs.unusable:
        found = _noted(found, f"no file can match {' '.join(globs.unusable)[:200]}")
    return Rule(
        found=found,
        when=when,
        text=text,
        description=one_line(description or _first_line(text), _SUMMARY),
        globs=globs,
    )


def _decided(rules: list[Rule], law: Sequence[Loaded]) -> list[Rule]:
    """Which of them give way: to a higher one of the same name, or to one that is the same file or says the
    same and holds at least as far."""
    names: dict[str, str] = {}
    same: dict[object, list[Rule]] = {}
    for each in law:
        if each.found.acts or each.found.state == "untrusted":
            wide = Rule(found=each.found, shown=each.found.path)
            for key in (each.found.mark[:2], each.found.sha256):
                same.setdefault(key, []).append(wide)
    told = []
    for rule in rules:
        reason = ""
        if rule.usable:
            twin = _wider(rule, same)
            named = not rule.plain and rule.found.name != INDEX
            if twin is not None and twin.found.path == rule.found.path:
                continue  # an import of what is told anyway
            if twin is not None:
                is_file = twin.found.mark[:2] == rule.found.mark[:2]
                what = "it is the same file as" if is_file else "it says the same as"
                reason = f"{what} {twin.shown}"
            elif named and rule.found.name in names:
                reason = f"{names[rule.found.name]} has the same name"
            else:
                if named and rule.found.acts:
                    names[rule.found.name] = rule.shown
                for key in (rule.found.mark[:2], rule.found.sha256):
                    same.setdefault(key, []).append(rule)
        if reason:
            found = msgspec.structs.replace(rule.found, state="shadowed", reason=reason)
            rule = msgspec.structs.replace(rule, found=found, text="")
        told.append(rule)
    return told


def _wider(rule: Rule, same: Mapping[object, Sequence[Rule]]) -> Rule | None:
    for key in (rule.found.mark[:2], rule.found.sha256):
        for other in same.get(key, ()):
            alike = (other.when, other.globs) == (rule.when, rule.globs)
            if (alike or other.when == "always") and below(rule.folder, other.folder):
                return other
    return None


def _looked_into(folder: str) -> bool:
    """The root's own files are told by themselves; those of installed packages speak of other work."""
    return bool(folder) and folder != "." and EXCLUDED_FOLDERS.isdisjoint(folder.split("/"))


def _by_depth(folder: str) -> tuple[int, str]:
    return folder.count("/"), folder


def reach(rule: Rule) -> str:
    """When a usable rule holds, in words; empty where it always does."""
    if not rule.usable:
        return ""
    if rule.when == "ask":
        return "it is listed and read on demand"
    if rule.when == "match":
        return f"it holds once a file matches {' '.join(rule.globs.patterns)[:200]}"
    return f"it holds once something in {rule.folder}/ is looked at" if rule.folder else ""


def below(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it; everything lies in the root, which is empty."""
    return not folder or path == folder or path.startswith(f"{folder}/")


def _texts(value: object) -> list[str]:
    items: list[object] = value if isinstance(value, list) else [value]
    texts = [item for item in items if isinstance(item, str)]
    if len(texts) < len(items):
        raise ValueError("globs must be a list of texts, or text with commas")
    return [text for text in texts if text.strip().lower() not in ("~", "null")]


def _first_line(text: str) -> str:
    for line in text.split("\n"):
        words = line.strip().lstrip("#").strip()
        if words:
            return words
    return ""


def _noted(found: Found, reason: str) -> Found:
    reasons = filter(None, (found.reason, reason))
    return msgspec.structs.replace(found, reason="; ".join(reasons))
