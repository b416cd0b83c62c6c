"""What servers said of their tools when they were first used: it holds until the user approves something else.

Kept in the user's state folder, one file a server, so that neither a project nor a server can write it.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from croze.edit.diff import unified
from croze.mcp.doubts import doubts
from croze.mcp.failure import McpError
from croze.mcp.listing import Listing, ToolInfo
from croze.store.files import private_folder, storage_error
from croze.text.display import exact

Standing = Literal["known", "new", "changed", "doubtful", "unusable"]
INSTRUCTIONS = "(instructions)"
"""Stands among the tools for what a server says of itself."""


class _Kept(Struct, frozen=True):
    server: str
    tools: dict[str, str]


class Pins:
    """The pins of all servers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "mcp-pins"

    def of(self, key: str) -> dict[str, str]:
        """What is pinned for a server: a tool's name → what was said of it. Raises McpError where it can't be read:
        what was approved is not known then."""
        path = self._folder / f"{key}.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=_Kept).tools
        except FileNotFoundError:
            return {}
        except msgspec.DecodeError as error:
            raise McpError(
                f"What was approved of this MCP server can't be read: {path} is damaged.",
                hint=f"Remove {path}; its tools are then approved anew.",
                code="mcp_pins",
                path=str(path),
            ) from error
        except OSError as error:
            raise storage_error(error, self._folder) from error

    def keep(self, key: str, server: str, said: dict[str, str]) -> None:
        """Pin these words, beside what is pinned already."""
        path = self._folder / f"{key}.json"
        draft = path.with_suffix(f".{os.getpid()}")
        try:
            private_folder(self._folder)
            with self._locked():
                kept = _Kept(server, {**self.of(key), **said})
                handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
                with os.fdopen(handle, "wb") as file:
                    file.write(msgspec.json.encode(kept))
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(draft, path)
        except OSError as error:
            raise storage_error(error, self._folder) from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        handle = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def standing(tool: ToolInfo, pinned: dict[str, str]) -> Standing:
    """How a tool stands to what is pinned of its server."""
    if tool.unusable:
        return "unusable"
    was = pinned.get(tool.name)
    if was == tool.said:
        return "known"
    if was is not None:
        return "changed"
    return "doubtful" if tool.doubts else "new"


def first_seen(listing: Listing, pinned: dict[str, str]) -> dict[str, str]:
    """What is to be pinned now: the words of tools that are new and raise no doubt, and the server's own."""
    said = {tool.name: tool.said for tool in listing.tools if standing(tool, pinned) == "new"}
    instructions = listing.instructions
    if instructions and INSTRUCTIONS not in pinned and not doubts(instructions):
        said[INSTRUCTIONS] = listing.instructions
    return said


def difference(tool: ToolInfo, pinned: dict[str, str]) -> str:
    """What a person judges by: the diff to what was pinned, or all of it where nothing was. Letter by letter: what
    can't be seen stands there as its code."""
    was = pinned.get(tool.name)
    if was is None:
        return exact(tool.said)
    return unified(exact(was), exact(tool.said), tool.name, limit=200).text
