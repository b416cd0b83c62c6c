"""Documents as text: read apart within time and memory, once a content in a run."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Mapping

import msgspec

from croze.documents.kinds import NAMES
from croze.documents.read import Answer, Request
from croze.documents.values import Extracted
from croze.types.errors import CrozeError
from croze.workspace.apart import Overflowed, apart

LARGEST = 64 << 20
"""Bytes of a document; a larger one is not read."""
SECONDS = 45.0
KEPT = 16 << 20
"""Characters of documents that are kept in memory; the least recently used go first."""
AT_ONCE = 2
_MOST_ANSWER = 64 << 20


class ExtractionError(CrozeError):
    """A document that gave no text. `code` says why: `encrypted`, `damaged`, `too_large`, `too_slow`,
    `no_text`, `missing_extra`."""

    code = "damaged"


class Extractions:
    """The documents of a run that have been read, by their content."""

    def __init__(self, *, seconds: float = SECONDS, keep: int = KEPT) -> None:
        self._seconds = seconds
        self._keep = keep
        self._known: OrderedDict[tuple[str, Request], Extracted] = OrderedDict()
        self._reading: dict[tuple[str, Request], asyncio.Lock] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._size = 0
        self.started = 0

    async def text(self, request: Request, data: bytes, env: Mapping[str, str]) -> Extracted:
        """The text of a document, from memory where it is known. Raises `ExtractionError`."""
        if len(data) > LARGEST:
            raise ExtractionError(
                f"It has {len(data):,} bytes; documents are read up to {LARGEST:,}.",
                code="too_large",
            )
        key = hashlib.sha256(data).hexdigest(), request
        try:
            async with self._reading.setdefault(key, asyncio.Lock()):
                known = self._known.get(key)
                if known is not None:
                    self._known.move_to_end(key)
                    return known
                async with self._slots:
                    found = await self._read(request, data, env)
                self._hold(key, found)
                return found
        finally:
            self._reading.pop(key, None)

    def _hold(self, key: tuple[str, Request], found: Extracted) -> None:
        self._known[key] = found
        self._size += len(found.text)
        while self._size > self._keep:
            _, gone = self._known.popitem(last=False)
            self._size -= len(gone.text)

    async def _read(self, request: Request, data: bytes, env: Mapping[str, str]) -> Extracted:
        self.started += 1
        sent = msgspec.json.encode(request) + b"\n" + data
        what = NAMES[request.kind]
        try:
            ended, out = await apart(
                "croze.documents", sent, env=env, timeout=self._seconds, most=_MOST_ANSWER
            )
        except Overflowed as error:
            raise ExtractionError(f"This {what} gives too much text.", code="too_large") from error
        if ended.ended == "timeout" or ended.signal == "SIGXCPU":
            raise ExtractionError(
                f"Reading this {what} was given up after {self._seconds:.0f} s.", code="too_slow"
            )
        try:
            answer = msgspec.json.decode(out, type=Answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            how = ended.signal or f"exit code {ended.exit_code}"
            raise ExtractionError(
                f"The reader of this {what} failed ({how}); it may need more memory than is allowed."
            ) from error
        if answer.failed is not None:
            failed = answer.failed
            raise ExtractionError(
                f"This {what} can't be read: {failed.message}", hint=failed.hint, code=failed.code
            )
        assert answer.read is not None
        return answer.read
