"""Statistics of sessions, folded from their logs alone: tokens, money, tools, the shared cache, compactions.

A fork's events that were taken over are counted in the session that they come from.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from croze.types.errors import ConversationNotFound
from croze.types.event import (
    Body,
    ChildOpened,
    Compacted,
    Event,
    FactAdded,
    ModelCalled,
    ModelSaid,
    Notice,
    SessionOpened,
    ToolReturned,
)
from croze.types.team import INHERITED

if TYPE_CHECKING:
    from croze.app.app import App

TOKENS_A_CALL = 1_000
"""What a listing that was not needed is taken to spare (S0), until enough were measured."""

MEASURED = 5
"""Listings after which their own mean is taken."""

HOT_READS = 3
MOST_HOT = 10
_TREE, _VISITED = "tree", "visited"
_READ, _LIST = "read:", "list:"


class ToolRow(Struct, frozen=True):
    """One tool: calls, failed ones, seconds that they took, bytes and tokens of their results."""

    name: str
    calls: int
    failures: int
    seconds: float
    bytes: int
    tokens: int


class PathRow(Struct, frozen=True):
    """How often a file was read, in how many sessions, and how often it came from the cache."""

    path: str
    reads: int
    sessions: int
    hits: int


class TreeRow(Struct, frozen=True):
    """The newest tree: its characters, its depth, its entries and how many have no row, the seconds of
    its scan, when it was made (ISO 8601), and why there is none."""

    size: int
    max_depth: int
    entries: int
    left_out: int
    seconds: float
    cached_at: str
    error: str | None = None


class CacheRow(Struct, frozen=True):
    """What the shared cache did. `scans` counts trees; `unchanged` re-reads that were not sent again,
    which spared `tokens_unchanged` (measured). `saved_calls` is the estimate of listings that the tree
    and the listings of others made needless, at `tokens_a_call` each; `saved_tokens` is all together."""

    scans: int = 0
    hits: int = 0
    misses: int = 0
    hit_rate: float | None = None
    unchanged: int = 0
    tokens_unchanged: int = 0
    saved_calls: int = 0
    tokens_a_call: int = TOKENS_A_CALL
    saved_tokens: int = 0


class CompactionRow(Struct, frozen=True):
    """The compactions of one policy, and the tokens by which they made contexts smaller."""

    policy: str
    count: int
    saved_tokens: int


class Stats(Struct, frozen=True):
    """Statistics of some sessions. Tokens and `cost` (US dollars) are sums of what is known; `unknown`
    counts the replies of which it is not. `accesses` counts listings and reads by path; folders end in
    `/`."""

    sessions: int
    steps: int
    input_tokens: int
    cached_tokens: int
    cached_share: float | None
    output_tokens: int
    cost: float | None
    unknown: int
    tools: tuple[ToolRow, ...]
    tree: TreeRow | None
    cache: CacheRow
    hot: tuple[PathRow, ...]
    accesses: dict[str, int]
    compactions: tuple[CompactionRow, ...]


class _Tool(Struct):
    calls: int = 0
    failures: int = 0
    seconds: float = 0.0
    bytes: int = 0
    tokens: int = 0


class StatsFold(Struct):
    """Takes in sessions, one after the other."""

    sessions: int = 0
    steps: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    cost: float | None = None
    unknown: int = 0
    tools: dict[str, _Tool] = field(default_factory=dict)
    compactions: dict[str, list[int]] = field(default_factory=dict)
    tree: FactAdded | None = None
    scans: int = 0
    hits: int = 0
    misses: int = 0
    unchanged: int = 0
    tokens_unchanged: int = 0
    saved_calls: int = 0
    listings: list[int] = field(default_factory=list)
    accesses: Counter[str] = field(default_factory=Counter)
    read_hits: Counter[str] = field(default_factory=Counter)
    read_in: Counter[str] = field(default_factory=Counter)

    def take(self, events: Iterable[Event]) -> None:
        """One session, or what a run has added to it."""
        self.sessions += 1
        copied = 0
        given: set[str] = set()
        seen: set[str] = set()
        for event in events:
            body = event.body
            if isinstance(body, SessionOpened) and body.forked_from is not None:
                copied = body.forked_from[1]
            if event.seq <= copied:
                continue
            if isinstance(body, FactAdded):
                given.update(self._fact(body))
            elif isinstance(body, ToolReturned):
                self._returned(body)
                if body.look is not None and body.ok:
                    seen.add(body.look.key)
            else:
                self._other(body)
        self.saved_calls += sum(f"{_LIST}{path}" not in seen for path in given)
        self.read_in.update(key.removeprefix(_READ) for key in seen if key.startswith(_READ))

    def _fact(self, body: FactAdded) -> list[str]:
        """Gives the folders that the agent now need not list."""
        if body.key == _TREE and body.data:
            if self.tree is None or _made(self.tree) <= _made(body):
                self.tree = body
            self.scans += not (body.data.get("shared") or body.data.get(INHERITED))
            return [] if body.data.get("error") or not body.reply else ["."]
        return [str(path) for path in body.data.get("folders", ())] if body.key == _VISITED else []

    def _returned(self, body: ToolReturned) -> None:
        tool = self.tools.setdefault(body.name, _Tool())
        tool.calls += 1
        tool.failures += not body.ok
        tool.seconds += body.seconds or 0.0
        tool.bytes += len(body.text.encode("utf-8", "replace"))
        tool.tokens += body.tokens
        look = body.look
        if look is None:
            return
        self.hits += look.hit
        self.misses += not look.hit
        self.unchanged += bool(look.unchanged)
        self.tokens_unchanged += look.saved
        kind, _, path = look.key.partition(":")
        self.accesses[f"{path}/" if kind == "list" else path] += 1
        if kind == "list" and not look.unchanged:
            self.listings.append(body.tokens)
        elif kind == "read":
            self.read_hits[path] += look.hit

    def _other(self, body: Body) -> None:
        match body:
            case ModelCalled(purpose="main"):
                self.steps += 1
            case ModelSaid() as said:
                self.input += said.usage.input or 0
                self.cached += said.usage.cached or 0
                self.output += said.usage.output or 0
                cost = said.cost.total
                self.unknown += cost is None
                if cost is not None:
                    self.cost = (self.cost or 0.0) + cost
            case Compacted() as compacted:
                row = self.compactions.setdefault(compacted.policy, [0, 0])
                row[0] += 1
                row[1] += max(0, compacted.tokens_before - compacted.tokens_after)
            case _:
                pass

    def stats(self) -> Stats:
        return Stats(
            sessions=self.sessions,
            steps=self.steps,
            input_tokens=self.input,
            cached_tokens=self.cached,
            cached_share=self.cached / self.input if self.input else None,
            output_tokens=self.output,
            cost=self.cost,
            unknown=self.unknown,
            tools=tuple(self._tool_rows()),
            tree=self._tree(),
            cache=self._cache(),
            hot=self._hot(),
            accesses=dict(sorted(self.accesses.items(), key=lambda row: (-row[1], row[0]))),
            compactions=tuple(
                CompactionRow(policy, count, saved)
                for policy, (count, saved) in sorted(self.compactions.items())
            ),
        )

    def _tool_rows(self) -> Iterable[ToolRow]:
        for name, tool in sorted(self.tools.items(), key=lambda row: (-row[1].calls, row[0])):
            seconds = round(tool.seconds, 6)
            yield ToolRow(name, tool.calls, tool.failures, seconds, tool.bytes, tool.tokens)

    def _tree(self) -> TreeRow | None:
        if self.tree is None:
            return None
        data: dict[str, Any] = self.tree.data
        return TreeRow(
            size=data.get("size", 0),
            max_depth=data.get("max_depth", 0),
            entries=data.get("entries", 0),
            left_out=data.get("left_out", 0),
            seconds=data.get("seconds", 0.0),
            cached_at=data.get("cached_at", ""),
            error=data.get("error"),
        )

    def _cache(self) -> CacheRow:
        asked = self.hits + self.misses
        a_call = TOKENS_A_CALL
        if len(self.listings) >= MEASURED:
            a_call = round(sum(self.listings) / len(self.listings))
        return CacheRow(
            scans=self.scans,
            hits=self.hits,
            misses=self.misses,
            hit_rate=self.hits / asked if asked else None,
            unchanged=self.unchanged,
            tokens_unchanged=self.tokens_unchanged,
            saved_calls=self.saved_calls,
            tokens_a_call=a_call,
            saved_tokens=self.tokens_unchanged + self.saved_calls * a_call,
        )

    def _hot(self) -> tuple[PathRow, ...]:
        reads = ((p, n) for p, n in self.accesses.items() if not p.endswith("/") and n >= HOT_READS)
        most = sorted(reads, key=lambda row: (-row[1], row[0]))[:MOST_HOT]
        return tuple(PathRow(p, n, self.read_in[p], self.read_hits[p]) for p, n in most)


def _made(tree: FactAdded) -> str:
    return str(tree.data.get("cached_at", ""))


def stats_of(events: Iterable[Event]) -> Stats:
    """Statistics of one session, or of the part of it that is given."""
    found = StatsFold()
    found.take(events)
    return found.stats()


async def project_stats(app: "App", session: str | None = None, *, children: bool = False) -> Stats:
    """Statistics of all sessions of the project (with `children` the sub-agents' too), or of one."""
    found = StatsFold()
    if session is not None:
        found.take(await app.store.read(session))
        return found.stats()
    page, offset = 200, 0
    while True:
        summaries = await app.conversations.list(
            limit=page, offset=offset, include_children=children
        )
        for summary in summaries:
            found.take(await app.store.read(summary.id))
        if len(summaries) < page:
            return found.stats()
        offset += page


SHARED = "cache_shared"


async def run_stats(
    events: Sequence[Event], read: Callable[[str], Awaitable[Sequence[Event]]]
) -> Stats:
    """Statistics of a session together with its sub-agents, theirs too; `read` gives a session's log."""
    found = StatsFold()
    waiting, known = [events], set()
    while waiting:
        log = waiting.pop()
        found.take(log)
        for child in dict.fromkeys(e.body.child for e in log if isinstance(e.body, ChildOpened)):
            if child not in known:
                known.add(child)
                try:
                    waiting.append(await read(child))
                except ConversationNotFound:
                    continue
    return found.stats()


async def run_account(
    events: Sequence[Event], read: Callable[[str], Awaitable[Sequence[Event]]]
) -> Notice | None:
    """What the agents of a run have shared, for the user, with the numbers as data; None where there is
    nothing to tell (S0)."""
    found = await run_stats(events, read)
    tree, cache = found.tree, found.cache
    asked = cache.hits + cache.misses
    if tree is None and not asked:
        return None
    share = round(100 * cache.hits / asked) if asked else 0
    params = {
        "agents": found.sessions,
        "scans": cache.scans,
        "size": 0 if tree is None else tree.size,
        "depth": 0 if tree is None else tree.max_depth,
        "hits": cache.hits,
        "misses": cache.misses,
        "asked": asked,
        "share": share,
        "calls": cache.saved_calls,
        "tokens": cache.saved_tokens,
    }
    text = (
        "Shared by {agents} agents: a tree of {size} characters (depth {depth}, scans: {scans}); "
        "{hits} of {asked} looks from the cache ({share} %); about {calls} calls and {tokens} tokens saved."
    ).format(**params)
    return Notice(level="info", code=SHARED, text=text, params=params)
