"""Skills: folders with a SKILL.md, whose front matter says what they are for and whose body how to do it.

The format is that of agentskills.io: name and description, and if need be license, compatibility, metadata
and allowed-tools. What is there is told by name and description; the body and the other files are read when
they are needed.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from croze.knowledge.find import UNTRUSTED, Finder, Found, overridden
from croze.knowledge.kept import Kept
from croze.knowledge.kinds import SKILLS
from croze.text.regex import Regex
from croze.text.tokens import estimate

if TYPE_CHECKING:
    from croze.knowledge.front_matter import FrontMatter

MOST_DESCRIPTION = 1_024
MOST_NAME = 64
MOST_COMPATIBILITY = 500
MOST_FILES = 200
"""Files of a skill that are told."""
_DEPTH = 5
_NAME = Regex(r"[^\W_]+(?:-[^\W_]+)*")
_RULE = Regex(r"[^\s,()]+(?:\([^()]*\))?")
_KEYS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
_SILENT = {"version", "author", "tags", "model", "color", "icon", "user-invocable", "argument-hint"}


class Card(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a skill's front matter says. `broken` says why it is none, `doubt` what is wrong with it
    otherwise."""

    name: str = ""
    description: str = ""
    license: str = ""
    compatibility: str = ""
    allowed_tools: tuple[str, ...] = ()
    doubt: str = ""
    broken: str = ""

    @property
    def line(self) -> str:
        """How it is told that there is such a skill."""
        return f"- {self.name}: {self.description}"


class Skill(Struct, frozen=True, kw_only=True):
    """One skill. `folder` is where its files lie, absolute and free of links."""

    found: Found
    card: Card
    folder: Path

    @property
    def name(self) -> str:
        return self.found.name


class Skills:
    """The skills as they are: looked at each time, read where they have changed."""

    def __init__(self, finder: Finder, cache: Path, trusted: Callable[[str], str]) -> None:
        """`trusted` gives the hash of the content that the user trusts of a file of the project: others
        aren't read."""
        self._finder = finder
        self._trusted = trusted
        self._cards = Kept(cache / "skills.json", Card)
        self._known: dict[str, tuple[Found, str, Skill]] = {}

    def look(self) -> list[Skill]:
        """All folders that would be skills, the higher first; `found.state` says which of them count."""
        skills = []
        for found in self._finder.find(SKILLS):
            known = self._known.get(found.path)
            trusted = self._trusted(found.path) if found.source == "project" else ""
            if known is None or known[:2] != (found, trusted):
                known = self._known[found.path] = (found, trusted, self._card(found, trusted))
            skills.append(known[2])
        self._cards.save()
        states = overridden(skill.found for skill in skills)
        return [
            msgspec.structs.replace(skill, found=found)
            for skill, found in zip(skills, states, strict=True)
        ]

    def get(self, name: str) -> Skill | None:
        """The skill of this name that counts; else one that would, if it could be used."""
        named = [skill for skill in self.look() if skill.name == name]
        return next((skill for skill in named if skill.found.acts), named[0] if named else None)

    def body(self, skill: Skill) -> tuple[Found, str]:
        """A skill's instructions, as they are now; `found` says whether they may be followed."""
        loaded = self._finder.read(_as_found(skill.found), SKILLS.most)
        return loaded.found, _parse(loaded.text).body.strip() if loaded.found.acts else ""

    def file(self, skill: Skill, path: str) -> tuple[Found, str]:
        """A file of a skill's folder; one that leads out of it is broken."""
        own = os.path.normpath(path) if path.isprintable() else "?"
        at = f"{os.path.dirname(skill.found.path)}/{own}"
        found = Found(kind="skills", name=own, path=at, source=skill.found.source)
        real = os.path.realpath(self._finder.path(found))
        if os.path.isabs(own) or not Path(real).is_relative_to(skill.folder):
            reason = "it leads out of the skill's folder"
            return msgspec.structs.replace(found, state="broken", reason=reason), ""
        loaded = self._finder.read(found, SKILLS.most)
        return loaded.found, loaded.text if loaded.found.acts else ""

    def files(self, skill: Skill) -> list[str]:
        """The other files of a skill's folder, as they lie in it, at most `MOST_FILES`."""
        found = []
        for path in _below(skill.folder, ""):
            if path != SKILLS.inside:
                found.append(path)
            if len(found) == MOST_FILES:
                break
        return sorted(found)

    def _card(self, found: Found, trusted: str) -> Skill:
        folder = Path(os.path.realpath(self._finder.path(found).parent))
        own = found.source != "project"
        if found.acts and not own and not trusted:
            found = msgspec.structs.replace(found, state="untrusted", reason=UNTRUSTED)
        digest = self._cards.digest(found) if found.acts and own else ""
        if digest:  # it was read before, and nobody's trust is needed
            found = msgspec.structs.replace(found, sha256=digest)
            card = self._cards.get(found)
            if card is not None:
                return _skill(found, card, folder)
        loaded = self._finder.read(found, SKILLS.most)
        found, text = loaded.found, loaded.text
        if not found.acts:
            return Skill(found=found, card=Card(), folder=folder)
        card = self._cards.get(found)
        if card is None:
            card = card_of(text, found.name)
            self._cards.put(found, card)
        if own:
            self._cards.remember(found)
        return _skill(found, card, folder)


