"""Searching the web: an interface, and the engines of the extra `websearch` behind it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from croze.web.address import WebError
from croze.workspace.apart import Overflowed, apart

SECONDS = 20.0
_MOST_ANSWER = 4 << 20


class Hit(Struct, frozen=True):
    """One page that was found."""

    title: str
    url: str
    snippet: str = ""


class Query(Struct, frozen=True):
    """What is asked: `backend` names the engines, `seconds` is the time each of them has."""

    text: str
    limit: int
    backend: str = "auto"
    seconds: int = 8


class Hits(Struct, frozen=True, omit_defaults=True):
    """What was found, or (`code`) why nothing was."""

    hits: tuple[Hit, ...] = ()
    code: str = ""
    message: str = ""
    hint: str = ""


class Engine(Protocol):
    """Finds pages. Raises `WebError`."""

    async def search(self, query: str, *, limit: int, env: Mapping[str, str]) -> Sequence[Hit]: ...


class LibraryEngine:
    """The engines that ddgs knows, asked apart: its threads can't be stopped, a program can."""

    def __init__(self, *, seconds: float = SECONDS) -> None:
        self._seconds = seconds

    async def search(self, query: str, *, limit: int, env: Mapping[str, str]) -> Sequence[Hit]:
        asked = msgspec.json.encode(Query(text=query, limit=limit))
        try:
            ended, out = await apart(
                "croze.web.library", asked, env=env, timeout=self._seconds, most=_MOST_ANSWER
            )
            found = msgspec.json.decode(out, type=Hits)
        except (Overflowed, msgspec.DecodeError, UnicodeDecodeError) as error:
            slow = not isinstance(error, Overflowed) and ended.ended == "timeout"
            raise WebError(
                f"The search was given up after {self._seconds:g} s."
                if slow
                else "The search failed.",
                hint="Try again later, or fetch a page that you know with web_crawl.",
                code="too_slow" if slow else "bad_answer",
            ) from error
        if found.code:
            raise WebError(found.message, hint=found.hint, code=found.code)
        return found.hits
