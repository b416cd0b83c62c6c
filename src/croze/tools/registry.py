"""The tools of a session: an object that is passed, looked up by tag, and narrowed for an agent."""

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from croze.tools.aliases import OTHER_FORMS, PARAMS, TOOLS, OtherFormError, other_form
from croze.tools.base import BoundTool, Tool, ToolKind
from croze.tools.bind import bind
from croze.tools.schema import tool_doc
from croze.types.errors import ConfigError, UsageError
from croze.types.parts import CallError, ToolCall
from croze.types.tool import Access, ToolDoc, ToolResult, ToolShape

CALL_TOOL = "call_tool"
USE_MCP = "use_mcp_tool"
OF_SERVERS = frozenset({USE_MCP, "read_mcp_resource", "get_mcp_prompt"})
"""Not told of where no MCP server is configured."""
REACH = ("describe_tools", CALL_TOOL)
"""What an agent needs to use tools outside its core."""
PLUGINS = "croze.tools"
"""The entry point group of plugins."""

_BUILTIN = (
    "files",
    "edits",
    "line_edits",
    "file_ops",
    "search",
    "outline",
    "shell",
    "background",
    "pty_session",
    "todo",
    "memory",
    "stored",
    "count",
    "workspace_info",
    "talk",
    "talk_to",
    "subagents",
    "extract",
    "web",
    "mcp",
    "skills",
    "knowledge",
    "describe",
)


@dataclass(slots=True)  # not frozen: the protocol's attributes are settable
class ClassKind:
    """A tool class as a `ToolKind`."""

    tool: type[Tool]
    doc: ToolDoc
    aliases: Mapping[str, str]

    def bind(self, args: Mapping[str, Any]) -> BoundTool:
        return bind(self.tool, self.doc.parameters, args)

    def digest(self, call: ToolCall, result: ToolResult) -> str:
        return self.tool.digest(call, result)


