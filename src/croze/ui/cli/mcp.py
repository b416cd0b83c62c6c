"""`croze mcp`: which MCP servers there are, adding and removing them, trying them, approving what they say, logging in."""

import asyncio
from typing import TYPE_CHECKING, Any

import click

from croze.text.display import one_line, safe
from croze.text.redact import redact
from croze.types.errors import UsageError
from croze.ui.cli.exits import Exit
from croze.ui.cli.framework import Command, LazyGroup, Number
from croze.ui.cli.state import State, pass_state
from croze.ui.cli.with_app import write_json
from croze.ui.i18n import _, explain_code, mark
from croze.ui.servers import server_rows

if TYPE_CHECKING:
    from croze.app.mcp_check import Check, Look, ToolSeen

_JSON = click.option("--json", "as_json", is_flag=True, help=mark("Print values for programs."))
_SHOWN = 40


@click.group(
    cls=LazyGroup,
    name="mcp",
    help=mark(
        "Servers of the Model Context Protocol, whose tools the agent may use.\n\n"
        "They stand in mcp.json in the folder of your configuration, and in .mcp.json of a project that you "
        "trust. Each is started when one of its tools is first needed."
    ),
)
def mcp() -> None:
    pass


def _look(state: State) -> "Look":
    from croze.app.mcp_check import look_of

    return look_of(state.open())


@mcp.command("list", cls=Command, help=mark("List the servers; none is started."))
@_JSON
@pass_state
def list_servers(state: State, as_json: bool) -> int:
    look = _look(state)
    entries = look.found.entries
    if as_json:
        import msgspec

        from croze.app.mcp_check import known_tools

        rows = [{**msgspec.to_builtins(each), "tools": known_tools(look, each)} for each in entries]
        return write_json(state, rows)
    if not entries:
        state.out.note(_("no MCP server is configured; `croze mcp add` adds one"))
        return Exit.DONE
    state.out.table(server_rows(look))
    return Exit.DONE


@mcp.command(
    "add",
    cls=Command,
    context_settings={"ignore_unknown_options": True},
    help=mark(
        "Add a server to your mcp.json: a program with its arguments, or an address.\n\n"
        "Examples: croze mcp add files -- npx -y @modelcontextprotocol/server-filesystem .; "
        "croze mcp add docs https://example.org/mcp. What is secret goes in as ${NAME}, to be taken from the "
        "environment."
    ),
)
@click.argument("name")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--env", "-e", multiple=True, metavar="NAME=VALUE",
    help=mark("A variable for the program."),
)  # fmt: skip
@click.option(
    "--header", multiple=True, metavar="'NAME: VALUE'", help=mark("A header for the address.")
)
@click.option(
    "--timeout", type=Number(whole=False),
    help=mark("Seconds in which a call has to answer (60)."),
)  # fmt: skip
@click.option(
    "--project", is_flag=True,
    help=mark("Write .mcp.json of this project instead, and trust it as it then is."),
)  # fmt: skip
@pass_state
def add(
    state: State,
    name: str,
    command: tuple[str, ...],
    env: tuple[str, ...],
    header: tuple[str, ...],
    timeout: float | None,
    project: bool,
) -> int:
    from croze.app.mcp import add_server

    entry: dict[str, Any] = {}
    if len(command) == 1 and command[0].startswith(("http://", "https://")):
        entry["url"] = command[0]
        if header:
            entry["headers"] = dict(_pair(each, ":", "--header") for each in header)
    else:
        entry = {"command": command[0], "args": list(command[1:])}
        if env:
            entry["env"] = dict(_pair(each, "=", "--env") for each in env)
    if timeout is not None:
        entry["timeout"] = timeout
    path = add_server(state.open().config, name, entry, project=project)
    state.out.note(
        _("{server}: added to {path}; `croze mcp test {server}` tries it", server=name, path=path)
    )
    return Exit.DONE


def _pair(text: str, sign: str, option: str) -> tuple[str, str]:
    name, found, value = text.partition(sign)
    if not found or not name.strip():
        raise UsageError(
            _("{option} can't be {value}", option=option, value=repr(text)),
            hint=_("allowed: {allowed}", allowed=f"NAME{sign}VALUE"),
            code="option_value",
        )
    return name.strip(), value.strip()


@mcp.command("remove", cls=Command, help=mark("Remove a server from the files that name it."))
@click.argument("name")
@pass_state
def remove(state: State, name: str) -> int:
    from croze.app.mcp import remove_server

    paths = remove_server(state.open().config, name)
    if not paths:
        raise UsageError(
            _("there is no MCP server named {server}", server=repr(name)),
            hint=_("`{command}` shows them", command="croze mcp list"),
            code="mcp_absent",
        )
    for path in paths:
        state.out.note(_("{server}: removed from {path}", server=name, path=path))
    return Exit.DONE


