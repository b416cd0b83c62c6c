"""Active context: a note for each folder on what it is and what has changed, kept below `.croze`."""

import os
from pathlib import Path

from croze.edit.source import read_source
from croze.text.redact import redact
from croze.workspace.files import Files
from croze.workspace.paths import PathError

FOLDER = ".croze/active-context"
NAME = "active.md"
MOST_CHARACTERS = 4_000
"""Of a note: what is longer is cut where it is told."""
_MOST_BYTES = 100_000


class ActiveContext:
    """The notes of one project. Tools can't write there; croze itself does, through no link."""

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))
        self._files = Files(self._root, kind="project")

    def path(self, folder: str) -> str:
        """Where the note of a folder lies; the root's is empty or `.`."""
        inner = "" if folder == "." else folder
        return "/".join(part for part in (FOLDER, inner, NAME) if part)

    def read(self, folder: str) -> str:
        """The note on a folder, without secrets; empty where there is none that can be read."""
        path = self.path(folder)
        try:
            found = self._files.stat(path)
            if found is None or found.kind != "file" or found.size > _MOST_BYTES:
                return ""
            source = read_source(self._files.read(path, _MOST_BYTES).data)
        except PathError:
            return ""
        return "" if source is None else redact(source.text)[0].strip()

    def write(self, folder: str, text: str) -> None:
        """Replace the note on a folder. Raises PathError or OSError where that can't be done."""
        top = self._root / FOLDER
        for place in (top.parent, top):
            if place.is_symlink():
                raise PathError(
                    "write_failed",
                    self.path(folder),
                    f"{place.name} is a link; nothing was written.",
                )
        top.mkdir(parents=True, exist_ok=True)
        inner = self.path(folder).removeprefix(f"{FOLDER}/")
        Files(top, kind="project").write(inner, f"{text.strip()}\n".encode())
