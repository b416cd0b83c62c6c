"""Sessions in files: one JSON file a conversation, a folder of them, and events as JSON lines."""

import base64
import contextlib
import os
import typing
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from croze.store import blobs, summaries
from croze.store.compose import Draft, body_of
from croze.store.conversations import Conversations
from croze.store.files import storage_error
from croze.store.rows import StoredEvent
from croze.store.store import Store
from croze.types.conversation import Content, Conversation, ConversationMessage, LlmMetadata
from croze.types.errors import (
    ConversationExists,
    ConversationNotFound,
    CrozeError,
    StoreError,
)
from croze.types.event import (
    Annotated,
    Body,
    Notice,
    SessionOpened,
    body_version,
    encode_body,
)

CURRENT_NAME = "current_conversations.json"
LINES_FORMAT = "croze-events"
LINES_VERSION = 1
FAMILY_VERSION = 2
"""With sub-agents' sessions after the first one."""
LAST_MOMENT = 253_402_300_799_999_999
"""The end of the year 9999 in microseconds: the last time that can be written out."""

_Whole = typing.Annotated[int, msgspec.Meta(ge=0, le=LAST_MOMENT)]


class _FileMessage(Struct):
    role: str
    content: Content
    message_id: str = ""
    created_at: str | float | None = None
    metadata: dict[str, Any] | None = None
    llm_metadata: dict[str, Any] | None = None


class _FileConversation(Struct):
    id: str = ""
    name: str = ""
    description: str | None = None
    created_at: str | float | None = None
    updated_at: str | float | None = None
    metadata: dict[str, Any] | None = None
    namespace: str | None = None
    messages: list[_FileMessage] = field(default_factory=list)


class _Header(Struct, tag_field="kind", tag="session"):
    format: str
    version: int
    session: str


class _Line(Struct, tag_field="kind", tag="event"):
    """`body` is the stored JSON, byte for byte; `raw` (base64) stands where it is no JSON."""

    seq: int
    at: _Whole
    type: str
    v: _Whole
    body: msgspec.Raw = msgspec.Raw(b"null")
    raw: str = ""


class _Blob(Struct, tag_field="kind", tag="blob"):
    hash: str
    data: str


class Imported(Struct, frozen=True):
    """What an import of a folder did: the new conversations' ids, and what was left out and why."""

    sessions: tuple[str, ...]
    problems: tuple[Notice, ...]


def iso(at: int) -> str:
    """Microseconds since the epoch as ISO 8601 in UTC."""
    seconds, rest = divmod(min(max(at, 0), LAST_MOMENT), 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest).isoformat()


def microseconds(value: str | float | None, default: int) -> int:
    """A file's time (ISO 8601, UTC where no zone is named, or seconds since the epoch); `default`
    where it is none."""
    if value is None:
        return default
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            found = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        else:
            found = int(value * 1_000_000)
    except (ValueError, OverflowError):
        return default
    return found if 0 <= found <= LAST_MOMENT else default


def conversation_json(conversation: Conversation) -> bytes:
    """The file of one conversation, indented, ending with a newline."""
    value = {
        "id": conversation.id,
        "name": conversation.name,
        "description": conversation.description,
        "created_at": iso(conversation.created_at),
        "updated_at": iso(conversation.updated_at),
        "metadata": conversation.metadata,
        "namespace": conversation.namespace,
        "messages": [_message_value(message) for message in conversation.messages],
    }
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _message_value(message: ConversationMessage) -> dict[str, Any]:
    return {
        "message_id": message.message_id,
        "role": message.role,
        "content": message.content,
        "created_at": iso(message.created_at),
        "metadata": message.metadata,
        "llm_metadata": message.llm_metadata,
    }


async def export_json(conversations: Conversations, session: str, path: Path) -> Conversation:
    """Write one conversation's file (0600, replaced whole); gives the conversation."""
    conversation = await conversations.get(session)
    _write(path, conversation_json(conversation))
    return conversation


