"""From a call's arguments to a tool instance; all that is wrong with them is told at once.

Values may be text where the parameter isn't (the xml protocol knows only text): numbers, booleans,
lists and objects are read from it.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from croze.tools.base import Tool

_ITEM = re.compile(r"\s*(?:[-*•]|\d{1,3}[.)])\s+")
_BOOLEANS = {"yes": True, "on": True, "no": False, "off": False, "1": True, "0": False}
_SHOWN = 80


def bind(tool: type[Tool], schema: Mapping[str, Any], args: Mapping[str, Any]) -> Tool:
    """An instance of `tool` with checked fields. `schema` is that of its parameters.

    Raises `msgspec.ValidationError` that names every unknown, missing or wrong parameter.
    """
    fields = {field.name: field for field in msgspec.structs.fields(tool)}
    properties: Mapping[str, Any] = schema["properties"]
    problems: list[str] = []
    values: dict[str, Any] = {}
    for name, raw in args.items():
        field = fields.get(name)
        if field is None:
            problems.append(_unknown(name, list(fields)))
            continue
        value = read_value(raw, properties[name])
        if not field.required and (value is None or value is _OMITTED):
            continue
        try:
            values[name] = msgspec.convert(value, field.type, strict=False)
        except msgspec.ValidationError as error:
            problems.append(
                f"{name} must be {_expected(properties[name], error)}, got {_shown(raw)}"
            )
    problems += [
        f"the required parameter {name} is missing"
        for name, field in fields.items()
        if field.required and name not in args
    ]
    if problems:
        raise msgspec.ValidationError("; ".join(problems))
    try:
        return tool(**values)
    except (ValueError, TypeError) as error:  # from the tool's own __post_init__
        raise msgspec.ValidationError(str(error)) from error


class _Omitted:
    """Stands for an empty text where a number or the like belongs: the parameter was left out."""


_OMITTED = _Omitted()


def read_value(value: Any, schema: Mapping[str, Any]) -> Any:
    """`value` as JSON would give it: text is decoded where the schema wants no text.

    Text for a list of strings may be JSON, one item a line, or a line with commas.
    """
    if not isinstance(value, str):
        return value
    kinds = _kinds(schema)
    if "string" in kinds or "enum" in schema or not kinds:
        return value.strip() if "enum" in schema else value
    text = value.strip()
    if not text:
        return _OMITTED
    if "array" in kinds or "object" in kinds:
        if text[0] in "[{":
            try:
                return msgspec.json.decode(text)
            except msgspec.DecodeError:
                return text
        items = schema.get("items", {})
        if "array" in kinds and "string" in _kinds(items):
            lines = text.splitlines()
            rows = lines if len(lines) > 1 else text.split(",")
            return [_ITEM.sub("", row, count=1).strip() for row in rows if row.strip()]
        return text
    if "boolean" in kinds:
        return _BOOLEANS.get(text.lower(), text.lower())
    return text


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    kinds: set[str] = set()
    for option in schema.get("anyOf", (schema,)):
        kind = option.get("type", ())
        kinds.update([kind] if isinstance(kind, str) else kind)
    return kinds


def _unknown(name: str, known: list[str]) -> str:
    from difflib import get_close_matches  # only where a model errs

    near = get_close_matches(name, known, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"there is no parameter {name!r}{hint}"


def _expected(schema: Mapping[str, Any], error: msgspec.ValidationError) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    kinds = _kinds(schema)
    reason = str(error).replace(" - at `$`", "").replace("`", "")
    if kinds == {"integer"}:
        low, high = schema.get("minimum"), schema.get("maximum")
        bounds = [f"at least {low}"] if low is not None else []
        bounds += [f"at most {high}"] if high is not None else []
        return "a whole number" + (f" ({', '.join(bounds)})" if bounds else "")
    if kinds == {"boolean"}:
        return "true or false"
    if kinds == {"number"}:
        return "a number"
    if kinds == {"string"}:
        return f"text ({reason})"
    if kinds == {"array"}:
        return f"a list ({reason})"
    if kinds == {"object"}:
        return f"a JSON object ({reason})"
    return f"valid ({reason})"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