def _skill(found: Found, card: Card, folder: Path) -> Skill:
    found = msgspec.structs.replace(
        found,
        name=card.name or found.name,
        state="broken" if card.broken else "loaded",
        reason=card.broken or card.doubt,
        tokens=0 if card.broken else estimate(card.line),
    )
    return Skill(found=found, card=card, folder=folder)


def _as_found(found: Found) -> Found:
    """The finding before it was read."""
    return msgspec.structs.replace(found, state="loaded", reason="")


def card_of(text: str, folder: str) -> Card:
    """What the SKILL.md of a folder of this name says."""
    matter = _parse(text)
    try:
        if matter.problem:
            raise ValueError(matter.problem)
        if not matter.present:
            raise ValueError("it has no front matter with a description")
        return _card_of(matter, folder)
    except ValueError as error:
        return Card(broken=str(error))


def _card_of(matter: "FrontMatter", folder: str) -> Card:
    description = " ".join(matter.text("description").split())
    if not description:
        raise ValueError("it has no description")
    doubts = []
    name = matter.text("name")
    if not name or not _is_name(name):
        if name:
            doubts.append(
                f"{name[:80]!r} is no name for a skill: small letters, digits and single hyphens, at most 64"
            )
        else:
            doubts.append("it has no name")
        name = folder
    elif name != folder:
        doubts.append(f"its name is not its folder's, {folder[:80]}")
    if not name.isprintable():
        raise ValueError("its folder's name can't be shown")
    if len(description) > MOST_DESCRIPTION:
        doubts.append(f"its description has more than {MOST_DESCRIPTION:,} characters")
        description = f"{description[: MOST_DESCRIPTION - 1]}…"
    compatibility = " ".join(_soft(matter, "compatibility").split())
    if len(compatibility) > MOST_COMPATIBILITY:
        doubts.append(f"its compatibility has more than {MOST_COMPATIBILITY:,} characters")
        compatibility = f"{compatibility[: MOST_COMPATIBILITY - 1]}…"
    unused = sorted(matter.fields.keys() - _KEYS - _SILENT)
    if unused:
        doubts.append(f"croze does not use {', '.join(unused)[:200]}")
    return Card(
        name=name,
        description=description,
        license=_soft(matter, "license")[:200],
        compatibility=compatibility,
        allowed_tools=_rules(matter.fields.get("allowed-tools", "")),
        doubt="; ".join(doubts),
    )


def _is_name(name: str) -> bool:
    return len(name) <= MOST_NAME and name == name.lower() and bool(_NAME.fullmatch(name))


def _soft(matter: "FrontMatter", name: str) -> str:
    """A text that nothing depends on; empty where it is none."""
    value = matter.fields.get(name, "")
    return value.strip() if isinstance(value, str) else ""


def _rules(value: object) -> tuple[str, ...]:
    """The tools that a skill would like to use freely: a list, or text with blanks or commas between."""
    texts: Sequence[object] = value if isinstance(value, list) else [value]
    found = (each for text in texts if isinstance(text, str) for each in _RULE.findall(text))
    return tuple(dict.fromkeys(found))[:100]


def _below(folder: Path, inside: str, depth: int = 0) -> Iterator[str]:
    """The files of a folder, links not followed, as far as it is worth looking."""
    try:
        with os.scandir(folder / inside) as entries:
            names = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in names[: MOST_FILES + 1]:
        if entry.name.startswith((".", "__pycache__")):
            continue
        path = f"{inside}/{entry.name}" if inside else entry.name
        if entry.is_file():
            yield path
        elif depth < _DEPTH and entry.is_dir(follow_symlinks=False):
            yield from _below(folder, path, depth + 1)


def _parse(text: str) -> "FrontMatter":
    from croze.knowledge.front_matter import parse  # YAML, and only where a skill is read

    return parse(text)