async def export_folder(conversations: Conversations, folder: Path) -> tuple[str, ...]:
    """Write every conversation as `<id>.json`, and which is current in each namespace; gives the
    ids. Sub-agents' sessions stay out."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(error, folder) from error
    ids: list[str] = []
    while page := await conversations.list(limit=200, offset=len(ids)):
        for summary in page:
            await export_json(conversations, summary.id, folder / f"{summary.id}.json")
            ids.append(summary.id)
    places = await conversations.namespaces()
    current = {name: session for name, session in places.items() if session}
    data = msgspec.json.format(msgspec.json.encode(current), indent=2)
    _write(folder / CURRENT_NAME, data + b"\n")
    return tuple(ids)


async def import_json(
    store: Store, path: Path, *, namespace: str | None = None, new_id: bool = False
) -> str:
    """A conversation from its file; gives its id. `new_id` gives it another than the file's.

    Raises `ConversationExists` for an id that is taken, `StoreError` for a file that is none.
    """
    try:
        found = msgspec.json.decode(_read(path), type=_FileConversation)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise _no_file(path, f"it is no conversation: {error}") from error
    source = store.source
    session = source.uuid() if new_id or not found.id else found.id
    created = microseconds(found.created_at, source.now())
    bodies: list[tuple[int, Body]] = [
        (
            created,
            SessionOpened(
                name=found.name or f"Conversation {session[:8]}",
                description=found.description or "",
                metadata=found.metadata or {},
                namespace=namespace or found.namespace or store.settings.default_namespace,
            ),
        )
    ]
    for message in found.messages:
        at = microseconds(message.created_at, bodies[-1][0])
        bodies.append((at, body_of(_draft(message, path), source)))
    updated = microseconds(found.updated_at, 0)
    if updated > max(at for at, _ in bodies):
        bodies.append((updated, Annotated()))
    stored = [
        StoredEvent(seq, at, type(body).__name__, body_version(body), encode_body(body))
        for seq, (at, body) in enumerate(bodies, start=1)
    ]
    with closing(await store.create_from(stored, session=session)):
        await store.database.sync()
    return session


def _draft(message: _FileMessage, path: Path) -> Draft:
    llm = None
    if message.llm_metadata is not None:
        try:
            llm = msgspec.convert(message.llm_metadata, LlmMetadata, strict=False)
        except msgspec.ValidationError as error:
            raise _no_file(path, f"llm_metadata of {message.message_id!r}: {error}") from error
    return Draft(
        role=message.role,
        content=message.content,
        metadata=message.metadata or {},
        llm_metadata=llm,
        message_id=message.message_id,
    )


async def import_folder(store: Store, folder: Path) -> Imported:
    """All conversations of a folder; a file that can't be taken is named and left out."""
    if not folder.is_dir():
        raise _no_file(folder, "there is no such folder")
    problems: list[Notice] = []
    current: dict[str, str] = {}
    listing = folder / CURRENT_NAME
    if listing.exists():
        try:
            current = msgspec.json.decode(_read(listing), type=dict[str, str])
        except (msgspec.DecodeError, msgspec.ValidationError, StoreError) as error:
            problems.append(_problem(listing, str(error)))
    places = {session: name for name, session in current.items()}
    sessions: list[str] = []
    for path in sorted(folder.glob("*.json")):
        if path.name == CURRENT_NAME:
            continue
        try:
            place = places.get(path.stem)
            sessions.append(await import_json(store, path, namespace=place))
        except CrozeError as error:
            problems.append(_problem(path, error.message))
    conversations = Conversations(store)
    for name, session in current.items():
        try:
            await conversations.set_current(session, namespace=name)
        except ConversationNotFound as error:
            problems.append(_problem(listing, error.message))
    return Imported(sessions=tuple(sessions), problems=tuple(problems))


