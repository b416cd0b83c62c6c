"""A result that the agent already has before its eyes is not shown to it a second time."""

from msgspec.structs import replace

from croze.text.tokens import estimate
from croze.tools.base import ToolContext
from croze.types.tool import Look, ToolResult, View

LEAST = 150
"""Tokens; results above this carry their message's id in the context, so that one can refer to them."""


def unless_visible(ctx: ToolContext, result: ToolResult) -> ToolResult:
    """`result`, or where its agent's present context shows the same in full, a word that says where.

    Asked twice in a row it is given whole, since the agent insists. In a task workspace it always is.
    """
    look = result.look
    if look is None or ctx.workspace.kind == "task":
        return result
    price = estimate(result.text) + estimate(result.message)
    shown_in = _shown_in(ctx, look)
    if price <= LEAST or not shown_in:
        return result
    what = result.message.rstrip(".")
    message = f"{what}: unchanged since message {shown_in[:8]}, which shows it in full."
    text = "Look there; a second call in a row shows it again."
    saved = price - estimate(message) - estimate(text)
    title = result.view.title if result.view is not None else result.message
    return replace(
        result,
        message=message,
        text=text,
        view=View(title=f"{title}, unchanged"),
        look=replace(look, unchanged=shown_in, saved=max(0, saved)),
    )


def _shown_in(ctx: ToolContext, look: Look) -> str:
    """The newest message that shows all of `look`, empty where there is none or it was just named."""
    for at, returned in enumerate(reversed(ctx.looked(look.key))):
        earlier = returned.look
        if earlier is None or not earlier.covers(look):
            continue
        if earlier.unchanged:
            if at == 0:
                return ""
            continue
        if returned.tokens > LEAST:
            return returned.message_id
    return ""
