"""What a Python package offers, read from its source: signatures and docstrings of public names.

Nothing is imported or run: modules are parsed. What a package re-exports from its private modules is
described where it can be imported from.
"""

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

MOST_DOCSTRING = 1_500
"""Characters of a function's or a class's docstring; of a module's four times as many."""
MOST_MEMBERS = 100
_DEEPEST = 6
_MOST_VALUE = 60

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Sources = Callable[[str], tuple[str, bool] | None]
"""The source of a module by its dotted name, and whether it is a package; None where there is none."""


@dataclass(slots=True)
class _Module:
    """A parsed module: what it defines, where its other names come from, whose names it takes whole."""

    name: str
    tree: ast.Module
    is_package: bool
    public: list[str] | None = None
    defined: dict[str, list[Definition]] = field(default_factory=dict)
    values: dict[str, ast.Assign | ast.AnnAssign] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)


class Api:
    """The modules of one package, each parsed once."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._known: dict[str, _Module | None] = {}

    def page(self, name: str) -> str:
        """A module's public names in Markdown; empty where it has none, or can't be parsed."""
        module = self._module(name)
        if module is None:
            return ""
        parts = [_docstring(module.tree, 4 * MOST_DOCSTRING)]
        for public in self._names(module, 0):
            parts += self._described(public, module, public, 0)
        body = "\n\n".join(filter(None, parts))
        return f"# {name}\n\n{body}\n" if body else ""

    def _module(self, name: str) -> _Module | None:
        if name not in self._known:
            self._known[name] = None
            found = self._sources(name)
            tree = None if found is None else _parsed(found[0])
            if found is not None and tree is not None:
                module = self._known[name] = _Module(name, tree, found[1])
                for statement in _statements(tree.body):
                    _take(module, statement)
        return self._known[name]

    def _names(self, module: _Module, depth: int) -> list[str]:
        """What `from module import *` would give, and what a package takes from its own modules."""
        if module.public is not None:
            return module.public
        names = dict.fromkeys([*module.defined, *module.values])
        if module.is_package:
            names |= dict.fromkeys(module.imported)
        for star in module.stars if depth < _DEEPEST else ():
            other = self._module(star)
            if other is not None:
                names |= dict.fromkeys(self._names(other, depth + 1))
        return [name for name in names if not name.startswith("_")]

    def _described(self, shown: str, module: _Module, name: str, depth: int) -> list[str]:
        """A public name in Markdown, wherever in the package it is defined."""
        if name in module.defined:
            return [_definition(shown, module.defined[name])]
        if name in module.values:
            return [_value(shown, module.values[name])]
        if depth >= _DEEPEST:
            return []
        if name in module.imported:
            origin, inner = module.imported[name]
            other = self._module(origin)
            if other is not None and other is not module:
                return self._described(shown, other, inner, depth + 1)
            if self._module(f"{origin}.{inner}") is not None:
                return [f"### module {shown}\n\nSee `{origin}.{inner}`."]
            return []
        for star in module.stars:
            other = self._module(star)
            if other is not None and name in self._names(other, depth + 1):
                return self._described(shown, other, name, depth + 1)
        return []


def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those of its conditions and tries too."""
    for statement in body:
        match statement:
            case ast.If():
                yield from _statements([*statement.body, *statement.orelse])
            case ast.Try():
                handlers = [line for handler in statement.handlers for line in handler.body]
                yield from _statements([*statement.body, *handlers, *statement.orelse])
            case _:
                yield statement


def _take(module: _Module, statement: ast.stmt) -> None:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            module.defined.setdefault(statement.name, []).append(statement)
        case (
            ast.Assign(targets=[ast.Name(id="__all__")])
            | ast.AugAssign(target=ast.Name(id="__all__"))
        ):
            names = _literal_names(statement.value)
            if names is not None:
                module.public = [*(module.public or []), *names]
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            module.values.setdefault(name, statement)
        case ast.ImportFrom():
            origin = _origin(module, statement)
            for alias in statement.names if origin else ():
                if alias.name == "*":
                    module.stars.append(origin)
                else:
                    module.imported[alias.asname or alias.name] = (origin, alias.name)
        case _:
            pass


def _literal_names(value: ast.expr) -> list[str] | None:
    try:
        names = ast.literal_eval(value)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
    if not isinstance(names, list | tuple):
        return None
    return [name for name in names if isinstance(name, str)]


def _origin(module: _Module, statement: ast.ImportFrom) -> str:
    """The module of the same package that is imported from; empty where it is another's."""
    top = module.name.partition(".")[0]
    if statement.level == 0:
        origin = statement.module or ""
        return origin if origin.partition(".")[0] == top else ""
    parts = module.name.split(".")
    keep = len(parts) - statement.level + module.is_package
    if keep < 1:
        return ""
    return ".".join([*parts[:keep], *filter(None, [statement.module])])


def _definition(shown: str, found: list[Definition]) -> str:
    last = found[-1]
    if isinstance(last, ast.ClassDef):
        return _class(shown, last)
    heads = [f"```python\n{_signature(each, shown)}\n```" for each in found if _is_function(each)]
    documented = next((text for each in found if (text := _docstring(each, MOST_DOCSTRING))), "")
    return "\n\n".join(filter(None, [f"### {shown}", *heads[:8], documented]))


def _is_function(node: Definition) -> bool:
    return not isinstance(node, ast.ClassDef)


def _class(shown: str, node: ast.ClassDef) -> str:
    bases = ", ".join(map(_unparsed, [*node.bases]))
    lines = [f"### class {shown}" + (f"({bases})" if bases else "")]
    text = _docstring(node, MOST_DOCSTRING)
    members = []
    for each in _statements(node.body):
        match each:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if each.name == "__init__" or not each.name.startswith("_"):
                    first = _docstring(each, MOST_DOCSTRING).partition("\n\n")[0].replace("\n", " ")
                    members.append(
                        f"- `{_signature(each, each.name)}`" + (f": {first}" if first else "")
                    )
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
                members.append(f"- `{name}: {_unparsed(each.annotation)}`")
            case _:
                pass
    if len(members) > MOST_MEMBERS:
        members[MOST_MEMBERS:] = [f"- … {len(members) - MOST_MEMBERS} more"]
    return "\n\n".join(filter(None, [*lines, text, "\n".join(members)]))


def _signature(node: Definition, shown: str) -> str:
    if isinstance(node, ast.ClassDef):
        return f"class {shown}"
    decorators = {_unparsed(each).rpartition(".")[2] for each in node.decorator_list}
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    if decorators & {"property", "cached_property"}:
        word = "property"
    elif kinds := decorators & {"classmethod", "staticmethod"}:
        word = f"{min(kinds)} {word}"
    returns = f" -> {_unparsed(node.returns)}" if node.returns is not None else ""
    return f"{word} {shown}({_unparsed(node.args)}){returns}"


def _value(shown: str, node: ast.Assign | ast.AnnAssign) -> str:
    kind = f": {_unparsed(node.annotation)}" if isinstance(node, ast.AnnAssign) else ""
    value = "" if node.value is None else _unparsed(node.value)
    given = f" = {value}" if value and len(value) <= _MOST_VALUE else ""
    return f"- `{shown}{kind}{given}`"


def _unparsed(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except (RecursionError, ValueError):
        return "…"


def _docstring(node: ast.Module | Definition, most: int) -> str:
    body = node.body[0] if node.body else None
    match body:
        case ast.Expr(value=ast.Constant(value=str(text))):
            clean = inspect.cleandoc(text).strip()
            return clean if len(clean) <= most else f"{clean[:most].rstrip()} […]"
        case _:
            return ""
