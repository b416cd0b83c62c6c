"""Which files and folders a conversation is about: read, listed, changed, or named by the user with an @."""

import posixpath
import re
from collections.abc import Iterator, Sequence

from croze.types.event import Event, FilesChanged, ToolReturned, Undone, UserSaid
from croze.types.parts import Text

_NAMED = r"(?<![\w@/.])@(?:\"([^\"\n]+)\"|([^\s\"'`<>()\[\]{},;@][^\s\"'`<>()\[\]{},;]*))"


class InPlay:
    """The fold over a log. `files` are paths below the workspace's root in the order in which they came;
    `folders` those that hold them or were listed, with all above them but the root, which is empty. `touched`
    are the folders that the last `follow` found in use, new ones and old, `fresh` these and all above."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.folders: dict[str, None] = {}
        self.fresh: dict[str, None] = {}
        self.touched: dict[str, None] = {}
        self.generation = 0
        self._upto = 0

    def follow(self, events: Sequence[Event]) -> None:
        """Take in what is new in the log. What is undone is in play no longer."""
        undone: Undone | None = None
        self.fresh, self.touched = {}, {}
        for event in events[self._upto :]:
            if isinstance(event.body, Undone):
                undone = event.body
        if undone is not None:
            self.files, self.folders, self._upto = {}, {}, 0
            self.generation += 1  # whoever has counted files has to count anew
        for event in events[self._upto :]:
            if undone is None or not undone.hides(event.seq):
                self._take(event)
        self._upto = len(events)

    def _take(self, event: Event) -> None:
        match event.body:
            case ToolReturned(ok=True) as body:
                for path in body.observed:
                    self._file(path)
                kind, _, path = body.look.key.partition(":") if body.look else ("", "", "")
                if kind == "read":
                    self._file(path)
                elif kind == "list":
                    self._folder(posixpath.normpath(path))
            case FilesChanged() as body:
                for change in body.changes:
                    if not change.by:
                        self._file(change.path)
            case UserSaid() as body:
                for part in body.parts:
                    if isinstance(part, Text):
                        for path in named(part.text):
                            self._file(path)
            case _:
                pass

    def _file(self, path: str) -> None:
        path = posixpath.normpath(path)
        if path in (".", "..") or path.startswith(("/", "../")):
            return
        self.files.setdefault(path)
        self._folder(posixpath.dirname(path))

    def _folder(self, path: str) -> None:
        path = "" if path == "." else path
        if path == ".." or path.startswith(("/", "../")):
            return
        self.touched.setdefault(path)
        while True:
            self.folders.setdefault(path)
            self.fresh.setdefault(path)
            if not path:
                return
            path = posixpath.dirname(path)


def named(text: str) -> Iterator[str]:
    """The paths that a text names with an @. A bare word is none: it may be an agent's name."""
    for match in re.finditer(_NAMED, text) if "@" in text else ():
        path = match[1] or match[2].rstrip(".:!?")
        if "/" in path or "." in path:
            yield path
