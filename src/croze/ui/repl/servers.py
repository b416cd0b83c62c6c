"""`/mcp`: the servers of the project, and which of them run."""

from typing import TYPE_CHECKING

from croze.app.mcp_check import look_of
from croze.ui.cli.output import table_lines
from croze.ui.i18n import _
from croze.ui.servers import server_rows

if TYPE_CHECKING:
    from croze.app.app import App


def servers_of(app: "App") -> list[str]:
    """A line for each server."""
    running = frozenset(server.name for server in app.servers or () if server.running)
    rows = server_rows(look_of(app), running)
    return table_lines(rows) or [_("no MCP server is configured; `croze mcp add` adds one")]
