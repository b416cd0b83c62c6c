"""Tree-sitter's grammars by a file's name: imported when first needed, and absent where not installed."""

from functools import cache
from importlib import import_module
from typing import Any, Protocol

_GRAMMARS = {
    "python": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "c": ("tree_sitter_c", "language"),
    "java": ("tree_sitter_java", "language"),
    "json": ("tree_sitter_json", "language"),
    "html": ("tree_sitter_html", "language"),
    "css": ("tree_sitter_css", "language"),
    "bash": ("tree_sitter_bash", "language"),
}
_SUFFIXES = {
    "py": "python", "pyi": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript",
    "jsx": "javascript", "ts": "typescript", "mts": "typescript", "cts": "typescript", "tsx": "tsx",
    "go": "go", "rs": "rust", "c": "c", "h": "c", "java": "java", "json": "json", "html": "html",
    "htm": "html", "css": "css", "sh": "bash", "bash": "bash",
}  # fmt: skip


class Node(Protocol):
    """What is used of a node of tree-sitter. Points are row and column from 0."""

    @property
    def type(self) -> str: ...
    @property
    def start_byte(self) -> int: ...
    @property
    def end_byte(self) -> int: ...
    @property
    def start_point(self) -> tuple[int, int]: ...
    @property
    def end_point(self) -> tuple[int, int]: ...
    @property
    def children(self) -> "list[Node]": ...
    @property
    def text(self) -> bytes | None: ...
    @property
    def has_error(self) -> bool: ...
    @property
    def is_error(self) -> bool: ...
    @property
    def is_missing(self) -> bool: ...
    def child_by_field_name(self, name: str, /) -> "Node | None": ...


def language(path: str) -> str:
    """The language of a file by its suffix, "" where it is none of those with a grammar."""
    return _SUFFIXES.get(path.rpartition("/")[2].rpartition(".")[2].lower(), "")


def parse(text: str, name: str) -> Node | None:
    """The tree of `text` in a language, None where its grammar isn't installed."""
    return parse_bytes(text.encode("utf-8", "surrogatepass"), name)


def parse_bytes(data: bytes, name: str) -> Node | None:
    """The tree of a text in UTF-8, None where its grammar isn't installed."""
    parser = _parser(name)
    if parser is None:
        return None
    root: Node = parser.parse(data).root_node
    return root


def matches(root: Node, name: str, patterns: str) -> list[dict[str, list[Node]]]:
    """What a query of tree-sitter finds in a tree of the same language: the captured nodes of each match
    by the capture's name."""
    return [captured for _, captured in _cursor(name, patterns).matches(root)]


def captured(root: Node, name: str, patterns: str) -> dict[str, list[Node]]:
    """All nodes that a query captures, by the captures' names."""
    found: dict[str, list[Node]] = _cursor(name, patterns).captures(root)
    return found


def _cursor(name: str, patterns: str) -> Any:
    return import_module("tree_sitter").QueryCursor(_query(name, patterns))


@cache
def _query(name: str, patterns: str) -> Any:
    return import_module("tree_sitter").Query(_parser(name).language, patterns)


@cache
def _parser(name: str) -> Any:
    if name not in _GRAMMARS:
        return None
    module, function = _GRAMMARS[name]
    try:
        core, grammar = import_module("tree_sitter"), import_module(module)
    except ImportError:
        return None
    return core.Parser(core.Language(getattr(grammar, function)()))
