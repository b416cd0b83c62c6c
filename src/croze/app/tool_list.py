"""All tools that an agent could use, with what each may do and where it comes from."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from croze.knowledge.external_tools import ExternalTool
from croze.tools.registry import Registry, builtin
from croze.types.tool import Access, ToolDoc

if TYPE_CHECKING:
    from croze.app.app import App

_EXTERNAL = Access(exec=True)


def listed(app: "App", external: Sequence[ExternalTool]) -> list[dict[str, Any]]:
    """A row a tool: built in, from plugins, of the MCP servers that have been used, external."""
    own, plugins = _registries(app)
    return [
        *(_row("builtin", doc, "croze") for doc in own),
        *(_row("plugin", doc, source) for doc, source in plugins),
        *_of_servers(app),
        *map(_external, external),
    ]


def described(app: "App", name: str) -> str | None:
    """All that agents are told of a tool that is no external one; None where there is none of the name."""
    from croze.dialect.xml import XmlDialect

    registry = builtin()
    registry.load_plugins(app.config.settings.plugins.tools)
    kind = registry.get(name)
    if kind is not None:
        return XmlDialect().describe([kind.doc])
    for row in _of_servers(app):
        if name in (row["name"], row["tag"]):
            return f"{row['name']}: {row['summary']}\n{row['description']}".rstrip()
    return None


def _registries(app: "App") -> tuple[list[ToolDoc], list[tuple[ToolDoc, str]]]:
    registry = builtin()
    own = set(registry.names)
    plugins = app.config.settings.plugins.tools
    registry.load_plugins(plugins)
    docs = _docs(registry)
    source = ", ".join(plugins)
    return (
        [doc for doc in docs if doc.name in own],
        [(doc, source) for doc in docs if doc.name not in own],
    )


def _docs(registry: Registry) -> list[ToolDoc]:
    core, others = registry.docs()
    return [*core, *others]


def _access(access: Access) -> list[str]:
    return [name for name in ("read", "write", "exec", "net") if getattr(access, name)]


def _row(kind: str, doc: ToolDoc, source: str) -> dict[str, Any]:
    return {
        "name": doc.name,
        "kind": kind,
        "source": source,
        "access": _access(doc.access),
        "core": doc.core,
        "summary": doc.summary,
    }


def _external(tool: ExternalTool) -> dict[str, Any]:
    state = "broken" if tool.problem else tool.found.state
    text = tool.help.text
    return {
        "name": tool.file,
        "kind": "external",
        "source": tool.found.source,
        "access": _access(_EXTERNAL),
        "core": False,
        "summary": next((line.strip() for line in text.split("\n") if line.strip()), ""),
        "state": state,
        "reason": tool.problem or tool.found.reason or ("" if text else tool.help.problem),
        "path": tool.found.path,
        "command": tool.command() if tool.usable else "",
        "executable": tool.executable,
        "help": text,
        "help_by": tool.help.by,
    }


def _of_servers(app: "App") -> Iterator[dict[str, Any]]:
    """The tools that servers had when they were last used; no server is started."""
    from croze.app.mcp import load_mcp

    specs = load_mcp(app.config).specs
    if not specs:
        return
    from croze.mcp.listing import ListingCache
    from croze.tools.mcp import ACCESS

    cache = ListingCache(app.config.paths.cache)
    for spec in specs:
        listing = cache.load(spec.key)
        for info in () if listing is None else listing.tools:
            yield {
                "name": f"{spec.name}/{info.name}",
                "tag": f"mcp__{spec.name}__{info.name}",
                "kind": "mcp",
                "source": spec.name,
                "access": _access(ACCESS),
                "core": False,
                "summary": info.summary,
                "description": info.description,
            }
