"""Checks JSON values against a JSON Schema: the keywords that describe data, no network references.

What can't be checked is refused before anything runs, so that a schema never holds less than it says.
Source: JSON Schema draft 2020-12, "Validation".
"""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

_ANNOTATIONS = frozenset(
    [
        "$schema",
        "$id",
        "$comment",
        "$anchor",
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "format",
        "$defs",
        "definitions",
        "contentMediaType",
        "contentEncoding",
    ]
)
_NUMBERS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (lambda v, limit: v >= limit, "at least"),
    "maximum": (lambda v, limit: v <= limit, "at most"),
    "exclusiveMinimum": (lambda v, limit: v > limit, "above"),
    "exclusiveMaximum": (lambda v, limit: v < limit, "below"),
}
_SIZES: dict[str, tuple[type[str] | type[list[Any]] | type[dict[str, Any]], int]] = {
    "minLength": (str, 1), "maxLength": (str, -1), "minItems": (list, 1), "maxItems": (list, -1),
    "minProperties": (dict, 1), "maxProperties": (dict, -1),
}  # fmt: skip
_ONE = frozenset({"additionalProperties", "items", "not", "contains", "propertyNames"})
_MANY = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_OTHER = frozenset(
    {"type", "enum", "const", "required", "pattern", "uniqueItems", "multipleOf", "$ref"}
)
_KNOWN = _ANNOTATIONS | set(_NUMBERS) | set(_SIZES) | _ONE | _MANY | _NAMED | _OTHER
_TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: _is_number(v) and (isinstance(v, int) or v.is_integer()),
    "number": lambda v: _is_number(v),
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}


class SchemaProblem(ValueError):
    """The schema itself is wrong or asks for what can't be checked; the text says where."""


def check_schema(schema: dict[str, Any]) -> None:
    """Raise `SchemaProblem` unless every keyword of `schema` is one that `violation` checks."""
    for place, part in _parts(schema, "#"):
        if isinstance(part, bool):
            continue
        if not isinstance(part, dict):
            raise SchemaProblem(f"{place} is not a schema")
        unknown = sorted(set(part) - _KNOWN)
        if unknown:
            raise SchemaProblem(f"{place}: {unknown[0]!r} can't be checked")
        _check_values(part, place)
        if "$ref" in part:
            _no_cycle(part, schema, place)


def _check_values(part: dict[str, Any], place: str) -> None:
    names = part.get("type", [])
    for name in names if isinstance(names, list) else [names]:
        if not isinstance(name, str) or name not in _TYPES:
            raise SchemaProblem(f"{place}: there is no type {name!r}")
    named = part.get("patternProperties", {})
    patterns = [part["pattern"]] if "pattern" in part else []
    for pattern in [*patterns, *(named if isinstance(named, dict) else ())]:
        try:
            re.compile(pattern)
        except (re.error, TypeError) as error:
            raise SchemaProblem(f"{place}: {pattern!r} is no regular expression") from error
    for keyword in (*_NUMBERS, *_SIZES, "multipleOf"):
        limit = part.get(keyword, 1)
        if not _is_number(limit) or (keyword == "multipleOf" and limit <= 0):
            raise SchemaProblem(f"{place}: {keyword} is not a number that it can be")
    for keyword, kind in (("enum", list), ("required", list), ("$ref", str)):
        if keyword in part and not isinstance(part[keyword], kind):
            raise SchemaProblem(f"{place}: {keyword} has the wrong form")
    if not all(isinstance(name, str) for name in part.get("required", ())):
        raise SchemaProblem(f"{place}: required has the wrong form")


def _parts(schema: Any, place: str) -> Iterator[tuple[str, Any]]:
    """A schema and all schemas inside it, with their places."""
    yield place, schema
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        here = f"{place}/{keyword}"
        if keyword in _ONE:
            yield from _parts(value, here)
        elif keyword in _MANY or keyword in _NAMED:
            if not isinstance(value, list if keyword in _MANY else dict):
                raise SchemaProblem(f"{here} has the wrong form")
            items = enumerate(value) if isinstance(value, list) else value.items()
            for name, inner in items:
                yield from _parts(inner, f"{here}/{name}")


def _no_cycle(part: dict[str, Any], root: dict[str, Any], place: str) -> None:
    """A reference must lead to a schema, not round in a circle of references alone."""
    seen: set[str] = set()
    target: Any = part
    while isinstance(target, dict) and "$ref" in target:
        ref = target["$ref"]
        if ref in seen:
            raise SchemaProblem(f"{place}: the reference {ref!r} leads to itself")
        seen.add(ref)
        target = _target(ref, root)


