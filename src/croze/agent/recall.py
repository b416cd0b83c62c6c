"""What was said and seen earlier in a session: looked up for the tools that work on the conversation."""

import re

from croze.agent.live import Live
from croze.context.ledger import Entry
from croze.text.redact import redact
from croze.tools.base import Remembered
from croze.types.errors import StoreError
from croze.types.event import FactAdded, ModelSaid, ToolReturned, Undone, UserSaid
from croze.types.parts import Image, Part, Text, ToolCall
from croze.types.team import Merged

_WIDTH = 90
_LEAST = 4
"""Characters of a session's id."""
_KEPT = re.compile(r"\(kept as ([0-9a-f]{12})\)")
_SUBJECTS = ("path", "target_file", "source", "command", "regex", "pattern", "query", "id", "url")


def remembered(live: Live) -> tuple[Remembered, ...]:
    """The messages of the session's log as it stands, oldest first."""
    return tuple(
        Remembered(
            id=entry.id,
            kind=entry.kind,
            what=_what(live, entry),
            tokens=entry.tokens,
            full=entry.full,
            standing=entry.standing,
            call_id=entry.call_id,
        )
        for entry in live.ledger.entries
    )


async def stored_text(live: Live, message_id: str) -> str:
    """All that the log and its blobs hold of a message, in words; empty where it isn't in the log. By the
    id of a sub-agent's session (or its beginning) the patch of what that one did in a copy of its own."""
    entry = live.ledger.by_id.get(message_id)
    if entry is None:
        return await _patch(live, message_id.lower())
    match live.log.events[entry.seq - 1].body:
        case ToolReturned() as body:
            return await _whole(live, body) or body.message
        case UserSaid() | ModelSaid() as body:
            return "\n".join(text for part in body.parts if (text := _words(part)))
        case FactAdded() | Undone() as body:
            return body.text
        case _:
            return ""


async def _patch(live: Live, child: str) -> str:
    """The work of the one sub-agent whose id begins so, as its last merge kept it."""
    merges = [event.body for event in live.log.events if isinstance(event.body, Merged)]
    found = {each.child: each.patch for each in merges if each.child.startswith(child)}
    if len(child) < _LEAST or len(found) != 1:
        return ""
    (digest,) = found.values()
    if not digest:
        return ""
    try:
        return redact((await live.blobs.blob(digest)).decode("utf-8", "replace"))[0]
    except StoreError as error:
        return f"[The patch can't be read any more: {error.message}]"


async def _whole(live: Live, body: ToolReturned) -> str:
    """A result's text before it was cut. Logs from before `whole` name the blob in their note only."""
    digest = body.whole
    if not digest and (note := _KEPT.search(body.truncated or "")):
        digest = next((blob for blob in body.blobs if blob.startswith(note[1])), "")
    if not digest:
        return body.text
    try:
        return (await live.blobs.blob(digest)).decode("utf-8", "replace")
    except StoreError as error:
        return f"{body.text}\n[What was left out can't be read any more: {error.message}]"


def _what(live: Live, entry: Entry) -> str:
    if entry.kind == "result":
        subject = next((str(entry.args[key]) for key in _SUBJECTS if entry.args.get(key)), "")
        failed = "" if entry.ok else " (failed)"
        return _line(f"{entry.name} {subject}") + failed
    match live.log.events[entry.seq - 1].body:
        case UserSaid() as body:
            return _line("user: " + " ".join(_words(part) for part in body.parts))
        case ModelSaid() as body:
            calls = ", ".join(part.name for part in body.parts if isinstance(part, ToolCall))
            said = " ".join(part.text for part in body.parts if isinstance(part, Text))
            return _line(f"your reply: {said}") + (f" [{calls}]" if calls else "")
        case FactAdded() as body:
            return _line(f"{body.key}: {body.reason}")
        case _:
            return entry.key


def _words(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case ToolCall(raw=raw, name=name):
            return raw if raw.lstrip().startswith("<") else f"{name} {raw}"
        case Image(media_type=media_type):
            return f"[image, {media_type}]"
        case _:
            return ""


def _line(text: str) -> str:
    line = " ".join(text[: _WIDTH * 8].split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