@mcp.command(
    "test",
    cls=Command,
    help=mark("Start a server and show what it has, how long it took, and what it says."),
)
@click.argument("name")
@_JSON
@pass_state
def test(state: State, name: str, as_json: bool) -> int:
    from croze.app.mcp_check import check

    found = asyncio.run(check(_look(state), name))
    if as_json:
        write_json(state, found)
    else:
        _show(state, found)
    return Exit.FAILED if found.failure else Exit.DONE


def _show(state: State, found: "Check") -> None:
    out = state.out
    out.line(f"{found.name}: {one_line(found.where, 300)}")
    if found.failure:
        text, hint = explain_code(found.code, found.failure, found.hint, {"server": found.name})
        out.error(text, hint)
    else:
        out.line(
            _(
                "ready after {seconds:.2f} s, tools listed after {listed:.2f} s more; {server}, protocol {protocol}",
                seconds=found.seconds,
                listed=found.listed_seconds,
                server=" ".join(filter(None, [found.server, found.version])) or "?",
                protocol=found.protocol,
            )
        )
        _show_lists(state, found)
    for note in found.notes:
        out.line(_("note: {note}", note=one_line(note, 300)))
    for title, lines in (
        (_("what it logged:"), found.said),
        (_("what it wrote to standard error:"), tuple(found.errors.splitlines())),
    ):
        if lines:
            out.line(title)
            for line in lines[-_SHOWN:]:
                out.line(f"  {one_line(redact(line)[0], 300)}")


def _show_lists(state: State, found: "Check") -> None:
    out = state.out
    standings = {
        "known": "",
        "new": "",
        "changed": _("(changed: `croze mcp approve {server}`)", server=found.name),
        "doubtful": _("(doubtful: `croze mcp approve {server}`)", server=found.name),
        "unusable": _("(can't be called)"),
    }
    out.line(_("{count} tools", count=len(found.tools)))
    out.table([(f"  {t.name}", t.summary, standings[t.standing]) for t in found.tools])
    for title, lines in (
        (_("{count} resources", count=len(found.resources)), found.resources),
        (_("{count} prompts", count=len(found.prompts)), found.prompts),
    ):
        out.line(title)
        for line in lines[:_SHOWN]:
            out.line(f"  {one_line(line.removeprefix('- '), 200)}")
        if len(lines) > _SHOWN:
            out.line(_("  … and {count} more", count=len(lines) - _SHOWN))


@mcp.command(
    "approve",
    cls=Command,
    help=mark(
        "Show what a server says differently of its tools, or hides in it, and approve that.\n\n"
        "Until then these tools are not called."
    ),
)
@click.argument("name")
@click.argument("tools", nargs=-1)
@click.option("--yes", "-y", is_flag=True, help=mark("Approve without a question."))
@pass_state
def approve(state: State, name: str, tools: tuple[str, ...], yes: bool) -> int:
    from croze.app import mcp_check

    look = _look(state)
    waiting = asyncio.run(mcp_check.to_approve(look, name, tools))
    if not waiting:
        state.out.note(_("{server}: nothing waits for approval", server=name))
        return Exit.DONE
    for tool in waiting:
        _show_waiting(state, tool)
    if not yes and not _agreed(state, name):
        raise UsageError(
            _("nothing was approved"),
            hint=_("`{command}` approves it", command=f"croze mcp approve --yes {name}"),
            code="mcp_not_approved",
        )
    mcp_check.approve(look, name, waiting)
    state.out.note(
        _("{server}: approved: {tools}", server=name, tools=", ".join(t.name for t in waiting))
    )
    return Exit.DONE


def _show_waiting(state: State, tool: "ToolSeen") -> None:
    changed = tool.standing == "changed"
    title = _("{tool} has changed:") if changed else _("{tool} says something doubtful:")
    state.out.line(title.format(tool=one_line(tool.name, 100)))
    for line in tool.difference.splitlines():
        state.out.line(f"  {line}")
    if tool.doubts:
        state.out.line(_("look at: {doubts}", doubts=safe(", ".join(tool.doubts))))


def _agreed(state: State, name: str) -> bool:
    import sys

    if sys.stdin is None or not sys.stdin.isatty():
        return False
    state.out.note(_("approve this for {server}? [y/N] ", server=name), end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes", "j", "是")


@mcp.command(
    "login",
    cls=Command,
    help=mark("Log in to a server with an address, by OAuth in the browser."),
)
@click.argument("name")
@click.option("--forget", is_flag=True, help=mark("Remove what a login has left instead."))
@pass_state
def login(state: State, name: str, forget: bool) -> int:
    from croze.app import mcp_check

    look = _look(state)
    if forget:
        done = mcp_check.forget_login(look, name)
        gone = _("{server}: the login is forgotten", server=name)
        state.out.note(gone if done else _("{server}: there was no login", server=name))
        return Exit.DONE

    def show(url: str) -> None:
        state.out.note(_("open this address in a browser on this machine:"))
        state.out.line(url)

    asyncio.run(mcp_check.log_in(look, name, show))
    state.out.note(_("{server}: logged in", server=name))
    return Exit.DONE
