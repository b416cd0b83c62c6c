"""Regular expressions that are compiled when they are first used: most of a program's never are."""

import re
from collections.abc import Callable, Iterator
from typing import Any

_METHODS = ("match", "search", "fullmatch", "finditer", "findall", "split", "sub")


class Regex:
    """As `re.compile`'s result, whose methods these are from the first use on."""

    match: "Callable[..., re.Match[str] | None]"
    search: "Callable[..., re.Match[str] | None]"
    fullmatch: "Callable[..., re.Match[str] | None]"
    finditer: "Callable[..., Iterator[re.Match[str]]]"
    findall: Callable[..., list[Any]]
    split: Callable[..., list[str]]
    sub: Callable[..., str]

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self.flags = flags

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self.flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(self, name)

    def __repr__(self) -> str:
        return f"Regex({self.pattern!r})"
