"""One connection to a server: the SDK's client, held by a task of its own from start to end.

Imports the SDK, so it is loaded only where a server is used.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mcp import Client, MCPError, types
from mcp.client import ClientRequestContext, IncomingMessage

from croze import __version__
from croze.mcp.elicit import Caller, elicit
from croze.mcp.failure import McpError
from croze.mcp.http import HttpTransport
from croze.mcp.listing import MOST_TOOLS, Listing, ToolInfo
from croze.mcp.transport import StdioTransport
from croze.text.display import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

GOODBYE = 3.0
"""Seconds in which a connection has to be closed; what isn't then is broken off."""

LONGEST_CALL = 3_600.0
"""Seconds that a call may take in all, however much progress it shows."""

MOST_PAGES = 50

for _name in ("mcp", "client"):  # what the SDK logs would else come out on standard error
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False


class Link:
    """A running connection. `over` is set when it has ended, `reason` says why; `fresh` is cleared when the server
    says that its tools have changed."""

    def __init__(
        self, server: str, transport: StdioTransport | HttpTransport, *, root: Path
    ) -> None:
        self._server = server
        self._transport = transport
        self._root = root
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._callers: list[Caller] = []
        self._questions: list[tuple[Caller, asyncio.Task[types.ElicitResult]]] = []
        self._deadlines: dict[asyncio.Timeout, float] = {}
        self.over = asyncio.Event()
        self.reason = ""
        self.fresh = True
        self.begun = time.monotonic()
        self.said: deque[str] = deque(maxlen=50)
        """What the server logged, newest last."""

    @property
    def errors(self) -> str:
        """What it wrote to its standard error."""
        return self._transport.errors

    @property
    def junk(self) -> str:
        """What it wrote to its output although it is no message, in a line."""
        lines = getattr(self._transport, "lines", None)
        if lines is None or not lines.junk:
            return ""
        return (
            f"{lines.junk:,} bytes that are no messages, such as {one_line(lines.first_junk, 120)}"
        )

    @property
    def client(self) -> Client:
        """The SDK's client. Raises McpError where the connection has ended."""
        if self._client is None or self.over.is_set():
            raise McpError(f"The MCP server {self._server} is gone.", code="mcp_ended")
        return self._client

    async def open(self, timeout: float) -> None:
        """Start it and shake hands. Raises McpError."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(ready), name=f"mcp {self._server}")
        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(ready)
        except TimeoutError as error:
            await self.close()
            raise McpError(
                f"The MCP server {self._server} did not answer within {timeout:g} s.{self._told()}",
                hint=f"`croze mcp test {self._server}` shows what it says; connectTimeout gives it longer.",
                code="mcp_timeout",
                server=self._server,
                seconds=timeout,
            ) from error
        except BaseException:
            await self.close()
            raise

    async def _hold(self, ready: "asyncio.Future[None]") -> None:
        """Hold the client open until it is to be closed or the server ends."""
        try:
            async with Client(
                self._transport,
                client_info=types.Implementation(name="croze", version=__version__),
                elicitation_callback=self._elicit,
                list_roots_callback=self._roots,
                logging_callback=self._log,
                message_handler=self._message,
            ) as client:
                # The SDK would check results against schemas with regular expressions that the server chose.
                client.session.validate_tool_result = _not_checked  # type: ignore[method-assign]
                self._client = client
                if not ready.done():
                    ready.set_result(None)
                await self._until_over()
        except asyncio.CancelledError:
            self._fail(ready, "it was broken off")
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a server makes the SDK raise ends this server only
            self._fail(ready, describe(error))
        finally:
            self.reason = self.reason or self._transport.how or "it was closed"
            self.over.set()

    async def _until_over(self) -> None:
        waiting: set[asyncio.Task[Any]] = {asyncio.create_task(self._closing.wait())}
        if isinstance(self._transport, StdioTransport):
            waiting.add(asyncio.create_task(self._transport.over()))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        self.reason = self._transport.how

    def _fail(self, ready: "asyncio.Future[None]", why: str) -> None:
        self.reason = self._transport.how or why
        status = getattr(self._transport, "refused", 0)
        if ready.done():
            return
        if status in (401, 403):
            error = McpError(
                f"The MCP server {self._server} wants a login (HTTP {status}).",
                hint=f"`croze mcp login {self._server}`, or give it its headers.",
                code="mcp_login",
                server=self._server,
                status=status,
            )
        else:
            error = McpError(
                f"The MCP server {self._server} could not be started: {self.reason}.{self._told()}",
                hint=f"`croze mcp test {self._server}` shows what it says.",
                code="mcp_start",
                server=self._server,
                reason=self.reason,
            )
        ready.set_exception(error)

    def _told(self) -> str:
        """The end of what it wrote to its standard error, as the end of a sentence."""
        last = [line for line in self.errors.splitlines() if line.strip()][-3:]
        return f" It said: {one_line(' / '.join(last), 300)}" if last else ""

    async def close(self) -> None:
        """End it, and wait until it is gone."""
        self._closing.set()
        if self._task is None:
            return
        await asyncio.wait([self._task], timeout=GOODBYE)
        while not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=GOODBYE)

    # What is asked of it

    async def call(
        self, tool: str, arguments: dict[str, Any], *, caller: Caller, timeout: float
    ) -> types.CallToolResult:
        """Call a tool. Progress gives it its time anew. Raises McpError."""

        async def work(deadline: asyncio.Timeout) -> types.CallToolResult:
            latest = asyncio.get_running_loop().time() + LONGEST_CALL

            async def on_progress(
                progress: float, total: float | None, message: str | None
            ) -> None:
                now = asyncio.get_running_loop().time()
                if not deadline.expired() and not self._questions:
                    deadline.reschedule(min(now + timeout, latest))
                share = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
                caller.output(f"[{share}] {one_line(message or '', 300)}\n")

            return await self.client.call_tool(tool, arguments, progress_callback=on_progress)

        with self._calling(caller):
            return await self._bounded(work, timeout, f"{tool} of the MCP server {self._server}")

    async def request(
        self,
        work: Callable[[Client], Awaitable[T]],
        *,
        timeout: float,
        caller: Caller | None = None,
    ) -> T:
        """Ask something of the client. Raises McpError."""

        async def asked(_deadline: asyncio.Timeout) -> T:
            return await work(self.client)

        with self._calling(caller):
            return await self._bounded(asked, timeout, f"The MCP server {self._server}")

    @contextlib.contextmanager
    def _calling(self, caller: Caller | None) -> "Iterator[None]":
        """While this lasts, what the server asks and says goes to the caller."""
        if caller is None:
            yield
            return
        self._callers.append(caller)
        try:
            yield
        finally:
            self._callers.remove(caller)
            for asked, question in self._questions:
                if asked is caller:
                    question.cancel()

    async def _bounded(
        self, work: Callable[[asyncio.Timeout], Awaitable[T]], timeout: float, who: str
    ) -> T:
        try:
            async with asyncio.timeout(timeout) as deadline:
                self._deadlines[deadline] = timeout
                try:
                    return await work(deadline)
                finally:
                    del self._deadlines[deadline]
        except TimeoutError as error:
            raise McpError(
                f"{who} did not answer within {timeout:g} s and was cancelled.",
                hint="Its outcome is unknown. `timeout` in the server's entry gives it longer.",
                code="mcp_timeout",
                server=self._server,
                seconds=timeout,
            ) from error
        except MCPError as error:
            if self.over.is_set() or error.error.code == types.CONNECTION_CLOSED:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(GOODBYE):
                        await self.over.wait()
                raise self._ended() from error
            raise McpError(
                f"{who} answered with an error: {one_line(str(error), 1_000)}",
                code="mcp_refused",
                server=self._server,
            ) from error
        except McpError:
            raise
        except Exception as error:
            if self.over.is_set():
                raise self._ended() from error
            raise McpError(
                f"{who} gave an answer that can't be read: {one_line(describe(error), 500)}",
                code="mcp_refused",
                server=self._server,
            ) from error

    def _ended(self) -> McpError:
        return McpError(
            f"The MCP server {self._server} ended while it was asked: {self.reason or 'the connection closed'}."
            f"{self._told()}",
            hint="Whether it did what it was asked is unknown. It is started again when it is next needed.",
            code="mcp_ended",
            server=self._server,
            reason=self.reason,
        )

    async def listing(self, *, timeout: float) -> Listing:
        """All that the server says of its tools. Raises McpError."""

        async def work(client: Client) -> Listing:
            found: dict[str, ToolInfo] = {}
            notes: list[str] = []
            cursor: str | None = None
            for _ in range(MOST_PAGES):
                if client.server_capabilities.tools is None:
                    break
                page = await client.list_tools(cursor=cursor, cache_mode="refresh")
                for tool in page.tools:
                    if tool.name in found:
                        notes.append(
                            f"{one_line(tool.name, 60)} is there twice; the first one counts"
                        )
                    elif len(found) == MOST_TOOLS:
                        notes.append(f"only {MOST_TOOLS} tools are looked at")
                        break
                    else:
                        found[tool.name] = _tool_info(tool)
                cursor = page.next_cursor
                if not cursor or len(found) == MOST_TOOLS:
                    break
            info = client.server_info
            return Listing(
                tools=tuple(found.values()),
                instructions=(client.instructions or "")[:8_000],
                server=safe(info.name, keep_newlines=False)[:100] if info else "",
                version=safe(info.version, keep_newlines=False)[:60] if info else "",
                notes=tuple(dict.fromkeys(notes)),
            )

        self.fresh = True
        return await self.request(work, timeout=timeout)

    # What it asks and says

    async def _elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        """A question for the user, who takes their time; it ends with the call that it belongs to."""
        if not self._callers:
            return types.ElicitResult(action="decline")
        caller = self._callers[-1]
        question = asyncio.create_task(elicit(self._server, params, caller))
        entry = (caller, question)
        self._questions.append(entry)
        self._set_clocks(running=False)
        try:
            await asyncio.wait([question])
        finally:
            question.cancel()
            self._questions.remove(entry)
            self._set_clocks(running=not self._questions)
        return types.ElicitResult(action="cancel") if question.cancelled() else question.result()

    def _set_clocks(self, *, running: bool) -> None:
        """Let the time of calls run on, from its beginning, or stand still."""
        now = asyncio.get_running_loop().time()
        for deadline, timeout in self._deadlines.items():
            if not deadline.expired():
                deadline.reschedule(now + timeout if running else None)

    async def _roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        root = types.Root.model_validate({"uri": self._root.as_uri(), "name": self._root.name})
        return types.ListRootsResult(roots=[root])

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        data = params.data if isinstance(params.data, str) else repr(params.data)[:2_000]
        line = f"{params.level}: {one_line(data, 500)}"
        self.said.append(line)
        if self._callers:
            self._callers[-1].output(line + "\n")

    async def _message(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.fresh = False


async def _not_checked(name: str, result: types.CallToolResult) -> None:
    """What a server gives is data, whatever shape it has."""


def _tool_info(tool: types.Tool) -> ToolInfo:
    hints = (
        tool.annotations.model_dump(exclude_none=True, by_alias=True) if tool.annotations else {}
    )
    return ToolInfo(
        name=tool.name,
        description=tool.description or "",
        schema=tool.input_schema,
        title=tool.title or "",
        hints=hints,
    )


def describe(error: BaseException) -> str:
    """The innermost failures of a group, in a line."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(describe(each) for each in error.exceptions))
    return one_line(f"{error}" or type(error).__name__, 400)
