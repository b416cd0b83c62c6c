"""Folded conversations that are kept in memory for a while."""

import time
from collections import OrderedDict
from collections.abc import Callable

from croze.types.conversation import Conversation

MESSAGES_EACH = 10


class FoldCache:
    """Folded conversations by (session, last seq): at most `size`, with ten times as many messages
    (one longer conversation is kept all the same). Age only frees memory, it never changes a reply."""

    def __init__(self, size: int, ttl: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._ttl = ttl
        self._clock = clock
        self._kept: OrderedDict[tuple[str, int], tuple[float, Conversation]] = OrderedDict()
        self._messages = 0
        self.hits = 0
        self.misses = 0

    def get(self, session: str, last_seq: int) -> Conversation | None:
        self._expire()
        found = self._kept.get((session, last_seq))
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        self._kept[session, last_seq] = (self._clock(), found[1])
        self._kept.move_to_end((session, last_seq))
        return found[1]

    def put(self, conversation: Conversation) -> None:
        for key in [key for key in self._kept if key[0] == conversation.id]:
            self._drop(key)
        self._kept[conversation.id, conversation.last_seq] = (self._clock(), conversation)
        self._messages += len(conversation.messages)
        while len(self._kept) > self._size or (
            len(self._kept) > 1 and self._messages > self._size * MESSAGES_EACH
        ):
            self._drop(next(iter(self._kept)))

    def _expire(self) -> None:
        oldest = self._clock() - self._ttl
        while self._kept:
            key, (used, _) = next(iter(self._kept.items()))
            if used >= oldest:
                break
            self._drop(key)

    def _drop(self, key: tuple[str, int]) -> None:
        _, conversation = self._kept.pop(key)
        self._messages -= len(conversation.messages)
