"""The syntax errors that an edit brought in."""

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from croze.edit.grammar import Node, language, parse

LIMIT = 1_000_000
"""Characters; a longer text is not checked."""

_MOST = 1_000
_WIDTH = 120


class SyntaxFinding(Struct, frozen=True):
    """An error at a 1-based line: what is unexpected or missing there."""

    line: int
    text: str


def new_errors(before: str, after: str, path: str) -> tuple[SyntaxFinding, ...]:
    """The syntax errors of `after` that `before` didn't have, in the order of lines; () where the
    language has no installed grammar or the text is above `LIMIT`.

    An error is the same one where it says the same of a line with the same content, wherever that
    line has moved to.
    """
    name = language(path)
    if not name or len(after) > LIMIT or before == after:
        return ()
    found = _errors(after, name)
    if not found or len(before) > LIMIT:
        return ()
    lines = after.split("\n")
    old = before.split("\n")
    known = Counter((old[error.line - 1].strip(), error.text) for error in _errors(before, name))
    new: list[SyntaxFinding] = []
    for error in found:
        key = lines[error.line - 1].strip(), error.text
        if known[key]:
            known[key] -= 1
        else:
            new.append(error)
    return tuple(new)


def _errors(text: str, name: str) -> list[SyntaxFinding]:
    root = parse(text, name)
    if root is None or not root.has_error:
        return []
    lines = text.split("\n")
    found: dict[int, SyntaxFinding] = {}
    for node in _broken(root):
        row = min(node.start_point[0], len(lines) - 1)
        if node.is_missing:
            what = f"{node.type} is missing"
        else:
            said = lines[row].encode("utf-8", "surrogatepass")[node.start_point[1] :]
            shown = said.decode("utf-8", "replace").strip()[:_WIDTH]
            what = f"unexpected {shown!r}" if shown else "unexpected end of the line"
        found.setdefault(row, SyntaxFinding(row + 1, what))
        if len(found) >= _MOST:
            break
    return [found[row] for row in sorted(found)]


def _broken(root: Node) -> Iterator[Node]:
    """The nodes that are errors, the innermost where errors hold others; without recursion, because
    trees can be deep."""
    pending = [root]
    while pending:
        node = pending.pop()
        inner = [child for child in node.children if child.has_error or child.is_missing]
        if node.is_missing or (node.is_error and not inner):
            yield node
        pending.extend(reversed(inner))
