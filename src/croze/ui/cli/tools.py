"""`croze tools`: every tool that an agent could use, where it comes from, and making one."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from croze.app.new_tool import LANGUAGES
from croze.text.display import one_line, safe
from croze.types.errors import UsageError
from croze.ui.cli.exits import Exit
from croze.ui.cli.framework import Command, LazyGroup, Pick
from croze.ui.cli.state import State, pass_state
from croze.ui.cli.with_app import write_json
from croze.ui.findings import because, states
from croze.ui.i18n import _, mark

if TYPE_CHECKING:
    from croze.knowledge.external_tools import ExternalTool

_JSON = click.option("--json", "as_json", is_flag=True, help=mark("Print values for programs."))


@click.group(
    cls=LazyGroup,
    name="tools",
    help=mark(
        "The tools that agents use: built in, from plugins, of MCP servers, and external ones: your own "
        "programs in .croze/tools of a project or tools in the folder of your configuration."
    ),
)
def tools() -> None:
    pass


@tools.command(
    "list",
    cls=Command,
    help=mark(
        "List the tools with what they may do and where they come from. External ones that have not been asked "
        "for their help yet are asked now, in the sandbox."
    ),
)
@_JSON
@pass_state
def list_tools(state: State, as_json: bool) -> int:
    from croze.app.external_tools import asked_tools
    from croze.app.tool_list import listed

    app = state.open()
    external = asyncio.run(asked_tools(app.config, app.env))
    rows = listed(app, external)
    if as_json:
        return write_json(state, rows)
    titles = {
        "builtin": _("built in"),
        "plugin": _("from plugins"),
        "mcp": _("of MCP servers, as far as they have been used"),
        "external": _("external"),
    }
    names = states()
    for kind, title in titles.items():
        of_kind = [row for row in rows if row["kind"] == kind]
        if of_kind:
            state.out.line(f"{title}:")
            state.out.table([_row(row, names) for row in of_kind])
    if not external:
        state.out.note(
            _("there are no external tools; `{command}` makes one", command="croze tools new NAME")
        )
    return Exit.DONE


def _row(row: dict[str, Any], names: dict[str, str]) -> tuple[str, ...]:
    name = f"  {safe(row['name'])}"
    access = ", ".join(row["access"]) or "-"
    if row["kind"] != "external":
        core = _("core") if row["core"] else ""
        return name, access, core, one_line(row["summary"], 90)
    reason = because(row["reason"])
    told = reason or one_line(row["summary"], 90)
    return name, access, names[row["state"]], one_line(row["path"], 60), told


@tools.command(
    "show",
    cls=Command,
    help=mark(
        "Show one tool: what agents are told of it. An external one is asked for its help anew."
    ),
)
@click.argument("name")
@pass_state
def show(state: State, name: str) -> int:
    from croze.app.external_tools import asked_tools, is_named
    from croze.app.tool_list import described

    app = state.open()
    text = described(app, name)
    if text is not None:
        state.out.line(text)
        return Exit.DONE
    external = asyncio.run(asked_tools(app.config, app.env, name))
    named = [tool for tool in external if is_named(tool, name)]
    if not named:
        raise UsageError(
            _("There is no tool named {name}.", name=repr(name)),
            hint=_("`{command}` shows them", command="croze tools list"),
            code="no_such_tool",
        )
    for tool in named:
        _show(state, tool, app.config.project.root)
    return Exit.DONE


def _show(state: State, tool: "ExternalTool", root: Path) -> None:
    out, found = state.out, tool.found
    out.line(f"{found.path}: {states()[found.state]}")
    problem = tool.problem or found.reason or tool.help.problem
    if problem:
        out.line(f"  {because(problem)}")
    if tool.usable:
        out.line(_("  runs by: {command}", command=tool.command(root)))
    if tool.help.text:
        said = (
            _("from its comments")
            if tool.help.by == "comments"
            else _("what it says to {word}", word=tool.help.by)
        )
        out.line(f"  {said}:")
        for line in tool.help.text.split("\n"):
            out.line(f"    {line}")


@tools.command(
    "new",
    cls=Command,
    help=mark(
        "Make an external tool: a small program whose help works, for you to fill in. It is trusted as it then "
        "is; after a change `croze trust` trusts it again.\n\n"
        "Examples: croze tools new lint-sql; croze tools new deploy --from build/deploy --user"
    ),
)
@click.argument("name")
@click.option(
    "--lang",
    "language",
    type=Pick(LANGUAGES),
    default="py",
    help=mark("The language it is written in (py)."),
)
@click.option(
    "--from",
    "source",
    metavar="FILE",
    help=mark("Take this finished program or script instead."),
)
@click.option("--user", is_flag=True, help=mark("For all your projects, not for this one."))
@pass_state
def new(state: State, name: str, language: str, source: str | None, user: bool) -> int:
    from croze.app.external_tools import asked_tools, is_named
    from croze.app.new_tool import new_tool

    app = state.open()
    given = None if source is None else state.cwd / source
    path = new_tool(app.config, name, language, source=given, user=user)
    state.out.note(_("{tool}: written to {path}", tool=name, path=path))
    external = asyncio.run(asked_tools(app.config, app.env, name))
    made = next((tool for tool in external if is_named(tool, name) and tool.path == path), None)
    if made is not None:
        _show(state, made, app.config.project.root)
    return Exit.DONE if made is not None and made.usable and made.help.text else Exit.FAILED
