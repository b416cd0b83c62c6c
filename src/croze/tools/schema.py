"""What the model is told of a tool class: its doc, with a JSON Schema of the parameters kept short."""

import inspect
from typing import Any

import msgspec

from croze.tools.base import Tool
from croze.types.tool import ToolDoc

_ORDER = ("type", "enum", "const", "description", "properties", "required", "items", "anyOf")
_DROPPED = ("title", "additionalProperties")


def tool_doc(tool: type[Tool]) -> ToolDoc:
    """The doc of a tool class: prose from its docstring and `spec`, parameters from its fields.

    Raises TypeError where a parameter's type refers to itself, as no such schema can be inlined.
    """
    spec = tool.spec
    return ToolDoc(
        name=spec.name,
        summary=spec.summary,
        description=" ".join(inspect.cleandoc(tool.__doc__ or "").split("\n")),
        parameters=parameters(tool),
        access=spec.access,
        examples=spec.examples,
        guideline=spec.guideline,
        core=spec.core,
        ends_turn=spec.ends_turn,
    )


def parameters(tool: type[Tool]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments: references inlined, in a fixed order, without titles,
    without null and default where a parameter may simply be left out."""
    _, components = msgspec.json.schema_components([tool], ref_template="{name}")
    schema = _inlined(components[tool.__name__], components, ())
    schema.pop("description", None)  # the class's docstring, which stands in the doc
    schema.setdefault("properties", {})
    return schema


def _inlined(
    schema: dict[str, Any], components: dict[str, Any], path: tuple[str, ...]
) -> dict[str, Any]:
    name = schema.get("$ref")
    if name is not None:
        if name in path:
            raise TypeError(f"the parameter type {name} refers to itself")
        return _inlined(components[name], components, (*path, name))
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _DROPPED or (key == "default" and _is_plain(value, schema)):
            continue
        if key == "properties":
            out[key] = {k: _inlined(v, components, path) for k, v in value.items()}
        elif key == "anyOf":
            options = [_inlined(v, components, path) for v in value if v != {"type": "null"}]
            if len(options) == 1:
                out = {**options[0], **out}
            else:
                out[key] = options
        elif isinstance(value, dict):
            out[key] = _inlined(value, components, path)
        else:
            out[key] = value
    if not out.get("required", True):
        del out["required"]
    rank = {key: at for at, key in enumerate(_ORDER)}
    return {key: out[key] for key in sorted(out, key=lambda key: (rank.get(key, 99), key))}


def _is_plain(default: Any, schema: dict[str, Any]) -> bool:
    """Whether a default needs no telling: it is empty, or the description names it."""
    empty = default is None or default in ("", [], (), {})
    return empty or "default" in schema.get("description", "")
