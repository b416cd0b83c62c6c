"""The MCP servers as people see them: what became of each entry, on the command line and in the chat."""

from typing import TYPE_CHECKING

from croze.ui.i18n import _

if TYPE_CHECKING:
    from croze.app.mcp_check import Look


def server_rows(look: "Look", running: frozenset[str] = frozenset()) -> list[tuple[str, ...]]:
    """A row for each entry: name, whose it is, its state, how many tools it had last, what is started or reached."""
    from croze.app.mcp_check import known_tools

    states = {
        "usable": _("usable"),
        "disabled": _("disabled"),
        "untrusted": _("not trusted, so not used"),
        "shadowed": _("not used: yours has the same name"),
        "broken": _("not usable"),
    }
    rows: list[tuple[str, ...]] = []
    for each in look.found.entries:
        count = known_tools(look, each)
        state = states[each.state]
        if each.state == "usable" and each.name in running:
            state = _("running")
        tools = "" if count is None else _("{count} tools", count=count)
        what = f"{state}: {each.reason}" if each.reason else state
        rows.append((each.name, each.source, what, tools, each.where))
    return rows
