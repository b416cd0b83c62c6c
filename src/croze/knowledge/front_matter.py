"""The front matter of a Markdown file: YAML between two lines of `---`, and the body behind it.

Every value is text, a list or a map of such, as it was written: `yes` and `1.0` stay as they are. Anchors,
aliases and tags are no part of it, so that nothing small unfolds into something large. A plain value that YAML
would take for syntax (`globs: *.py`, `description: Use it so: …`, `tools: *`) is read as it stands.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

MOST_CHARACTERS = 16_000
_MOST_DEPTH = 20
_BEGIN = re.compile(r"\A---[ \t]*(?:\n|\Z)")
_END = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_PLAIN = re.compile(r"^([A-Za-z_][\w-]*):[ \t]+(?![\"'\[{|>#])(\S.*?)[ \t]*$", re.MULTILINE)
_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}
_NOTHING = {"", "~", "null"}


class FrontMatter(Struct, frozen=True):
    """What stands before a file's body. `problem` says why it can't be read; then there are no fields and
    the body is the whole text. `present` is false where the text has none at all."""

    body: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    present: bool = False
    problem: str = ""

    def text(self, name: str) -> str:
        """A value as one text; empty where there is none. Raises ValueError where it is no text."""
        value = self.fields.get(name, "")
        if not isinstance(value, str):
            raise ValueError(f"{name} must be text")
        return "" if value.strip().lower() in _NOTHING else value.strip()

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Raises ValueError where the value is neither yes nor no."""
        value = self.text(name).lower()
        if not value:
            return default
        if value not in _TRUE | _FALSE:
            raise ValueError(f"{name} must be true or false, not {value}")
        return value in _TRUE

    def words(self, name: str) -> tuple[str, ...] | None:
        """A list, or text with commas, as its items; none for an empty one, None where the key is
        absent. Raises ValueError where it is something else."""
        if name not in self.fields:
            return None
        value = self.fields[name]
        items = value if isinstance(value, list) else self.text(name).split(",")
        if not all(isinstance(item, str) for item in items):
            raise ValueError(f"{name} must be a list of texts, or text with commas")
        return tuple(dict.fromkeys(word for item in items if (word := item.strip())))


def parse(text: str) -> FrontMatter:
    """The front matter of a text with LF line ends."""
    begin = _BEGIN.match(text)
    if begin is None:
        return FrontMatter(text)
    end = _END.search(text, begin.end(), begin.end() + MOST_CHARACTERS)
    if end is None:
        long = len(text) > MOST_CHARACTERS and _END.search(text, begin.end())
        problem = (
            f"has more than {MOST_CHARACTERS:,} characters" if long else "is not closed by ---"
        )
        return FrontMatter(text, present=True, problem=f"its front matter {problem}")
    raw = text[begin.end() : end.start()]
    try:
        fields = _fields(raw)
    except ValueError as error:
        try:
            fields = _fields(_PLAIN.sub(_quoted, raw))
        except ValueError:
            problem = f"its front matter can't be read: {error}"
            return FrontMatter(text, present=True, problem=problem)
    return FrontMatter(text[end.end() :], fields, present=True)


def _quoted(match: re.Match[str]) -> str:
    name, value = match[1], match[2].replace("'", "''")
    return f"{name}: '{value}'"


def _fields(raw: str) -> dict[str, Any]:
    """The mapping that `raw` is in YAML. Raises ValueError saying what is wrong, and in which line of
    the file."""
    import yaml  # some 10 ms, and only where there is a front matter

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        depth = 0
        for event in yaml.parse(
            raw, Loader=loader
        ):  # flat: however deep it nests, nothing recurses
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                raise ValueError(f"{_line(event.start_mark)}: anchors and aliases are not taken")
            if getattr(event, "tag", None):
                raise ValueError(f"{_line(event.start_mark)}: tags are not taken")
            if depth > _MOST_DEPTH:
                raise ValueError(f"{_line(event.start_mark)}: it nests too deep")
        node = yaml.compose(raw, Loader=loader)
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise ValueError("line 2: it must be names with values")
        seen = set()
        for key, _value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.value in seen:
                raise ValueError(f"{_line(key.start_mark)}: a name stands twice, or is none")
            seen.add(key.value)
        value: dict[str, Any] = yaml.load(raw, Loader=loader)  # noqa: S506 (makes text, lists and maps only)
    except yaml.MarkedYAMLError as error:
        where = f"{_line(error.problem_mark)}: " if error.problem_mark else ""
        raise ValueError(f"{where}{error.problem or error.context}") from error
    except (yaml.YAMLError, RecursionError, TypeError) as error:
        raise ValueError(" ".join(str(error).split())[:200]) from error
    return value


def _line(mark: Any) -> str:
    return f"line {mark.line + 2}"
