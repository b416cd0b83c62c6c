"""Repositories below a project's root, looked for breadth first within bounds."""

import os
import time
from collections import deque
from contextlib import suppress

MOST_FOLDERS = 5_000
MOST_ENTRIES = 100_000
MOST_SECONDS = 0.2
"""What one look takes at most: the upper folders come first."""

MOST_FOUND = 200
_NOT_ENTERED = frozenset({".git", ".croze", "node_modules", ".venv", "__pycache__"})


def nested(root: str) -> tuple[str, ...]:
    """The `.git` folders and files more than one folder below the root; links are not followed."""
    deadline = time.monotonic() + MOST_SECONDS
    waiting = deque([(root, 0)])
    found: list[str] = []
    folders = entries = 0
    while waiting and folders < MOST_FOLDERS and len(found) < MOST_FOUND:
        folder, depth = waiting.popleft()
        folders += 1
        if entries > MOST_ENTRIES or time.monotonic() > deadline:
            break
        with suppress(OSError), os.scandir(folder) as listed:
            for entry in listed:
                entries += 1
                if entry.name == ".git" and depth > 1:
                    found.append(entry.path)
                elif entry.name not in _NOT_ENTERED and entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, depth + 1))
    return tuple(found[:MOST_FOUND])


class Watched:
    """The repositories below a root as the last look found them. A look may be repeated once it would
    cost less than a hundredth of the time since the last."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._found: tuple[str, ...] = ()
        self._due = 0.0

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._due

    def look(self) -> None:
        """Takes as long as the look does: not for the event loop's own thread."""
        began = time.monotonic()
        self._found = nested(self._root)
        now = time.monotonic()
        self._due = now + max(5.0, 100 * (now - began))

    def present(self) -> tuple[str, ...]:
        return tuple(path for path in self._found if os.path.lexists(path))