class Outside(Protocol):
    """Tools that no list has, found by name when they are asked for: those of servers."""

    def tag(self, name: str) -> str:
        """The tag that `name` stands for; else the name itself."""
        ...

    def get(self, tag: str) -> ToolKind | None: ...

    def knows(self, name: str) -> bool:
        """Whether an agent's tool list may have this name."""
        ...

    def narrowed(self, names: Sequence[str]) -> "Outside":
        """Only the tools that are named."""
        ...

    def without(self, names: Sequence[str]) -> "Outside":
        """All but the tools, and the servers, that are named."""
        ...

    def forbids(self, server: str) -> bool:
        """Whether `without` has named the whole server."""
        ...

    def speaks_of(self, name: str) -> bool:
        """Whether `describe_tools` is asked for one of these, or for a server, by this name."""
        ...

    async def described(self, name: str) -> str:
        """All that is told of what `name` stands for. Raises CrozeError."""
        ...

    def unwrapped(self, args: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | CallError:
        """The tag and the arguments that a call of `use_mcp_tool` stands for."""
        ...


class Registry:
    """Tools by tag, in the order in which they were registered. `outside` are those that are only found by
    their names."""

    def __init__(
        self, kinds: Iterable[ToolKind | type[Tool]] = (), outside: Outside | None = None
    ) -> None:
        self.outside = outside
        self._kinds: dict[str, ToolKind] = {}
        for kind in kinds:
            self.register(kind)

    def register(self, kind: ToolKind | type[Tool]) -> None:
        """Add a tool. Raises UsageError where its name is taken, by a tool or as another name."""
        added = _class_kind(kind) if isinstance(kind, type) else kind
        name = added.doc.name
        if name in self._kinds or name in TOOLS:
            raise UsageError(
                f"There is already a tool named {name}.",
                hint="Give the new one another name, or unregister the old one first.",
                code="tool_exists",
                tool=name,
            )
        self._kinds[name] = added

    def unregister(self, name: str) -> None:
        """Take a tool away. Raises UsageError where there is none."""
        if self._kinds.pop(self._tag(name), None) is None:
            raise self._no_such_tool(name)

    def get(self, name: str) -> ToolKind | None:
        """The tool of this tag or other name."""
        tag = self._tag(name)
        found = self._kinds.get(tag)
        return self.outside.get(tag) if found is None and self.outside is not None else found

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._kinds)

    def near(self, name: str, limit: int = 3) -> list[str]:
        """Names of tools that look like `name`, best first."""
        from difflib import get_close_matches  # only where a model errs

        by_lower = {known.lower(): known for known in (*TOOLS, *self._kinds)}
        found = get_close_matches(name.lower(), by_lower, n=limit, cutoff=0.5)
        tags = (self._tag(by_lower[lower]) for lower in found)
        return list(dict.fromkeys(tag for tag in tags if tag in self._kinds))

    def docs(
        self, core: Sequence[str] | None = None
    ) -> tuple[tuple[ToolDoc, ...], tuple[ToolDoc, ...]]:
        """The docs of the core tools and of the others. `core` names the core (those that are not here
        are left out); None means the tools' own flag. Those for MCP servers are left out where there are none."""
        absent = frozenset() if self.outside is not None else OF_SERVERS
        docs = [kind.doc for tag, kind in self._kinds.items() if tag not in absent]
        if core is None:
            wanted = [doc for doc in docs if doc.core]
        else:
            tags = dict.fromkeys(self._tag(name) for name in core)
            wanted = [self._kinds[tag].doc for tag in tags if tag in self._kinds]
        names = {doc.name for doc in wanted}
        return tuple(wanted), tuple(doc for doc in docs if doc.name not in names)

    def filter(self, names: Sequence[str] | None, without: Sequence[str] = ()) -> "Registry":
        """A registry with only the named tools; None means all. `without` are tools of servers, and whole
        servers, that are not among them.

        Where some of them stand outside the core, `describe_tools` and `call_tool` stay as the way to
        them. Raises UsageError for a name that isn't known.
        """
        if names is None:
            return Registry(self._kinds.values(), _less(self.outside, without))
        tags, outside = [], []
        for name in names:
            tag = self._tag(name)
            if self.outside is not None and self.outside.knows(name):
                outside.append(name)
                continue
            if tag not in self._kinds:
                raise self._no_such_tool(name)
            tags.append(tag)
        narrowed = self.outside if USE_MCP in tags else None
        if self.outside is not None and outside:
            narrowed = self.outside.narrowed(outside)
            tags.append(USE_MCP)
        if any(not self._kinds[tag].doc.core for tag in tags if tag in self._kinds):
            tags += [tag for tag in REACH if tag in self._kinds]
        wanted = set(tags)
        return Registry(
            (kind for tag, kind in self._kinds.items() if tag in wanted), _less(narrowed, without)
        )

    def shapes(self) -> dict[str, ToolShape]:
        """What a decoder accepts: every tag and other name, with every parameter's names. A shape's
        name is the tool's tag, whatever name it was called by."""
        shapes: dict[str, ToolShape] = {}
        for tag, kind in self._kinds.items():
            params = {
                *kind.doc.parameters.get("properties", ()),
                *self._parameter_names(kind),
                *OTHER_FORMS.get(tag, ()),
            }
            shapes[tag] = ToolShape(tag, frozenset(p for p in params if not p.startswith("-")))
        for other, tag in TOOLS.items():
            if tag in shapes:
                shapes[other] = shapes[tag]
        return shapes

    def resolve(self, call: ToolCall) -> ToolCall:
        """The call under its real name, `call_tool` unwrapped, with the parameters' real names.

        What can't be unwrapped or put into our form gets an `error`; an unknown tool stays as it is.
        """
        tag = self._tag(call.name)
        if call.error is not None:
            return call if tag == call.name else msgspec.structs.replace(call, name=tag)
        args: Mapping[str, Any] = call.args
        if tag == CALL_TOOL and tag in self._kinds:
            unwrapped = self._unwrapped(args)
            if isinstance(unwrapped, CallError):
                return msgspec.structs.replace(call, name=tag, error=unwrapped)
            tag, args = unwrapped
        if tag == USE_MCP and self.outside is not None and tag in self._kinds:
            unwrapped = self.outside.unwrapped(args)
            if isinstance(unwrapped, CallError):
                return msgspec.structs.replace(call, name=tag, error=unwrapped)
            tag, args = unwrapped
        kind = self.get(tag)
        error = None
        if kind is not None:
            try:
                args = other_form(tag, self._renamed(kind, args))
            except _ParameterTwiceError as twice:
                error = CallError("repeated_parameter", str(twice))
            except OtherFormError as wrong:
                error = CallError("malformed", f"Not run: {wrong}.")
        if tag == call.name and args == call.args and error is None:
            return call
        return msgspec.structs.replace(call, name=tag, args=dict(args), error=error)

    def load_plugins(self, names: Sequence[str]) -> None:
        """Register the tools of the entry points that the configuration names.

        An entry point of the group `croze.tools` gives a tool class, a `ToolKind`, or several of them.
        Each must say what it touches, since by that it is asked about; none is part of the core. Raises
        ConfigError where one isn't installed, can't be imported or gives something else.
        """
        if not names:
            return
        from importlib.metadata import entry_points  # slow, and only where plugins are configured

        known = {point.name: point for point in entry_points(group=PLUGINS)}
        for name in names:
            if name not in known:
                listed = ", ".join(sorted(known)) or "none"
                raise ConfigError(
                    f"The tool plugin {name} is not installed.",
                    hint=f"Installed plugins of the group {PLUGINS}: {listed}.",
                    code="plugin_unknown",
                    plugin=name,
                )
            try:
                loaded = known[name].load()
            except (ImportError, AttributeError, SyntaxError) as error:
                raise ConfigError(
                    f"The tool plugin {name} can't be loaded: {error}",
                    hint="Repair it, or take it out of the configuration.",
                    code="plugin_broken",
                    plugin=name,
                ) from error
            for kind in loaded if isinstance(loaded, list | tuple) else (loaded,):
                self.register(_outside_the_core(_as_kind(name, kind)))

    def _tag(self, name: str) -> str:
        if name in self._kinds:
            return name
        return TOOLS[name] if name in TOOLS else self.outside.tag(name) if self.outside else name

    def _no_such_tool(self, name: str) -> UsageError:
        near = self.near(name)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(self.names)}."
        return UsageError(
            f"There is no tool named {name}.", hint=hint, code="unknown_tool", tool=name
        )

    @staticmethod
    def _parameter_names(kind: ToolKind) -> dict[str, str]:
        return {**PARAMS.get(kind.doc.name, {}), **kind.aliases}

    def _renamed(self, kind: ToolKind, args: Mapping[str, Any]) -> dict[str, Any]:
        real = kind.doc.parameters.get("properties", {})
        others = self._parameter_names(kind)
        out: dict[str, Any] = {}
        for name, value in args.items():
            mapped = name if name in real else others.get(name, name)
            if not mapped:
                continue
            if mapped in out:
                raise _ParameterTwiceError(
                    f"Not run: {mapped} is given twice, once as {name}. Give it once."
                )
            out[mapped] = value
        return out

    def _unwrapped(self, args: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | CallError:
        args = {PARAMS[CALL_TOOL].get(name, name): value for name, value in args.items()}
        name, inner = args.get("name"), args.get("arguments", {})
        if not isinstance(name, str) or not name.strip():
            return CallError("malformed", "Not run: call_tool needs the tool's name in name.")
        if extra := sorted(set(args) - {"name", "arguments"}):
            return CallError(
                "malformed",
                f"Not run: call_tool takes name and arguments only; put {', '.join(extra)} into arguments.",
            )
        tag = self._tag(name.strip())
        if tag == CALL_TOOL:
            return CallError("malformed", "Not run: call_tool can't call itself.")
        if isinstance(inner, str):
            try:
                inner = msgspec.json.decode(inner) if inner.strip() else {}
            except msgspec.DecodeError as error:
                return CallError("malformed", f"Not run: arguments is not valid JSON: {error}.")
        if not isinstance(inner, dict):
            return CallError("malformed", "Not run: arguments must be one JSON object.")
        return tag, inner


class _ParameterTwiceError(ValueError):
    pass


def _class_kind(tool: type[Tool]) -> ToolKind:
    return ClassKind(tool=tool, doc=tool_doc(tool), aliases=tool.spec.aliases)


def _less(outside: Outside | None, names: Sequence[str]) -> Outside | None:
    return outside.without(names) if outside is not None and names else outside


def _outside_the_core(kind: ToolKind) -> ToolKind:
    """A plugin's tool takes one line of the prefix, whatever it says of itself."""
    if kind.doc.core:
        kind.doc = msgspec.structs.replace(kind.doc, core=False)
    return kind


def _as_kind(plugin: str, kind: Any) -> ToolKind:
    if isinstance(kind, type) and issubclass(kind, Tool) and hasattr(kind, "spec"):
        kind = _class_kind(kind)
    if isinstance(getattr(kind, "doc", None), ToolDoc) and hasattr(kind, "bind"):
        found: ToolKind = kind
        if found.doc.access == Access():
            raise ConfigError(
                f"The tool {found.doc.name} of the plugin {plugin} doesn't say what it touches.",
                hint="Its access must have read, write, exec or net; without it no question is asked.",
                code="plugin_broken",
                plugin=plugin,
            )
        return found
    raise ConfigError(
        f"The tool plugin {plugin} gives {type(kind).__name__}, which is no tool.",
        hint="An entry point must give a subclass of croze.tools.base.Tool or a ToolKind.",
        code="plugin_broken",
        plugin=plugin,
    )


def builtin() -> Registry:
    """The tools that croze comes with: every `Tool` class of the modules in `tools.builtin`."""
    registry = Registry()
    for name in _BUILTIN:
        module = importlib.import_module(f"croze.tools.builtin.{name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Tool) and "spec" in value.__dict__:
                registry.register(value)
    return registry
