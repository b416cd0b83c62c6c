"""Conversations: the operations on sessions that need no running agent."""

import builtins
import contextlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import msgspec

from croze.store import blobs, names, rows, search, summaries
from croze.store.cache import FoldCache
from croze.store.compose import Draft, body_of
from croze.store.db import transaction
from croze.store.fold import fold
from croze.store.fork import branch_of, find_message
from croze.store.store import Store
from croze.types.conversation import (
    Content,
    Conversation,
    ConversationSummary,
    LlmMetadata,
    SearchHit,
    StoreStatistics,
)
from croze.types.event import Annotated, Event
from croze.types.model import Cost, Usage

QUICK = 0.2
"""Seconds that a read waits for the lock it needs to cache a fold; without it, nothing is cached."""


class Conversations:
    """What a front end does with conversations. Ids may be given by a unique beginning."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cache = FoldCache(store.settings.max_cache_size, store.settings.cache_ttl)
        self._created = 0
        self._loaded = 0

    async def create(
        self,
        *,
        name: str | None = None,
        description: str = "",
        namespace: str | None = None,
        project: str = "",
        metadata: dict[str, Any] | None = None,
        messages: Sequence[Draft] = (),
        session_id: str | None = None,
    ) -> Conversation:
        """A new conversation with its first messages. Raises `ConversationExists`."""
        log = await self._store.create(
            name=name,
            description=description,
            namespace=namespace,
            project=project,
            metadata=metadata,
            session_id=session_id,
        )
        with closing(log):
            if messages:
                bodies = [body_of(draft, self._store.source) for draft in messages]
                await log.append(*bodies, durable=True)
            self._created += 1
            return fold(log.events).conversation()

    async def get(self, session: str) -> Conversation:
        """A conversation with its transcript; its cost includes its sub-agents'."""
        session = await self._store.resolve(session)

        def last(connection: sqlite3.Connection) -> int:
            return rows.last_seq(connection, names.number(connection, session))

        found = self._cache.get(session, await self._store.database.write(last))
        if found is None:
            found = fold(await self._store.read(session), session).conversation()
            self._cache.put(found)
            self._loaded += 1
        children = await self._store.database.aside(
            lambda connection: summaries.children_costs(connection, [session])
        )
        return summaries.with_children(found, children.get(session))

    async def list(
        self,
        *,
        limit: int = 50,
        offset: int = 0,
        namespace: str | None = None,
        include_children: bool = False,
    ) -> list[ConversationSummary]:
        """Summaries, newest first."""

        def work(connection: sqlite3.Connection) -> list[ConversationSummary]:
            summaries.refresh(connection)
            found = connection.execute(
                """SELECT id, summary FROM sessions
                   WHERE (?1 IS NULL OR namespace = ?1) AND (?2 OR parent IS NULL)
                   ORDER BY updated DESC, num DESC LIMIT ?3 OFFSET ?4""",
                (namespace, include_children, limit, offset),
            ).fetchall()
            page = [summaries.load(session, text) for session, text in found]
            costs = summaries.children_costs(connection, [summary.id for summary in page])
            return [summaries.with_children(each, costs.get(each.id)) for each in page]

        return await self._store.database.aside(work, wait=QUICK)

    async def rename(self, session: str, name: str) -> Event:
        return await self.annotate(session, name=name)

    async def annotate(
        self,
        session: str,
        *,
        message_id: str | None = None,
        content: str | None = None,
        metadata: dict[str, Any] | None = None,
        name: str | None = None,
        description: str | None = None,
        usage: Usage | None = None,
        cost: Cost | None = None,
    ) -> Event:
        """Revise a message (content replaced, metadata merged, figures set) or, without one, the
        conversation. Raises `MessageNotFound`."""
        if message_id is not None:
            message_id = find_message(await self.get(session), message_id).message_id
        body = Annotated(
            target=message_id,
            content=content,
            metadata=metadata or {},
            name=name,
            description=description,
            usage=usage,
            cost=cost,
        )
        return await self._store.annotate(session, body)

    async def append_message(
        self,
        session: str,
        role: str,
        content: Content,
        *,
        metadata: dict[str, Any] | None = None,
        llm_metadata: LlmMetadata | None = None,
    ) -> str:
        """Add a message and give its id. Raises `SessionBusy` while the session is being run."""
        draft = Draft(
            role=role, content=content, metadata=metadata or {}, llm_metadata=llm_metadata
        )
        body = body_of(draft, self._store.source)
        with closing(await self._store.open_log(session)) as log:
            await log.append(body, durable=True)
        return body.message_id

    async def delete(self, session: str) -> None:
        """Remove a conversation and its sub-agents' with their index entries and the blobs that
        nobody else mentions; backups keep theirs. Raises `SessionBusy` while one of them runs."""
        session = await self._store.resolve(session)
        before = self._store.source.now()

        def family(connection: sqlite3.Connection) -> builtins.list[str]:
            return [session, *(child for child, _ in summaries.descendants(connection, session))]

        def remove(connection: sqlite3.Connection) -> set[bytes]:
            candidates: set[bytes] = set()
            with transaction(connection):
                for member in members:
                    candidates |= _remove(connection, member)
            return candidates

        def tidy(connection: sqlite3.Connection) -> None:
            blobs.purge(connection, candidates, before=before)
            search.compact(connection)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

        members = await self._store.database.aside(family)
        with contextlib.ExitStack() as leases:
            for member in members:
                leases.enter_context(self._store.hold(member))
            candidates = await self._store.database.aside(remove)
        await self._store.database.aside(tidy)
        if self._store.folder is not None:
            for member in members:
                (self._store.folder / "transcripts" / f"{member}.jsonl").unlink(missing_ok=True)

    async def search(
        self, text: str, *, limit: int = 20, include_children: bool = False
    ) -> builtins.list[SearchHit]:
        """Messages that hold all the words (each may be the beginning of a longer one), best first."""

        def work(connection: sqlite3.Connection) -> builtins.list[SearchHit]:
            # where the store is busy or full, what is already there is searched
            with contextlib.suppress(sqlite3.OperationalError):
                search.catch_up(connection)
            summaries.refresh(connection)
            hits = []
            for num, session, seq in search.find(
                connection, text, limit=limit, include_children=include_children
            ):
                (cached,) = connection.execute(
                    "SELECT summary FROM sessions WHERE num = ?", (num,)
                ).fetchone()
                found = search.hit(connection, num, session, seq, text)
                if found is None:
                    continue
                hits.append(
                    msgspec.structs.replace(found, name=summaries.load(session, cached).name)
                )
            return hits

        return await self._store.database.aside(work, wait=QUICK)

    async def fork(
        self, session: str, message_id: str | None = None, *, name: str | None = None
    ) -> Conversation:
        """A new conversation with everything up to a message (all where it is None).

        A reply's tool results go with it. Later revisions of what was taken over are kept. Raises
        `MessageNotFound`.
        """
        source = await self.get(session)
        stored = await self._store.read_stored(source.id)
        events = await self._store.read(source.id)
        branch = branch_of(source, events, message_id, name=name)
        log = await self._store.create_from(
            stored[: branch.cut], session=self._store.source.uuid(), opened=branch.opened
        )
        with closing(log):
            await log.append(*branch.late, durable=True)
            self._created += 1
            return fold(log.events).conversation()

    async def set_current(self, session: str, *, namespace: str | None = None) -> None:
        """Make a conversation the namespace's current one."""
        session = await self._store.resolve(session)
        place = namespace or self._store.settings.default_namespace
        await self._store.database.write(
            lambda connection: connection.execute(
                """INSERT INTO namespaces(name, session) VALUES(?, ?)
                   ON CONFLICT(name) DO UPDATE SET session = excluded.session""",
                (place, session),
            )
        )

    async def current(self, namespace: str | None = None) -> str | None:
        """The id of the namespace's current conversation."""
        place = namespace or self._store.settings.default_namespace
        row = await self._store.database.write(
            lambda connection: connection.execute(
                "SELECT session FROM namespaces WHERE name = ?", (place,)
            ).fetchone()
        )
        return None if row is None else str(row[0])

    async def namespaces(self) -> dict[str, str | None]:
        """Every namespace with its current conversation, by name."""
        found = await self._store.database.write(
            lambda connection: connection.execute(
                """SELECT names.name, namespaces.session FROM
                   (SELECT namespace AS name FROM sessions UNION SELECT name FROM namespaces) names
                   LEFT JOIN namespaces ON namespaces.name = names.name ORDER BY names.name"""
            ).fetchall()
        )
        return dict(found)

    async def resolve(self, prefix: str) -> str:
        """The id that `prefix` is or begins. Raises `ConversationNotFound`, for several too."""
        return await self._store.resolve(prefix)

    async def stats(self, *, include_children: bool = False) -> StoreStatistics:
        """Totals; sub-agents' sessions count only with `include_children`, their cost always does."""

        def work(connection: sqlite3.Connection) -> tuple[builtins.list[ConversationSummary], int]:
            summaries.refresh(connection)
            found = connection.execute("SELECT id, summary FROM sessions").fetchall()
            (places,) = connection.execute(
                """SELECT count(*) FROM (
                   SELECT namespace FROM sessions UNION SELECT name FROM namespaces)"""
            ).fetchone()
            return [summaries.load(session, text) for session, text in found], places

        everything, places = await self._store.database.aside(work, wait=QUICK)
        counted = [s for s in everything if include_children or s.parent is None]
        costs = [s.cost for s in everything if s.cost is not None]
        tools: dict[str, int] = {}
        for summary in counted:
            for tool, count in summary.tools.items():
                tools[tool] = tools.get(tool, 0) + count
        return StoreStatistics(
            conversations=len(counted),
            messages=sum(s.message_count for s in counted),
            input_tokens=sum(s.input_tokens for s in counted),
            output_tokens=sum(s.output_tokens for s in counted),
            cached_tokens=sum(s.cached_tokens for s in counted),
            cost=sum(costs) if costs else None,
            unpriced=sum(s.unpriced for s in everything),
            tools=dict(sorted(tools.items())),
            namespaces=places,
            bytes=self._store.database.size(),
            created=self._created,
            loaded=self._loaded,
            cache_hits=self._cache.hits,
            cache_misses=self._cache.misses,
        )


def _remove(connection: sqlite3.Connection, session: str) -> set[bytes]:
    """Take one session out of every table; gives the hashes that its events mention."""
    num = names.number(connection, session)
    hashes: set[bytes] = set()
    for row in rows.rows_after(connection, num, 0):
        hashes |= blobs.mentioned(rows.unpack(row).raw)
    search.forget(connection, session, num)
    base = rows.base_of(num)
    connection.execute("DELETE FROM events WHERE id > ? AND id <= ?", (base, base | rows.SEQ_MASK))
    connection.execute("DELETE FROM sessions WHERE num = ?", (num,))
    connection.execute("DELETE FROM namespaces WHERE session = ?", (session,))
    return hashes
