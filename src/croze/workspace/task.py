"""Task workspaces: folders of croze's own that agents work in without knowing where they are."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace as copied
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from croze.store.files import private_folder
from croze.types.errors import CrozeError
from croze.workspace.placeholder import placeholder
from croze.workspace.sandbox import Confinement
from croze.workspace.workspace import Workspace
from croze.workspace.wrapper import Entrance, Entry

if TYPE_CHECKING:
    from croze.workspace.task_mask import Mask

SHOWN = Path("/run/workspace")
"""Where sandboxed commands see the workspace: the sandbox has a /run of its own."""

_ID = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"


class BadAgentId(CrozeError):
    """An agent's id that can't be the name of a folder."""

    code = "bad_agent_id"


def task_workspace(
    folder: Path, agent: str, *, confinement: Confinement | None = None
) -> Workspace:
    """The task workspace of an agent, below the project's data folder. Nothing is made: that is left to
    the first write. `confinement` is the session's own; it is moved here. Raises `BadAgentId`."""
    if not re.fullmatch(_ID, agent):
        raise BadAgentId(
            f"{agent[:100]!r} can't be an agent's id.",
            hint="Use letters, digits, dots, dashes and underscores, 100 at most.",
            agent=agent[:100],
        )
    root = Path(os.path.realpath(folder)) / "workspaces" / agent
    if confinement is not None:
        confinement = confinement.moved(root, shown=SHOWN)
    return Workspace(id=agent, root=root, owner=agent, kind="task", confinement=confinement)


def workspace_for(
    isolation: Literal["shared", "task"],
    *,
    caller: Workspace,
    folder: Path,
    agent: str,
    name: str,
) -> Workspace:
    """Where the sub-agent called `name` works, whose id (its session's) is `agent`: where its caller does,
    or in a task workspace below the project's data folder `folder`. Its commands have a confinement of
    their own. Whoever opens its session takes the root from here (approver, tracker, git, undo), not from
    the project; and the files that it changes in a task workspace are none of its caller's."""
    confinement = None if caller.confinement is None else caller.confinement.another()
    if isolation == "task":
        return task_workspace(folder, agent, confinement=confinement)
    return copied(caller, id=agent, owner=name, confinement=confinement)


def way_in(workspace: Workspace, sandbox: Entrance | None) -> Entrance | None:
    """The way in for a command: into the sandbox, if any; in a task workspace also into the folder, which
    is there for it even where nothing was written yet, and without telling where that is."""
    if workspace.mask is None:
        return sandbox
    return _InTask(workspace.root, workspace.mask, sandbox)


class _InTask(Struct, frozen=True):
    """A command that writes nothing leaves no folder."""

    root: Path
    mask: "Mask"
    sandbox: Entrance | None

    @contextmanager
    def enter(
        self, argv: Sequence[str], *, cwd: str | os.PathLike[str], env: Mapping[str, str]
    ) -> Iterator[Entry]:
        private_folder(self.root.parent)
        with placeholder(self.root, 0o700):
            inner = (
                nullcontext(Entry(argv=argv, cwd=cwd, env=env))
                if self.sandbox is None
                else self.sandbox.enter(argv, cwd=cwd, env=env)
            )
            with inner as entry:
                yield replace(entry, sieve=self.mask.stream())
