"""Records what a model says as a script that plays it again."""

import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import msgspec

from croze.llm.model import Model
from croze.llm.script import (
    Failure,
    ScriptedCall,
    ScriptedPart,
    ScriptedReply,
    ScriptedRetry,
    dump_reply,
)
from croze.text.redact import redact, redact_value
from croze.types.context import Prompt
from croze.types.errors import ModelError, UsageError
from croze.types.model import ModelInfo, Usage
from croze.types.stream import (
    CallChunk,
    Chunk,
    FinishChunk,
    FinishReason,
    RetryChunk,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
)


class RecordingModel:
    """`inner` with every reply written to the script at `path`, whole or as far as it came.

    The file is made at once (0600, an existing one is replaced) and replaced after each reply. Raises
    `UsageError` where it can't be written.
    """

    def __init__(self, inner: Model, path: Path) -> None:
        self._inner = inner
        self._path = path
        self._items: list[bytes] = []
        self._write()

    @property
    def info(self) -> ModelInfo:
        return self._inner.info

    def encode(self, prompt: Prompt) -> bytes:
        return self._inner.encode(prompt)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def stream(self, body: bytes) -> AsyncGenerator[Chunk, None]:
        tape = Tape()
        error: ModelError | None = None
        try:
            async with aclosing(self._inner.stream(body)) as chunks:
                async for chunk in chunks:
                    tape.add(chunk)
                    yield chunk
        except ModelError as caught:
            error = caught
            raise
        finally:
            self._items.append(dump_reply(_redacted(tape.reply(error))))
            self._write()

    def _write(self) -> None:
        header = f"# What {self.info.name} said, recorded by croze.\n".encode()
        try:
            handle, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=".croze-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(header)
                    file.writelines(self._items or [b"[]\n"])
                os.replace(temporary, self._path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise UsageError(
                f"The recording {self._path} can't be written: {error.strerror or error}.",
                hint="Choose a path in a folder that you may write to.",
                code="recording",
                path=str(self._path),
            ) from error


def _redacted(reply: ScriptedReply) -> ScriptedReply:
    """The reply as it is written: a script is a file that people pass on."""

    def part(one: ScriptedPart) -> ScriptedPart:
        call, retry = one.call, one.retry
        return msgspec.structs.replace(
            one,
            text=one.text and redact(one.text)[0],
            thinking=one.thinking and redact(one.thinking)[0],
            call=call and msgspec.structs.replace(call, args=redact_value(call.args)[0]),
            retry=retry and msgspec.structs.replace(retry, message=redact(retry.message)[0]),
        )

    error = reply.error
    return msgspec.structs.replace(
        reply,
        parts=tuple(map(part, reply.parts)),
        error=error and msgspec.structs.replace(error, message=redact(error.message)[0]),
    )


class Tape:
    """Puts a reply's chunks together: text that was cut into pieces is whole again, each call stands
    where it began."""

    def __init__(self) -> None:
        self._parts: list[ScriptedPart] = []
        self._pieces: list[str] = []
        self._open: str = ""
        self._calls: dict[int, _Call] = {}
        self._places: dict[int, _Call] = {}
        self._usage: Usage | None = None
        self._finish: FinishReason | None = None

    def add(self, chunk: Chunk) -> None:
        match chunk:
            case TextChunk():
                self._extend("text", chunk.text)
            case ThinkingChunk():
                self._extend("thinking", chunk.text)
                if chunk.opaque is not None:
                    self._close(opaque=chunk.opaque)
            case CallChunk():
                self._close()
                self._call(chunk)
            case RetryChunk():
                self._close()
                self._calls.clear()
                self._usage = self._finish = None
                retry = ScriptedRetry(chunk.attempt, chunk.delay, chunk.code, chunk.message)
                self._parts.append(ScriptedPart(retry=retry))
            case UsageChunk():
                self._usage = chunk.usage
            case FinishChunk():
                self._finish = chunk.reason

    def reply(self, error: ModelError | None) -> ScriptedReply:
        """What has arrived; `error` is how it ended where it failed."""
        self._close()
        parts = list(self._parts)
        for place, call in self._places.items():
            scripted = ScriptedCall(name=call.name, args="".join(call.args), id=call.id)
            parts[place] = ScriptedPart(call=scripted)
        cut = self._finish is None and error is None
        return ScriptedReply(
            parts=tuple(parts),
            finish=self._finish,
            usage=self._usage or "none",
            fault="cut" if cut else None,
            error=None if error is None else Failure.of(error),
        )

    def _extend(self, kind: str, text: str) -> None:
        if self._open != kind:
            self._close()
            self._open = kind
        self._pieces.append(text)

    def _close(self, opaque: str | None = None) -> None:
        text = "".join(self._pieces)
        if self._open == "text" and text:
            self._parts.append(ScriptedPart(text=text))
        elif self._open == "thinking" and (text or opaque is not None):
            self._parts.append(ScriptedPart(thinking=text, opaque=opaque))
        self._open = ""
        self._pieces.clear()

    def _call(self, chunk: CallChunk) -> None:
        call = self._calls.get(chunk.index)
        if call is None:
            call = self._calls[chunk.index] = self._places[len(self._parts)] = _Call()
            self._parts.append(ScriptedPart(text=""))
        call.name = chunk.name or call.name
        call.id = chunk.provider_id or call.id
        call.args.append(chunk.args)


class _Call:
    """A call that is being put together."""

    def __init__(self) -> None:
        self.name = ""
        self.id: str | None = None
        self.args: list[str] = []
