"""The cached folds in the `sessions` table: load them, bring them up to date, add the children's cost."""

import sqlite3
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from croze.store import rows
from croze.store.fold import fold
from croze.store.log import store_summary
from croze.types.conversation import ConversationSummary

S = TypeVar("S", bound=ConversationSummary)


def load(session: str, text: str) -> ConversationSummary:
    """The cached fold; one that can't be read is a bare one."""
    try:
        return msgspec.json.decode(text, type=ConversationSummary)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return ConversationSummary(id=session, name=f"Conversation {session[:8]}")


def refresh(connection: sqlite3.Connection) -> None:
    """Bring the folds of sessions that may have grown up to date. While somebody else is writing, or
    the disk is full, they stay as they are: older figures do for a list."""
    stale = connection.execute("SELECT num, id, last_seq FROM sessions WHERE stale").fetchall()
    for num, session, last_seq in stale:
        if rows.last_seq(connection, num) == last_seq:
            continue
        events = (rows.decode(session, row) for row in rows.rows_after(connection, num, 0))
        summary = fold(events, session).summary()
        try:
            store_summary(connection, num, summary, settled=False)
        except sqlite3.OperationalError:
            return


def descendants(connection: sqlite3.Connection, session: str) -> list[tuple[str, str]]:
    """The session's children and theirs, as (id, cached fold)."""
    return connection.execute(
        """WITH RECURSIVE family(id) AS (
               SELECT id FROM sessions WHERE parent = ?
               UNION SELECT s.id FROM sessions s JOIN family f ON s.parent = f.id)
           SELECT s.id, s.summary FROM family f JOIN sessions s ON s.id = f.id""",
        (session,),
    ).fetchall()


def children_costs(connection: sqlite3.Connection, sessions: Sequence[str]) -> dict[str, float]:
    """What each session's descendants cost, where anything is known."""
    costs: dict[str, float] = {}
    for session in sessions:
        for child, text in descendants(connection, session):
            cost = load(child, text).cost
            if cost is not None:
                costs[session] = costs.get(session, 0.0) + cost
    return costs


def with_children(summary: S, children: float | None) -> S:
    """The summary with its children's cost, under its own name and in the total."""
    if children is None:
        return summary
    return msgspec.structs.replace(
        summary, children_cost=children, cost=(summary.cost or 0.0) + children
    )