async def export_events(store: Store, session: str, path: Path) -> int:
    """Write a session's events as JSON lines, with the blobs that they mention, and after it its
    sub-agents' sessions in the same way; gives the number of its own events.

    Bodies are copied byte for byte, so an import has the same logs.
    """
    session = await store.resolve(session)
    below = await store.database.aside(lambda each: summaries.descendants(each, session))
    version = FAMILY_VERSION if below else LINES_VERSION
    family: list[list[Struct]] = []
    for member in (session, *(child for child, _ in below)):
        stored = await store.read_stored(member)
        hashes: set[bytes] = set()
        for event in stored:
            hashes |= blobs.mentioned(event.raw)
        lines: list[Struct] = [_Header(format=LINES_FORMAT, version=version, session=member)]
        for digest in sorted(hashes):
            try:
                data = await store.blob(digest.hex())
            except StoreError:
                continue
            lines.append(_Blob(hash=digest.hex(), data=base64.b64encode(data).decode()))
        family.append([*lines, *map(_line, stored)])
    rows = (msgspec.json.encode(line) + b"\n" for lines in family for line in lines)
    _write(path, b"".join(rows))
    return sum(isinstance(line, _Line) for line in family[0])


def _line(event: StoredEvent) -> _Line:
    line = _Line(seq=event.seq, at=event.at, type=event.type, v=event.v)
    try:
        msgspec.json.decode(event.raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        line.raw = base64.b64encode(event.raw).decode()
    else:
        if b"\n" in event.raw:
            line.raw = base64.b64encode(event.raw).decode()
        else:
            line.body = msgspec.Raw(event.raw)
    return line


async def import_events(store: Store, path: Path, *, new_id: bool = False) -> str:
    """A session from its JSON lines, with its sub-agents'; gives its id. Of these, one that is there
    already stays as it is. With `new_id` they stay out: their records name the id that it had. Raises
    `ConversationExists`, `StoreError`."""
    family: list[tuple[str, list[StoredEvent]]] = []
    for number, line in _lines(path):
        match line:
            case _Header():
                if line.format != LINES_FORMAT or line.version > FAMILY_VERSION:
                    raise _no_file(path, f"format {line.format} {line.version} is not known")
                family.append((line.session, []))
            case _Blob():
                await store.put_blob(base64.b64decode(line.data))
            case _Line():
                if not family:
                    break
                stored = family[-1][1]
                if line.seq != len(stored) + 1:
                    problem = f"line {number}: event {len(stored) + 1} is missing"
                    raise _no_file(path, problem)
                raw = base64.b64decode(line.raw) if line.raw else bytes(line.body)
                stored.append(StoredEvent(line.seq, line.at, line.type, line.v, raw))
    if not family or any(
        not stored or stored[0].type != SessionOpened.__name__ for _, stored in family
    ):
        raise _no_file(path, "it does not begin with a session's first event")
    (named, own), *below = family
    session = store.source.uuid() if new_id else named
    with closing(await store.create_from(own, session=session)):
        for child, stored in () if new_id else below:
            with contextlib.suppress(ConversationExists):
                (await store.create_from(stored, session=child)).close()
        await store.database.sync()
    return session


def _lines(path: Path) -> Iterator[tuple[int, _Header | _Line | _Blob]]:
    decoder = msgspec.json.Decoder(_Header | _Line | _Blob)
    for number, line in enumerate(_read(path).split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            yield number, decoder.decode(line)
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
            raise _no_file(path, f"line {number}: {error}") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _no_file(path, os.strerror(error.errno or 0)) from error


def _write(path: Path, data: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(fd)
            partial.rename(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise storage_error(error, path.parent) from error


def _no_file(path: Path, reason: str) -> StoreError:
    return StoreError(f"{path} can't be imported: {reason}", code="import", path=str(path))


def _problem(path: Path, text: str) -> Notice:
    return Notice(level="warning", code="import", text=text, params={"path": str(path)})
