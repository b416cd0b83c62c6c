"""Keeping a task workspace's place from the model: its path becomes `.` in whatever is shown."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

_ENDS = r"(?![\w.-])"
"""Behind a path, so that `/w/agent-1` isn't taken for the beginning of `/w/agent-10`."""


class Mask:
    """Hides a root (as `.`) and the folder that it lies in (as `..`), in their own writing and as they
    stand in JSON and in addresses. What commands see in the root's place, `shown`, is hidden in output."""

    def __init__(self, root: Path, shown: Path | None = None) -> None:
        self._plain = _forms({str(root): ".", str(root.parent): ".."})
        self._pattern = re.compile(_any_of(self._plain))
        places = {**self._plain, **(_forms({str(shown): "."}) if shown is not None else {})}
        self._output = {os.fsencode(form): name.encode() for form, name in places.items()}
        self._found = re.compile(os.fsencode(_any_of(places)))

    def text(self, text: str) -> str:
        """`text` without the root."""
        return self._pattern.sub(lambda found: self._plain[found.group()], text)

    def value(self, value: Any) -> Any:
        """The same in every text of a JSON value."""
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {self.value(key): self.value(each) for key, each in value.items()}
            case list() | tuple():
                return [self.value(each) for each in value]
            case _:
                return value

    def stream(self) -> "MaskedOutput":
        """What hides it in one program's output, as it comes."""
        return MaskedOutput(self._output, self._found)


class MaskedOutput:
    """Output without the places. What may be the beginning of one is held back until more comes."""

    def __init__(self, places: Mapping[bytes, bytes], pattern: re.Pattern[bytes]) -> None:
        self._places = places
        self._pattern = pattern
        self._longest = max(map(len, places))
        self._rest = b""

    def feed(self, chunk: bytes) -> bytes:
        text = self._rest + chunk
        done, at = [], 0
        for found in self._pattern.finditer(text):
            if self._begins(text, found.start()):
                break
            done += [text[at : found.start()], self._places[found.group()]]
            at = found.end()
        end = text.find(b"/", max(at, len(text) - self._longest))
        while end >= 0 and not self._begins(text, end):
            end = text.find(b"/", end + 1)
        end = len(text) if end < 0 else end
        self._rest = text[end:]
        return b"".join((*done, text[at:end]))

    def finish(self) -> bytes:
        text, self._rest = self._rest, b""
        return self._pattern.sub(lambda found: self._places[found.group()], text)

    def _begins(self, text: bytes, at: int) -> bool:
        """Whether all that follows may be the beginning of a place, or one whose end isn't certain."""
        left = text[at : at + self._longest + 1]
        return any(place.startswith(left) for place in self._places)


def _forms(places: Mapping[str, str]) -> dict[str, str]:
    """Every writing of each place; "/" is none."""
    found: dict[str, str] = {}
    for place, name in places.items():
        quoted = (json.dumps(place, ensure_ascii=strict)[1:-1] for strict in (False, True))
        for form in (place, quote(os.fsencode(place)), *quoted):
            if form.strip("/"):
                found.setdefault(form, name)
    return found


def _any_of(forms: Iterable[str]) -> str:
    """The longer ones first: a place may lie in another."""
    return f"(?:{'|'.join(map(re.escape, sorted(forms, key=len, reverse=True)))}){_ENDS}"
