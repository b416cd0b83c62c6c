"""The one interface of a model: encode a prompt to bytes, stream the reply to those bytes."""

from collections.abc import AsyncGenerator
from typing import Protocol

from croze.types.context import Prompt
from croze.types.model import ModelInfo
from croze.types.stream import Chunk

ENCODER_VERSION = 1
"""Raised whenever an encoder's output changes for the same prompt, and recorded with every request."""


class Model(Protocol):
    """A model behind some wire.

    `encode` is pure: the same prompt gives the same bytes. It may keep the encoded form of a message
    by the message's identity. `stream` sends one request and yields what comes; it raises `ModelError`
    when the request fails, before or in mid-stream, and ends without a `FinishChunk` where the stream
    was cut. Leaving the iterator (aclose, cancellation) closes the connection at once.
    """

    @property
    def info(self) -> ModelInfo: ...

    def encode(self, prompt: Prompt) -> bytes: ...

    def stream(self, body: bytes) -> AsyncGenerator[Chunk, None]: ...

    async def aclose(self) -> None: ...
