"""A model server on the loopback that speaks three wires, records requests and misbehaves on demand.

In a test:

    async with ModelServer([Reply(text="hello"), Reply(calls=[("read", {"path": "a.py"})])]) as server:
        model = OpenAIModel(info(server.url), api_key=None)        # or AnthropicModel, OllamaModel
        ...
        assert server.requests[0].json["messages"][0]["role"] == "system"

Beside a program under test, in a thread of its own: `with ServerThread([...]) as server: server.url`.
By hand: `python tests/model_server.py --port 0 --script replies.json`, which prints its URL; the script
is a JSON list of objects with the fields of `Reply`.

Each model request takes the next reply of the queue, whichever wire it uses. `url` is the base URL of
the OpenAI-compatible wire (ends in /v1); the Anthropic and Ollama wires are reached from the same URL.
Served are /v1/chat/completions, /v1/messages, /api/chat, /v1/models, /props, /api/show, /api/tags.
Standard library only.
"""

import argparse
import asyncio
import json
import socket
import ssl
import struct
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Any

if not __package__:
    # Run as a script: the repository's root is not on the path.
    sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.model_replies import (
    STATUS_FAULTS,
    Reply,
    anthropic_events,
    ollama_events,
    openai_events,
    openai_whole,
    sse,
)

__all__ = [
    "ModelServer",
    "Reply",
    "Request",
    "ServerThread",
    "anthropic_events",
    "ollama_events",
    "openai_events",
    "read_request",
    "sse",
]


@dataclass(frozen=True)
class Request:
    """A request as it arrived; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Script = Sequence[Reply] | Callable[[Request], Reply]


@dataclass
class ModelServer:
    """The server; an async context manager.

    `replies` is the queue, or a function from a request to its reply. With `repeat` the last reply is
    given for ever; else a request too many is refused with status 400. `models` maps names to windows.
    `requests` holds all model requests, `probes` the others, `abandoned` counts the clients that went
    away in mid-reply. With `tls` it speaks HTTPS. `pages`
    maps paths to bodies that replace what else is served there.
    """

    replies: Script = ()
    repeat: bool = False
    models: Mapping[str, int] = field(default_factory=lambda: {"test": 32_768})
    port: int = 0
    tls: ssl.SSLContext | None = None
    pages: Mapping[str, bytes] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    probes: list[Request] = field(default_factory=list)
    abandoned: int = 0
    connections: int = 0

    async def __aenter__(self) -> "ModelServer":
        self.gone = asyncio.Event()
        self.arrived = asyncio.Event()
        self._taken = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", self.port, limit=2**26, ssl=self.tls
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/v1"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while (request := await read_request(reader)) is not None:
                if not await self._answer(request, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            self._lose()
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; whether the connection may serve another."""
        route = request.path.partition("?")[0]
        if request.method == "POST" and route.endswith(
            ("/chat/completions", "/messages", "/api/chat")
        ):
            self.requests.append(request)
            self.arrived.set()
            return await _Player(self, request, self._next(request), reader, writer).play()
        self.probes.append(request)
        if route in self.pages:
            await send(writer, 200, self.pages[route])
            return True
        answer = self._fact(route, request)
        status = 404 if answer is None else 200
        await send(writer, status, json.dumps(answer or {"error": "no such page"}).encode())
        return True

    def _next(self, request: Request) -> Reply:
        if callable(self.replies):
            return self.replies(request)
        if self._taken < len(self.replies):
            self._taken += 1
            return self.replies[self._taken - 1]
        if self.repeat and self.replies:
            return self.replies[-1]
        return Reply(fault="400", message="the script of the test server has no reply left")

    def _fact(self, route: str, request: Request) -> Any:
        names = list(self.models)
        if route.endswith("/v1/models"):
            rows = [{"id": n, "object": "model", "max_model_len": self.models[n]} for n in names]
            return {"object": "list", "data": rows}
        if route == "/api/tags":
            return {"models": [{"name": n, "model": n} for n in names]}
        if route == "/props" and names:
            return {"default_generation_settings": {"n_ctx": self.models[names[0]]}}
        if route == "/api/show":
            window = self.models.get(request.json.get("model"))
            facts = {"general.architecture": "llama", "llama.context_length": window}
            return {"model_info": facts, "capabilities": ["tools"]} if window else None
        return None

    def _lose(self) -> None:
        self.abandoned += 1
        self.gone.set()

    async def hold(self, reader: asyncio.StreamReader) -> None:
        """Say nothing until the client goes away."""
        while await reader.read(65536):
            pass
        self._lose()


