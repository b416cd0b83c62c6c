"""Tries a model again after a failure that may pass, each new try announced in the stream."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from croze.types.context import Prompt
from croze.types.errors import ModelError, RetriesExhausted
from croze.types.model import ModelInfo
from croze.types.stream import (
    CallChunk,
    Chunk,
    FinishChunk,
    RetryChunk,
    TextChunk,
)

if TYPE_CHECKING:
    from croze.llm.model import Model

DEFAULT_RETRIES = 6
BASE_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 60.0
MAX_RETRY_AFTER_SECONDS = 120.0


class RetryingModel:
    """A model that tries again.

    Retried are errors marked `retryable`, a stream that ends without a finish (a cut), and once a
    finished reply with neither text nor call. Before each new try a `RetryChunk` voids what came;
    its delay doubles from one second to sixty, with jitter, and is never shorter than the server's
    `Retry-After` (of which at most 120 s are honoured). When `max_retries` tries beyond the first
    have failed `RetriesExhausted` is raised; -1 never gives up. A cancelled stream is not retried.
    `sleep` takes seconds, `chance` gives a number from 0 to 1.
    """

    def __init__(
        self,
        model: "Model",
        *,
        max_retries: int = DEFAULT_RETRIES,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._model = model
        self._max_retries = max_retries
        self._sleep = sleep
        self._chance = chance

    @property
    def info(self) -> ModelInfo:
        return self._model.info

    def encode(self, prompt: Prompt) -> bytes:
        return self._model.encode(prompt)

    async def stream(self, body: bytes) -> AsyncGenerator[Chunk, None]:
        attempt = 0
        was_empty = False
        while True:
            finish: FinishChunk | None = None
            empty = True
            failure: ModelError
            try:
                chunks = self._model.stream(body)
                async with aclosing(chunks):
                    async for chunk in chunks:
                        if isinstance(chunk, FinishChunk):
                            finish = chunk
                            continue
                        if isinstance(chunk, CallChunk) or (
                            isinstance(chunk, TextChunk) and chunk.text.strip()
                        ):
                            empty = False
                        yield chunk
            except ModelError as error:
                if not error.retryable:
                    raise
                failure = error
            else:
                if finish is None:
                    failure = self._cut()
                elif finish.reason == "error":
                    failure = self._broken()
                elif empty and finish.reason == "stop" and not was_empty and self._max_retries:
                    was_empty = True
                    failure = self._nothing()
                else:
                    yield finish
                    return
            attempt += 1
            if 0 <= self._max_retries < attempt:
                raise self._exhausted(failure, attempt) from failure
            delay = self._delay(attempt, failure.retry_after)
            yield RetryChunk(attempt, delay, failure.code, failure.message)
            await self._sleep(delay)

    async def aclose(self) -> None:
        await self._model.aclose()

    def _delay(self, attempt: int, retry_after: float | None) -> float:
        backoff = min(MAX_BACKOFF_SECONDS, BASE_SECONDS * 2.0 ** min(attempt - 1, 16))
        backoff *= 0.5 + self._chance() / 2
        asked = min(retry_after or 0.0, MAX_RETRY_AFTER_SECONDS)
        return round(max(backoff, asked), 3)

    def _cut(self) -> ModelError:
        return ModelError(
            f"the reply of {self.info.name} was cut off before its end", retryable=True, code="cut"
        )

    def _broken(self) -> ModelError:
        return ModelError(
            f"{self.info.name} ended its reply with an error", retryable=True, code="server_error"
        )

    def _nothing(self) -> ModelError:
        return ModelError(f"the reply of {self.info.name} was empty", retryable=True, code="empty")

    def _exhausted(self, failure: ModelError, attempts: int) -> RetriesExhausted:
        tries = "1 try" if attempts == 1 else f"{attempts} tries"
        return RetriesExhausted(
            f"{failure.message} (gave up after {tries})",
            status=failure.status,
            retry_after=failure.retry_after,
            hint=failure.hint,
        )
