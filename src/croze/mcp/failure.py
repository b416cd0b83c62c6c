"""What goes wrong with a server, told so that a person or a model can act on it."""

from croze.types.errors import CrozeError


class McpError(CrozeError):
    """A server could not be started or reached, ended, or answered with an error.

    Codes: `mcp_unknown`, `mcp_start`, `mcp_ended`, `mcp_timeout`, `mcp_refused`, `mcp_login`, `mcp_waiting`,
    `mcp_distrust`, `mcp_pins`.
    """

    code = "mcp"