class _Player:
    """Plays one reply to one request."""

    def __init__(
        self,
        server: ModelServer,
        request: Request,
        reply: Reply,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.server, self.request, self.reply = server, request, reply
        self.reader, self.writer = reader, writer
        path = request.path.partition("?")[0]
        self.wire = (
            "anthropic"
            if path.endswith("/messages")
            else "ollama"
            if path.endswith("/api/chat")
            else "openai"
        )

    async def play(self) -> bool:
        reply, faults = self.reply, self.reply.faults
        for name in faults & STATUS_FAULTS.keys():
            await self._refuse(*STATUS_FAULTS[name])
            return True
        if "refuse" in faults:
            return False
        if "silent" in faults:
            await self.server.hold(self.reader)
            return False
        if "html" in faults:
            await send(self.writer, 200, b"<html><body>hello</body></html>", "text/html")
            return True
        if "json" in faults:
            await send(self.writer, 200, openai_whole(reply))
            return True
        kind = "application/x-ndjson" if self.wire == "ollama" else "text/event-stream"
        self.writer.write(
            f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        build = {"openai": openai_events, "anthropic": anthropic_events, "ollama": ollama_events}
        mid = faults & {"reset", "cut", "eof", "stall", "malformed", "error"}
        for number, event in enumerate(build[self.wire](reply)):
            if mid and number >= reply.after:
                break
            await self._send(event)
        for name in mid:
            if not await self._break(name):
                return False
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()
        return "close" not in faults

    async def _break(self, name: str) -> bool:
        """Misbehave in mid-stream; whether the body still ends properly."""
        match name:
            case "reset":
                await self.writer.drain()
                sock: socket.socket = self.writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.writer.transport.abort()
                return False
            case "cut":
                await self.writer.drain()
                return False
            case "stall":
                await self.writer.drain()
                await self.server.hold(self.reader)
                return False
            case "malformed":
                broken = '{"choices": [{"del'
                await self._send(f"{broken}\n".encode() if self.wire == "ollama" else sse(broken))
            case "error":
                error = {"type": self.reply.error_type, "message": self.reply.message or "broken"}
                value = {"type": "error", "error": error}
                if self.wire == "ollama":
                    await self._send(json.dumps({"error": error["message"]}).encode() + b"\n")
                else:
                    await self._send(sse(value, "error" if self.wire == "anthropic" else ""))
        return True

    async def _send(self, event: bytes) -> None:
        faults = self.reply.faults
        if "comments" in faults:
            event = b": keep-alive\n\n" + event
        if "crlf" in faults:
            event = event.replace(b"\n", b"\r\n")
        if "cr" in faults:
            event = event.replace(b"\n", b"\r")
        if self.reply.pause:
            await asyncio.sleep(self.reply.pause)
        blocks = [event[i : i + 1] for i in range(len(event))] if "bytes" in faults else [event]
        for block in blocks:
            self.writer.write(b"%x\r\n%b\r\n" % (len(block), block))
            await self.writer.drain()

    async def _refuse(self, status: int, kind: str, message: str) -> None:
        headers = self.request.headers
        key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        message = (self.reply.message or message).replace("{key}", key)
        error: Any = {"type": kind, "message": message}
        value: Any = {"type": "error", "error": error}
        if self.wire == "ollama":
            value = {"error": message}
        extra = f"Retry-After: {self.reply.retry_after}\r\n" if self.reply.retry_after else ""
        await send(self.writer, status, json.dumps(value).encode(), extra=extra)


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection, None where the client closed it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body)


async def send(
    writer: asyncio.StreamWriter,
    status: int,
    body: bytes,
    kind: str = "application/json",
    *,
    extra: str = "",
) -> None:
    head = f"HTTP/1.1 {status} Answer\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}{extra}\r\n".encode() + body)
    await writer.drain()


class ServerThread:
    """The same server in a thread with a loop of its own, for programs started as processes."""

    def __init__(self, replies: Script = (), **options: Any) -> None:
        self.server = ModelServer(replies, **options)
        self._thread = threading.Thread(target=self._run, name="model-server", daemon=True)
        self._ready = threading.Event()

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def requests(self) -> list[Request]:
        return self.server.requests

    def __enter__(self) -> "ServerThread":
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the model server did not start within 10 seconds")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with self.server:
            self._ready.set()
            await self._stop.wait()


def read_script(path: Path) -> list[Reply]:
    """Replies from a JSON list of objects. Raises `ValueError` for a field that `Reply` has not."""
    known = {f.name for f in fields(Reply)}
    replies = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        if unknown := row.keys() - known:
            raise ValueError(f"{path}: a reply has no field {', '.join(sorted(unknown))}")
        replies.append(Reply(**row))
    return replies


async def serve(port: int, replies: list[Reply], *, repeat: bool) -> None:
    async with ModelServer(replies, repeat=repeat, port=port) as server:
        print(server.url, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve scripted model replies on the loopback.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--script", type=Path, help="JSON list of replies")
    parser.add_argument("--repeat", action="store_true", help="give the last reply for ever")
    options = parser.parse_args()
    replies = read_script(options.script) if options.script else [Reply(text="hello")]
    try:
        asyncio.run(serve(options.port, replies, repeat=options.repeat or not options.script))
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
