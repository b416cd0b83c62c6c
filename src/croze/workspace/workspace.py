"""A workspace: a root folder that an agent's tools work in."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from croze.workspace.files import Files
from croze.workspace.paths import WorkspaceKind
from croze.workspace.sandbox import Confinement

if TYPE_CHECKING:
    from croze.workspace.task_mask import Mask


@dataclass(frozen=True, slots=True)
class Workspace:
    """A root, its owner (an agent's id) and its kind.

    A `project` is a folder of the user's; a `task` workspace is croze's own, made when first written
    (`croze.workspace.task`). `root` is made absolute and free of links. `confinement` says how far
    commands in it may go; None lets them run with the user's rights. `mask` takes the root out of what
    the model is shown, where it must not know it.
    """

    id: str
    root: Path
    owner: str
    kind: WorkspaceKind = "project"
    confinement: Confinement | None = field(default=None, repr=False, compare=False)
    mask: "Mask | None" = field(init=False, repr=False, compare=False)
    files: Files = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        root = Path(os.path.realpath(self.root))
        object.__setattr__(self, "root", root)
        object.__setattr__(self, "files", Files(root, kind=self.kind))
        mask = None
        if self.kind == "task":
            from croze.workspace.task_mask import Mask

            mask = Mask(root, None if self.confinement is None else self.confinement.shown)
        object.__setattr__(self, "mask", mask)

    @property
    def written(self) -> bool:
        """Whether the folder is there: a task workspace's is made by the first write."""
        return self.root.is_dir()
