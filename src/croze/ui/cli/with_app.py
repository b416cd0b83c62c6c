"""What commands that run no agent share: the application for one piece of work, and JSON as an answer."""

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from croze.ui.cli.exits import Exit
from croze.ui.cli.state import State

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from croze.app.app import App

T = TypeVar("T")


def with_app(state: State, work: "Callable[[App], Awaitable[T]]") -> T:
    """Do something with the application and close it."""

    async def run() -> T:
        app = state.open()
        try:
            state.tell_store(app)
            return await work(app)
        finally:
            await app.aclose()

    return asyncio.run(run())


def write_json(state: State, value: Any) -> int:
    """Write a value as one line of JSON."""
    import msgspec

    state.out.json(msgspec.json.encode(value) + b"\n")
    return Exit.DONE