def _target(ref: str, root: dict[str, Any]) -> Any:
    if ref != "#" and not ref.startswith("#/"):
        raise SchemaProblem(f"the reference {ref!r} leads out of the schema")
    found: Any = root
    for name in ref.split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, dict) and name in found:
            found = found[name]
        else:
            raise SchemaProblem(f"the reference {ref!r} leads nowhere")
    return found


def violation(value: Any, schema: dict[str, Any]) -> str | None:
    """The first way in which `value` breaks `schema` (one that passed `check_schema`), None if none."""
    try:
        return next(_violations(value, schema, schema, "the value"), None)
    except RecursionError:
        return "the value or the schema nests too deep"


def _violations(value: Any, schema: Any, root: dict[str, Any], place: str) -> Iterator[str]:
    if schema is True:
        return
    if schema is False:
        yield f"{place} must not be there"
        return
    if "$ref" in schema:
        yield from _violations(value, _target(schema["$ref"], root), root, place)
    yield from _plain(value, schema, place)
    yield from _combined(value, schema, root, place)
    if isinstance(value, dict):
        yield from _object(value, schema, root, place)
    elif isinstance(value, list):
        yield from _array(value, schema, root, place)


def _plain(value: Any, schema: dict[str, Any], place: str) -> Iterator[str]:
    names = schema.get("type", [])
    names = names if isinstance(names, list) else [names]
    if names and not any(_TYPES[name](value) for name in names):
        yield f"{place} must be {' or '.join(names)}"
    if "enum" in schema and not any(_same(value, option) for option in schema["enum"]):
        yield f"{place} must be one of {schema['enum']!r}"
    if "const" in schema and not _same(value, schema["const"]):
        yield f"{place} must be {schema['const']!r}"
    if _is_number(value):
        for keyword, (holds, word) in _NUMBERS.items():
            if keyword in schema and not holds(value, schema[keyword]):
                yield f"{place} must be {word} {schema[keyword]}"
        step = schema.get("multipleOf")
        if step is not None and not _divides(value, step):
            yield f"{place} must be a multiple of {step}"
    for keyword, (kind, sign) in _SIZES.items():
        if keyword in schema and isinstance(value, kind):
            size = len(value)
            if sign * size < sign * schema[keyword]:
                yield f"{place} has the size {size}, {keyword} is {schema[keyword]}"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{place} must match {schema['pattern']!r}"


def _combined(
    value: Any, schema: dict[str, Any], root: dict[str, Any], place: str
) -> Iterator[str]:
    def fits(part: Any) -> bool:
        return next(_violations(value, part, root, place), None) is None

    for part in schema.get("allOf", ()):
        yield from _violations(value, part, root, place)
    if "anyOf" in schema and not any(fits(part) for part in schema["anyOf"]):
        yield f"{place} fits none of the forms of anyOf"
    if "oneOf" in schema and sum(fits(part) for part in schema["oneOf"]) != 1:
        yield f"{place} must fit exactly one of the forms of oneOf"
    if "not" in schema and fits(schema["not"]):
        yield f"{place} has the form that `not` excludes"


def _object(
    value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], place: str
) -> Iterator[str]:
    named = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{place} lacks {name!r}"
    for name, item in value.items():
        here = f"{place}.{name}" if place != "the value" else name
        if "propertyNames" in schema:
            yield from _violations(name, schema["propertyNames"], root, f"the name {name!r}")
        if name in named:
            yield from _violations(item, named[name], root, here)
        matching = [part for pattern, part in patterns.items() if re.search(pattern, name)]
        for part in matching:
            yield from _violations(item, part, root, here)
        if name not in named and not matching and "additionalProperties" in schema:
            yield from _violations(item, schema["additionalProperties"], root, here)


def _array(
    value: list[Any], schema: dict[str, Any], root: dict[str, Any], place: str
) -> Iterator[str]:
    first = schema.get("prefixItems", [])
    for i, item in enumerate(value):
        part = first[i] if i < len(first) else schema.get("items", True)
        yield from _violations(item, part, root, f"{place}[{i}]")
    if "contains" in schema and not any(
        next(_violations(item, schema["contains"], root, place), None) is None for item in value
    ):
        yield f"{place} lacks an item of the form of `contains`"
    if schema.get("uniqueItems") and any(
        _same(a, b) for i, a in enumerate(value) for b in value[i + 1 :]
    ):
        yield f"{place} has the same item twice"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _divides(value: float, step: float) -> bool:
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    try:
        return math.isclose(value / step, round(value / step), abs_tol=1e-9)
    except (OverflowError, ValueError):
        return False


def _same(a: Any, b: Any) -> bool:
    """Equality of JSON values: true is not 1, 1.0 is 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    return bool(a == b)
