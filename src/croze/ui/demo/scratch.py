"""The demo's own folder: a copy of the sample project, and a store beside it instead of the user's."""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from croze.types.errors import UsageError
from croze.ui.i18n import _

SAMPLE = Path(__file__).parent / "project"


@dataclass(frozen=True, slots=True)
class Scratch:
    """`project` is the copy to work in, `data` the folder that holds the store; `kept` where the user
    named the folder."""

    folder: Path
    kept: bool

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """`env` without the user's settings, with this Python first and croze's folders in here."""
        own = {name: value for name, value in env.items() if not name.startswith("CROZE_")}
        for name in ("config", "data", "cache", "state"):
            own[f"XDG_{name.upper()}_HOME"] = str(self.folder / name)
        own["PATH"] = os.pathsep.join(
            (os.path.dirname(sys.executable), env.get("PATH", os.defpath))
        )
        return own


@contextlib.contextmanager
def open_scratch(keep: str | None) -> Iterator[Scratch]:
    """A fresh folder with the project in it: `keep`, which stays, else one that is removed again.

    Raises UsageError where `keep` holds something already or can't be written.
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="croze-demo-", ignore_cleanup_errors=True) as made:
            yield _filled(Scratch(Path(made).resolve(), kept=False))
        return
    folder = Path(keep).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        used = any(folder.iterdir())
        scratch = Scratch(folder.resolve(), kept=True)
        if not used:
            _filled(scratch)
    except OSError as error:
        raise UsageError(
            _(
                "{folder} can't be used: {reason}",
                folder=folder,
                reason=error.strerror or str(error),
            ),
            hint=_("name a new or an empty folder with --keep"),
            code="demo_folder",
        ) from error
    if used:
        raise UsageError(
            _("{folder} is not empty", folder=folder),
            hint=_("name a new or an empty folder with --keep"),
            code="demo_folder",
        )
    yield scratch


def _filled(scratch: Scratch) -> Scratch:
    """Copies the sample. It becomes a repository of its own, an empty one: inside another one's tree the
    session would work on that other one."""
    shutil.copytree(SAMPLE, scratch.project, ignore=shutil.ignore_patterns("__pycache__"))
    git = scratch.project / ".git"
    for name in ("objects", "refs"):
        (git / name).mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n", "utf-8")
    return scratch
