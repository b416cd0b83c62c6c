"""The session log's cost: an append, bytes written and kept, opening, reading, folding, searching."""

import asyncio
import random
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

from croze.store.conversations import Conversations
from croze.store.db import StoreSettings
from croze.store.fold import fold
from croze.store.store import Store
from croze.types.event import Event, UserSaid, encode_body
from croze.types.ids import SystemSource
from croze.types.parts import Text

MESSAGES = 10_000
SIZE = 1_000
QUIET = StoreSettings(backup_enabled=False)


def written() -> int:
    """Bytes that this process has handed to write calls so far."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


def message(chance: random.Random, words: list[str], source: SystemSource) -> UserSaid:
    """A message whose stored body is about `SIZE` bytes of prose."""
    text = ""
    while len(text) < SIZE - 120:
        text += chance.choice(words) + " "
    return UserSaid(message_id=source.uuid(), parts=(Text(text),))


def show(name: str, value: float, unit: str, target: str) -> None:
    print(f"{name:34} {value:10.2f} {unit:6} (target {target})")


async def fill(folder: Path, bodies: list[UserSaid], sessions: int) -> tuple[list[float], int]:
    """Append all bodies in turn to the sessions; microseconds of each append, bytes written."""
    store = Store.open(folder, source=SystemSource(), settings=QUIET)
    logs = [await store.create() for _ in range(sessions)]
    before = written()
    times = []
    for number, body in enumerate(bodies):
        log = logs[number % sessions]
        start = time.perf_counter_ns()
        await log.append(body)
        times.append((time.perf_counter_ns() - start) / 1_000)
    total = written() - before
    for log in logs:
        log.close()
    store.database.close()
    return times, total


async def bench(root: Path) -> None:
    chance = random.Random(7)
    source = SystemSource()
    words = [
        "".join(chance.choices("abcdefghijklmnop", k=chance.randint(2, 9))) for _ in range(9_000)
    ]
    bodies = [message(chance, words, source) for _ in range(MESSAGES)]
    payload = sum(len(encode_body(body)) for body in bodies)

    times, total = await fill(root / "one", bodies, 1)
    show("append, median", statistics.median(times), "us", "< 50")
    show("append, 99th percentile", statistics.quantiles(times, n=100)[98], "us", "none")
    show("append, first 1,000", statistics.median(times[:1_000]), "us", "< 50")
    show("append, last 1,000", statistics.median(times[-1_000:]), "us", "< 50, as the first")
    show("bytes written / payload", total / payload, "x", "< 10")
    size = (root / "one" / "log.db").stat().st_size
    show("file / payload", size / payload, "x", "< 2")

    several, total = await fill(root / "five", bodies, 5)
    show("append, five sessions, median", statistics.median(several), "us", "< 50")
    show("bytes written / payload, five", total / payload, "x", "< 10")

    start = time.perf_counter()
    store = Store.open(root / "one", source=source, settings=QUIET)
    show("open, warm", (time.perf_counter() - start) * 1e3, "ms", "< 5")
    with closing(store):
        conversations = Conversations(store)
        (summary,) = await conversations.list()
        start = time.perf_counter()
        log = await store.open_log(summary.id)
        show("read 10,000 events", (time.perf_counter() - start) * 1e3, "ms", "none")
        show("fold 10,000 events", folding(log.events), "ms", "none")
        durable = []
        for body in bodies[:200]:
            start = time.perf_counter()
            await log.append(body, durable=True)
            durable.append((time.perf_counter() - start) * 1e3)
        show("append, durable, median", statistics.median(durable), "ms", "none: the disk's flush")
        start = time.perf_counter()
        await conversations.search(words[0])
        show("index 10,000 messages, search", (time.perf_counter() - start) * 1e3, "ms", "none")
        start = time.perf_counter()
        hits = await conversations.search(" ".join(words[:2]))
        show(f"search, {len(hits)} hits", (time.perf_counter() - start) * 1e3, "ms", "none")
    size = (root / "one" / "log.db").stat().st_size
    show("file / payload, with full text", size / payload, "x", "< 2")


def folding(events: list[Event]) -> float:
    start = time.perf_counter()
    fold(events).conversation()
    return (time.perf_counter() - start) * 1e3


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="croze-bench-") as name:
        asyncio.run(bench(Path(name)))
