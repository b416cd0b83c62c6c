"""A server's question to the user: told whose it is, answered field by field, declined where nobody is there."""

from typing import TYPE_CHECKING, Any, Protocol

from croze.text.display import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.types import ElicitRequestParams, ElicitResult

MOST_FIELDS = 24
_YES, _NO = "answer", "decline"
_SKIP = "(leave out)"


class Caller(Protocol):
    """Whoever has a server work: shown what it says, asked what it asks. Tool contexts are that."""

    def output(self, text: str) -> None: ...

    async def ask(self, text: str, options: "Sequence[str]" = ()) -> str | None:
        """The user's answer; None where no user is present."""
        ...


async def elicit(server: str, params: "ElicitRequestParams", caller: Caller) -> "ElicitResult":
    """Put a server's question to the user."""
    from mcp.types import ElicitResult

    message = safe(params.message)[:2_000]
    if params.mode == "url":
        address = safe(params.url, keep_newlines=False)
        text = f"The MCP server {server} wants you to open a page:\n{message}\n{address}"
        done = await caller.ask(text, ("done", _NO))
        return ElicitResult(action="accept" if done == "done" else "decline")
    fields = params.requested_schema.get("properties", {})
    if not isinstance(fields, dict) or len(fields) > MOST_FIELDS:
        return ElicitResult(action="decline")
    names = ", ".join(one_line(str(name), 60) for name in fields)
    text = f"The MCP server {server} asks ({names or 'nothing but yes or no'}):\n{message}\nGive it no secrets."
    if await caller.ask(text, (_YES, _NO)) != _YES:
        return ElicitResult(action="decline")
    required = params.requested_schema.get("required") or ()
    content: dict[str, Any] = {}
    for name, schema in fields.items():
        schema = schema if isinstance(schema, dict) else {}
        given = await _field(server, str(name), schema, caller, required=name in required)
        if given is None:
            return ElicitResult(action="cancel")
        if given != _SKIP:
            content[str(name)] = given
    return ElicitResult(action="accept", content=content)


async def _field(
    server: str, name: str, schema: dict[str, Any], caller: Caller, *, required: bool
) -> Any:
    """The user's value for one field; None where it isn't given."""
    kind = schema.get("type", "string")
    about = [one_line(str(schema.get(key, "")), 300) for key in ("title", "description")]
    text = f"{server}: " + " — ".join(filter(None, [one_line(name, 60), *about]))
    options: list[str] = []
    if kind == "boolean":
        options = ["yes", "no"]
    elif isinstance(schema.get("enum"), list):
        options = [safe(str(each), keep_newlines=False) for each in schema["enum"]]
    elif isinstance(schema.get("oneOf"), list):
        options = [str(each.get("const", "")) for each in schema["oneOf"] if isinstance(each, dict)]
    elif kind in ("integer", "number", "array"):
        text += f" ({'values with commas between' if kind == 'array' else kind})"
    if options and not required:
        options.append(_SKIP)
    for _ in range(3):
        given = await caller.ask(text, options)
        if given is None:
            return None
        if (given == _SKIP or not given.strip()) and not required:
            return _SKIP
        try:
            return _value(given, kind)
        except ValueError:
            continue
    return None


def _value(given: str, kind: str) -> Any:
    match kind:
        case "boolean":
            return given.strip().lower() in ("yes", "true", "1", "y")
        case "integer":
            return int(given)
        case "number":
            return float(given)
        case "array":
            return [each.strip() for each in given.split(",") if each.strip()]
        case _:
            return given
