"""The user's word on a documentation set's structure, at the terminal."""

import asyncio
import os
import sys
import tempfile
from typing import TYPE_CHECKING

from croze.types.errors import CrozeError
from croze.types.event import Asked, Event
from croze.ui.cli.config import run_editor
from croze.ui.cli.state import State
from croze.ui.i18n import _

if TYPE_CHECKING:
    from croze.app.app import Session


class Review:
    """Shows a structure when the session asks about it, and gives it the answer: accept, reject, the
    structure as the user has edited it, or what to change."""

    def __init__(self, state: State, session: "Session") -> None:
        self._state = state
        self._session = session
        self._asking: set[asyncio.Task[None]] = set()

    def take(self, event: Event) -> None:
        from croze.app.docs import is_review

        if is_review(event) and isinstance(event.body, Asked):
            task = asyncio.get_running_loop().create_task(self._ask(event.body))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def _ask(self, asked: Asked) -> None:
        self._session.answer(asked.ask_id, await self._answer(asked.text))

    async def _answer(self, structure: str) -> str:
        from croze.app.docs import NO, YES

        out = self._state.out
        out.note(structure)
        question = _("Accept this structure? [y]es, [e]dit, [n]o, or what to change:") + " "
        while True:
            out.note(question, end="")
            line = await _line()
            word = line.strip()
            if not line or word.casefold() in ("n", "no", "reject", "否"):
                return NO
            if word.casefold() in ("y", "yes", "accept", "是"):
                return YES
            if word.casefold() in ("e", "edit", "改"):
                edited = await asyncio.to_thread(self._edited, structure)
                if edited:
                    return edited
            elif word:
                return word

    def _edited(self, structure: str) -> str:
        """The structure as it comes back from the user's editor; empty where it couldn't be started."""
        handle, path = tempfile.mkstemp(prefix="croze-docs-", suffix=".yaml")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(structure)
            run_editor(self._state, path)
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except (CrozeError, OSError) as error:
            self._state.out.note(f"croze: {error}")
            return ""
        finally:
            os.unlink(path)


async def _line() -> str:
    """A line from the terminal; empty at its end. A cancel leaves nothing behind that reads on."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        if not line.done():
            line.set_result(sys.stdin.readline())

    loop.add_reader(sys.stdin.fileno(), read)
    try:
        return await line
    finally:
        loop.remove_reader(sys.stdin.fileno())
