"""Where identities and times come from: a source that replay can take from the record."""

import secrets
import time
import uuid
from typing import Protocol

BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
CALL_ID_LENGTH = 9


class Source(Protocol):
    """Gives times and identities; the only place where a session meets clock and chance."""

    def now(self) -> int:
        """Microseconds since the epoch, UTC."""
        ...

    def uuid(self) -> str:
        """A random UUID in its 36-character form (sessions, messages, questions)."""
        ...

    def call_id(self) -> str:
        """Nine base-62 characters: short enough for every provider's limit on call ids."""
        ...


class SystemSource:
    """The real clock and the operating system's randomness."""

    def now(self) -> int:
        return time.time_ns() // 1_000

    def uuid(self) -> str:
        return str(uuid.uuid4())

    def call_id(self) -> str:
        return "".join(secrets.choice(BASE62) for _ in range(CALL_ID_LENGTH))
