"""A conversation as one row of a list."""

from croze.text.display import one_line
from croze.types.conversation import ConversationSummary
from croze.ui.cli.output import dollars, local_time
from croze.ui.sums import counted_messages

SHORT = 8
"""Characters of an id that lists show; every command takes the start of an id."""


def row_of(summary: ConversationSummary) -> tuple[str, ...]:
    """Id, time, size, cost, name and first words."""
    return (
        summary.id[:SHORT],
        local_time(summary.updated_at),
        counted_messages(summary.message_count),
        dollars(summary.cost),
        named(summary.id, summary.name),
        one_line(summary.first, 60),
    )


def named(session: str, name: str) -> str:
    """A conversation's name, empty where it only says the id again."""
    return "" if name.endswith(f" {session[:SHORT]}") else one_line(name, 40)
