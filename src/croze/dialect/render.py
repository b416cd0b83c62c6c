"""How both protocols describe tools: their parameters, guidelines and one-line lists."""

from collections.abc import Sequence
from typing import Any

import msgspec

from croze.dialect.faults import properties
from croze.types.tool import ToolDoc


def parameters(doc: ToolDoc, *, tags: bool) -> str:
    """One line a parameter: its tag or name, whether it is required, its type where that isn't plain
    text, and its description."""
    required = set(doc.parameters.get("required", ()))
    lines = []
    for name, schema in properties(doc).items():
        notes = ["required"] if name in required else []
        kind = _kind(schema)
        if kind != "string" or not tags:
            notes.append(kind)
        default = schema.get("default")
        if name not in required and default not in (None, "", [], {}):
            notes.append(f"default {value_text(default)}")
        shown = f"<{name}>" if tags else name
        note = f" ({', '.join(notes)})" if notes else ""
        lines.append(f"- {shown}{note}: {schema.get('description', '')}".rstrip(": "))
    return "\n".join(lines)


def one_liners(docs: Sequence[ToolDoc]) -> str:
    return "\n".join(f"- {doc.name}: {doc.summary}" for doc in docs)


def value_text(value: object) -> str:
    """A value as it stands in a tag: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _kind(schema: dict[str, Any]) -> str:
    """The type of a parameter in a word or two, from its JSON Schema."""
    if "enum" in schema:
        return " | ".join(value_text(value) for value in schema["enum"])
    if "const" in schema:
        return value_text(schema["const"])
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        kinds = dict.fromkeys(_kind(choice) for choice in choices)
        kinds.pop("null", None)
        return " or ".join(kinds)
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(part for part in kind if part != "null")
    if kind == "boolean":
        return "true | false"
    if kind == "array":
        item = schema.get("items")
        inner = _kind(item) if isinstance(item, dict) and item else "any"
        return f"JSON list of {inner}"
    return "JSON object" if kind == "object" else str(kind)
