"""A process that writes a session as the tests ask, and says each append once it has returned.

Arguments: folder, session id, what to do (`append`, `hold`, `annotate`, `open`), how often.
"""

import asyncio
import sys
from pathlib import Path

from croze.store.db import StoreSettings
from croze.store.store import Store
from croze.types.errors import ConversationNotFound
from croze.types.event import Annotated, UserSaid
from croze.types.ids import SystemSource
from croze.types.parts import Text


def say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


async def run(folder: Path, session: str, action: str, count: int) -> None:
    settings = StoreSettings(backup_enabled=False)
    store = Store.open(folder, source=SystemSource(), settings=settings)
    if action == "annotate":
        for number in range(count):
            await store.annotate(session, Annotated(metadata={f"{session}-{number}": number}))
            say(str(number))
        store.close()
        return
    try:
        log = await store.open_log(session)
    except ConversationNotFound:
        log = await store.create(session_id=session)
    say(f"begin {len(log.events)}")
    if action == "hold":
        sys.stdin.read()
        return
    for _ in range(count):
        number = len(log.events)
        bodies = [
            UserSaid(message_id=f"{number}-{part}", parts=(Text(f"text {number} {part} " * 40),))
            for part in range(1 + number % 3)
        ]
        await log.append(*bodies, durable=number % 5 == 0)
        say(str(len(log.events)))
    store.close()


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])))
