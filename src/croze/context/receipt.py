"""The receipt of a compaction: what was done in the part that it takes away, from the log alone."""

from collections.abc import Iterable, Sequence
from itertools import islice

from croze.context.account import Account, account
from croze.text.tokens import estimate
from croze.types.event import Event

HEADING = "[Receipt]"
LIMIT = 400
"""Tokens that a receipt takes at most."""

_SHORT = 80
_MOST = 12
_NEXT = "Next"
_List = tuple[str, Sequence[str], int]
_KINDS = {
    "read": ("read", "reads"),
    "list": ("listing", "listings"),
    "search": ("search", "searches"),
    "shell": ("command", "commands"),
    "edit": ("edit", "edits"),
    "web": ("page", "pages"),
    "other": ("other call", "other calls"),
}


def receipt(events: Iterable[Event], until: int) -> str:
    """What the log says was done up to the event `until`; empty where it says nothing.

    At most `LIMIT` tokens as estimated; what was done last is named first to stay. In brackets stand
    the first eight characters of the message ids by which `read_result` brings a result back.
    """
    return receipt_of(account(events, until))


def receipt_of(found: Account) -> str:
    """The receipt of an account."""
    lists = _lists(found)
    if not found.counts and not any(entries for _, entries, _ in lists):
        return ""
    most = _MOST
    text = _render(found, lists, most)
    while estimate(text) > LIMIT and most > 1:
        most -= 1
        text = _render(found, lists, most)
    while estimate(text) > LIMIT and "\n" in text:
        text = text.rpartition("\n")[0]
    return text


def short(text: str, limit: int = _SHORT) -> str:
    """`text` on one line, at most `limit` characters of it."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def _render(found: Account, lists: Sequence[_List], most: int) -> str:
    lines = [HEADING]
    done = [
        f"{count} {names[count != 1]}"
        for kind, names in _KINDS.items()
        if (count := found.counts.get(kind, 0))
    ]
    if done:
        lines.append(f"Done: {', '.join(done)}")
    for title, entries, count in lists:
        if not entries:
            continue
        shown = list(entries[:most])
        if count > len(shown):
            shown.append(f"{count - len(shown)} more")
        lines.append(f"{title}: {'; '.join(shown)}")
    if any("[" in entry for title, entries, _ in lists if title != _NEXT for entry in entries):
        lines.append("read_result brings a result back by the id in brackets.")
    return "\n".join(lines)


def _lists(found: Account) -> list[_List]:
    """What is listed: the title, the newest entries, and how many there are."""
    files = [
        f"{short(record.path)} {_change(record.kind, record.added, record.removed)}{_id(record.id)}"
        for record in islice(reversed(found.files.values()), 12)
    ]
    commands = [
        f"`{short(run.command)}` {_outcomes(run.outcomes)}{_id(run.id)}"
        for run in islice(reversed(found.runs.values()), 10)
    ]
    failures = [
        f"{short(failure.title)}: {short(failure.reason)}{_id(failure.id)}"
        for failure in islice(reversed(found.failures.values()), 6)
    ]
    pending = [
        f"{'(in work) ' if item.status == 'in_progress' else ''}{item.id}. {short(item.text)}"
        for item in found.pending[:8]
    ]
    return [
        ("Files changed", files, len(found.files)),
        ("Commands", commands, len(found.runs)),
        ("Failed and still open", failures, len(found.failures)),
        (_NEXT, pending, len(found.pending)),
    ]


def _change(kind: str, added: int, removed: int) -> str:
    lines = f"+{added} -{removed}"
    return lines if kind == "modified" else f"{kind} {lines}"


def _outcomes(outcomes: Sequence[str]) -> str:
    """The last outcome, and the one before it where it was another."""
    last = short(outcomes[-1], 40)
    times = f" ({len(outcomes)} runs)" if len(outcomes) > 1 else ""
    before = [short(outcome, 40) for outcome in outcomes if outcome != outcomes[-1]]
    return f"{before[-1]}, then {last}{times}" if before else f"{last}{times}"


def _id(message_id: str) -> str:
    return f" [{message_id[:8]}]" if message_id else ""
