"""MCP over a program's standard input and output: JSON-RPC, a message a line, run by croze's own runner.

Imports the SDK, so it is loaded only where a server is started.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCNotification, JSONRPCRequest, jsonrpc_message_adapter

from croze.workspace.duplex import Duplex

MOST_LINE = 16 << 20
"""Bytes of one message; a server that sends a longer one is ended."""

MOST_JUNK = 4 << 20
"""Bytes of output that is no message; with more a server is ended."""

MOST_UNASKED = 20_000
"""Messages that answer nothing, one after the other; with more a server is ended."""

_SHOWN = 200


class Incoming:
    """The messages from a server, as the SDK reads them."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[SessionMessage | Exception | None] = asyncio.Queue()
        self._over = False

    def put(self, message: SessionMessage) -> None:
        self._queue.put_nowait(message)

    def close(self) -> None:
        """Nothing more comes."""
        self._queue.put_nowait(None)

    async def receive(self) -> SessionMessage | Exception:
        if self._over:
            raise StopAsyncIteration
        message = await self._queue.get()
        if message is None:
            self._over = True
            raise StopAsyncIteration
        return message

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self.receive()

    async def aclose(self) -> None:
        self._over = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class Outgoing:
    """The messages to a server, as the SDK writes them. Writing to one that is gone does nothing: its end is told
    by what comes in."""

    def __init__(self, write: Callable[[bytes], bool]) -> None:
        self._write = write

    async def send(self, item: SessionMessage, /) -> None:
        data = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._write(data.encode("utf-8", "replace") + b"\n")

    async def aclose(self) -> None:
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


class Lines:
    """Takes a server's output apart into messages, within bounds. `fault` says why it was ended."""

    def __init__(self, incoming: Incoming) -> None:
        self._incoming = incoming
        self._rest = bytearray()
        self._unasked = 0
        self.junk = 0
        self.first_junk = ""
        self.fault = ""

    def feed(self, chunk: bytes) -> bool:
        """Take a piece of output; False where the server is to be ended."""
        begin = 0
        while (end := chunk.find(b"\n", begin)) >= 0:
            line = bytes(self._rest) + chunk[begin:end]
            self._rest.clear()
            begin = end + 1
            self._line(line)
            if self.fault:
                return False
        self._rest += chunk[begin:]
        if len(self._rest) > MOST_LINE:
            self.fault = f"it sent a message of more than {MOST_LINE >> 20} MB"
        return not self.fault

    def _line(self, line: bytes) -> None:
        if len(line) > MOST_LINE:
            self.fault = f"it sent a message of more than {MOST_LINE >> 20} MB"
            return
        if not line.strip():
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except (ValueError, RecursionError):
            self.junk += len(line)
            self.first_junk = self.first_junk or line[:_SHOWN].decode("utf-8", "replace")
            if self.junk > MOST_JUNK:
                self.fault = (
                    f"it wrote more than {MOST_JUNK >> 20} MB to its output that are no messages"
                )
            return
        self._unasked += 1
        if not isinstance(message, JSONRPCRequest | JSONRPCNotification):
            self._unasked = 0
        elif self._unasked > MOST_UNASKED:
            self.fault = f"it sent more than {MOST_UNASKED:,} messages that nobody asked for"
            return
        self._incoming.put(SessionMessage(message))


class StdioTransport:
    """One server as a program: entered it runs, left it and all that it started are gone."""

    def __init__(
        self, argv: Sequence[str], *, cwd: str | os.PathLike[str], env: Mapping[str, str]
    ) -> None:
        self._argv, self._cwd, self._env = argv, cwd, env
        self._incoming = Incoming()
        self.lines = Lines(self._incoming)
        self._program: Duplex | None = None
        self._watch: asyncio.Task[None] | None = None
        self.how = ""
        """How the program ended, in a few words; empty while it runs."""

    @property
    def errors(self) -> str:
        """What it wrote to its standard error."""
        return "" if self._program is None else self._program.errors

    async def __aenter__(self) -> tuple[Incoming, Outgoing]:
        program = await Duplex.start(
            self._argv, cwd=self._cwd, env=self._env, on_output=self.lines.feed
        )
        self._program = program
        self._watch = asyncio.create_task(self._until_ended(program), name="mcp server's end")
        return self._incoming, Outgoing(program.write)

    async def over(self) -> None:
        """Wait until the program has ended."""
        if self._watch is not None:
            await asyncio.wait([self._watch])

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._program is not None:
            await self._program.close()
        if self._watch is not None:
            await asyncio.wait([self._watch])

    async def _until_ended(self, program: Duplex) -> None:
        result = await program.ended()
        if self.lines.fault:
            self.how = self.lines.fault
        elif result is None:
            self.how = "it was ended"
        elif result.signal:
            self.how = f"it was killed by {result.signal}"
        else:
            self.how = f"it ended with exit code {result.exit_code}"
        self._incoming.close()
