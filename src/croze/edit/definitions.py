"""The functions, classes and the like of a text: by kind, name and parent, with their lines."""

from collections.abc import Callable

from msgspec import Struct

from croze.edit.grammar import Node, parse

_KINDS = frozenset(
    {
        "function_definition", "class_definition",
        "function_declaration", "generator_function_declaration", "class_declaration",
        "abstract_class_declaration", "method_definition", "interface_declaration", "enum_declaration",
        "type_alias_declaration", "lexical_declaration",
        "method_declaration", "type_declaration", "constructor_declaration", "record_declaration",
        "function_item", "struct_item", "enum_item", "trait_item", "impl_item", "mod_item",
        "rule_set",
    }
)  # fmt: skip
_WRAPPERS = frozenset({"decorated_definition", "export_statement"})
_ATTRIBUTES = frozenset({"attribute_item", "decorator"})
_COMMENTS = frozenset({"comment", "line_comment", "block_comment"})
_INDENTED = frozenset({"python"})


class Definition(Struct, frozen=True):
    """Lines `start` up to `end` (0-based, end exclusive) define `name`. `attributes` counts the
    decorators, `above` is where the comment right above begins (`start` where there is none).
    `path` has the kind and name of each parent and its own."""

    path: tuple[tuple[str, str], ...]
    start: int
    end: int
    above: int
    attributes: int


def definitions(text: str, language: str, skip: Callable[[int], bool]) -> tuple[Definition, ...]:
    """The definitions of a text that stand on whole lines, in their order; () where its grammar isn't
    installed. Lines that `skip` names are no comments of a definition, but belong to an indented block
    where they stand at its end."""
    root = parse(text, language)
    if root is None:
        return ()
    lines = text.split("\n")
    found: list[Definition] = []
    pending: list[tuple[Node, tuple[tuple[str, str], ...]]] = [(root, ())]
    while pending:
        parent, path = pending.pop()
        children = parent.children
        for at, child in enumerate(children):
            node = _inner(child)
            name = _name(node)
            own = path if name is None else (*path, (node.type, name))
            if name is None or node.has_error:
                pending.append((child, own))
                continue
            start, end = child.start_point[0], _last(child) + 1
            attributes = sum(1 for part in child.children if part.type in _ATTRIBUTES)
            before = at - 1
            while (
                before >= 0
                and children[before].type in _ATTRIBUTES
                and _touches(children[before], start)
            ):
                start, attributes, before = (
                    children[before].start_point[0],
                    attributes + 1,
                    before - 1,
                )
            above = start
            while (
                before >= 0
                and children[before].type in _COMMENTS
                and _touches(children[before], above)
                and not skip(children[before].start_point[0])
            ):
                above, before = children[before].start_point[0], before - 1
            if _whole(lines, child):
                if language in _INDENTED:
                    end = _with_markers(lines, start, end, skip)
                found.append(Definition(own, start, end, above, attributes))
            pending.append((node, own))
    found.sort(key=lambda one: (one.start, -one.end))
    return tuple(found)


def _inner(node: Node) -> Node:
    while node.type in _WRAPPERS:
        inner = node.child_by_field_name("definition") or node.child_by_field_name("declaration")
        if inner is None:
            return node
        node = inner
    return node


def _name(node: Node) -> str | None:
    if node.type not in _KINDS:
        return None
    if node.type == "lexical_declaration":
        parts = [part for part in node.children if part.type == "variable_declarator"]
        value = parts[0].child_by_field_name("value") if len(parts) == 1 else None
        if value is None or value.type not in ("arrow_function", "function_expression"):
            return None
        return _text(parts[0].child_by_field_name("name"))
    if node.type == "rule_set":
        return _text(node.children[0]) if node.children else None
    if node.type == "impl_item":
        trait = _text(node.child_by_field_name("trait")) or ""
        return f"{trait} for {_text(node.child_by_field_name('type'))}"
    if node.type == "type_declaration":
        specs = [part for part in node.children if part.type == "type_spec"]
        return _text(specs[0].child_by_field_name("name")) if len(specs) == 1 else None
    name = node.child_by_field_name("name")
    if name is None:
        name = node.child_by_field_name("declarator")
        while name is not None and (inner := name.child_by_field_name("declarator")) is not None:
            name = inner
    if node.type == "method_declaration" and (receiver := node.child_by_field_name("receiver")):
        return f"{_text(receiver)} {_text(name)}"
    return _text(name)


def _text(node: Node | None) -> str | None:
    return None if node is None or node.text is None else node.text.decode("utf-8", "replace")


def _last(node: Node) -> int:
    """The last line of a node; one that ends with a newline ends on the line before."""
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point[0] else row


def _touches(node: Node, line: int) -> bool:
    return _last(node) == line - 1


def _whole(lines: list[str], node: Node) -> bool:
    """True where nothing but blanks and closing signs share the first and the last line."""
    row, column = node.end_point
    after = "" if column == 0 else lines[row].encode()[column:].decode("utf-8", "replace")
    own = lines[node.start_point[0]].encode()[: node.start_point[1]]
    return not own.strip() and not after.strip(" \t;,")


def _with_markers(lines: list[str], start: int, end: int, skip: Callable[[int], bool]) -> int:
    """The end of an indented block with the markers that follow it in its indentation: to the grammar
    they are comments behind it."""
    depth = _indent(lines[start])
    at = end
    while at < len(lines) and (not lines[at].strip() or skip(at)):
        if lines[at].strip():
            if _indent(lines[at]) <= depth:
                break
            end = at + 1
        at += 1
    return end


def _indent(line: str) -> int:
    line = line.expandtabs(8)
    return len(line) - len(line.lstrip())
