"""What can be wrong with a call, in words for the model, and the right form to show beside it."""

from collections.abc import Iterable, Mapping
from typing import Any

from croze.dialect.base import Dialect
from croze.types.parts import CallError
from croze.types.tool import ToolDoc, ToolShape

ESCAPE_TOOL = "call_tool"
_ESCAPE = f"use {ESCAPE_TOOL}, with its arguments as JSON in which each < is written \\u003c"


def ambiguous(why: str) -> CallError:
    """The call's end can't be told for certain; the message names the escape."""
    return CallError(
        "ambiguous_body",
        f"Not run, as it isn't certain where the call ends: {why}. For such values {_ESCAPE}.",
    )


def repeated(tag: str, param: str) -> CallError:
    return CallError(
        "repeated_parameter",
        f"Not run: {param} stands more than once in {tag}. Give each parameter once; if the second one "
        f"belongs to a value, {_ESCAPE}.",
    )


def truncated(tag: str, missing: str) -> CallError:
    return CallError(
        "truncated",
        f"Not run: the reply ended before {missing}. Send {tag} again, whole; write long content in "
        "several pieces.",
    )


def malformed(what: str) -> CallError:
    return CallError("malformed", f"Not run: {what}")


def wrong_parameter(tag: str, name: str, attributes: str, params: Iterable[str]) -> CallError:
    """A tag that is no parameter of the tool, or one that has attributes."""
    known = sorted(params)
    if name in known and attributes:
        return malformed(f"tags take no attributes; write <{name}> alone.")
    return malformed(f"{tag} has no parameter {name}. It has: {', '.join(known) or 'none'}.")


def unknown_tool(name: str, tools: Mapping[str, ToolShape]) -> CallError:
    """No such tool; tools whose names are written alike are offered."""
    from difflib import get_close_matches  # only where a model errs

    near = dict.fromkeys(tools[tag].name for tag in get_close_matches(name, tools, n=3))
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return CallError("unknown_tool", f"Not run: there is no tool {name!r}.{hint}")


def explain(error: CallError, doc: ToolDoc | None, dialect: Dialect) -> str:
    """What was wrong with a call and how it should look: the text of its result. `doc` is None where no
    such tool exists."""
    if doc is None:
        return f"{error.message} Only the tools that were listed can be called."
    args = _sample(doc)
    if error.code == "ambiguous_body":
        form = dialect.example(ESCAPE_TOOL, {"name": doc.name, "arguments": args})
    else:
        form = dialect.example(doc.name, args)
    required = set(doc.parameters.get("required", ()))
    listed = ", ".join(
        f"{name} (required)" if name in required else name for name in properties(doc)
    )
    return (
        f"{error.message}\nParameters of {doc.name}: {listed or 'none'}.\nThe right form:\n{form}"
    )


def properties(doc: ToolDoc) -> Mapping[str, dict[str, Any]]:
    """The parameters of a tool with their JSON Schemas."""
    found: Mapping[str, dict[str, Any]] = doc.parameters.get("properties", {})
    return found


def _sample(doc: ToolDoc) -> Mapping[str, object]:
    if doc.examples:
        return doc.examples[0].args
    required = doc.parameters.get("required", ())
    return {name: f"({name})" for name in properties(doc) if name in required}
