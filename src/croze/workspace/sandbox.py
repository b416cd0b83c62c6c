"""From what the user wants to what a command gets: the session's sandbox."""

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from dataclasses import replace as copied
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from croze.types.agent import Mode, Sandbox
from croze.types.errors import CrozeError
from croze.workspace.masks import guarded, hidden, temporary, visible
from croze.workspace.outputs import Outputs
from croze.workspace.proof import Proof, find_bwrap, remembered
from croze.workspace.repositories import Watched
from croze.workspace.wrapper import Policy, Wrapper

_SYSTEM_FOLDERS = frozenset(
    {"bin", "boot", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr", "var", "run"}
)


class NoSandbox(CrozeError):
    """Commands can't be confined. `reason` tells why, `fix` is one command that may help."""

    code = "no_sandbox"

    def __init__(self, reason: str, fix: str) -> None:
        help_ = f" Fix: {fix}." if fix else ""
        super().__init__(
            f"No OS sandbox: {reason}. Commands will always ask; `full` is off.{help_}",
            hint="Say --sandbox off to run commands with all of your rights.",
            reason=reason,
            fix=fix,
        )


class News(Struct, frozen=True):
    """What the user has to know once; `code` and `params` let a front end translate it."""

    code: str
    text: str
    params: Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class Confinement:
    """How far the commands of one workspace may go.

    `wanted` None is the best that there is: `workspace` where a sandbox holds, else none, which is
    said once. `own` names croze's folders, `cache` is the one that proofs are remembered in. `mode` is
    asked at each command: planning only reads. `lent` names folders of the user's that commands may read
    wherever they lie. Commands see the root as `shown` where that can be had.
    """

    root: Path
    env: Mapping[str, str]
    cache: Path
    own: tuple[Path, ...] = ()
    wanted: Sandbox | None = None
    mode: Callable[[], Mode] = lambda: "ask"
    network: bool = False
    lent: tuple[Path, ...] = ()
    shown: Path | None = None
    _proof: Proof | None = None
    _news: News | None = None
    _told: set[str] = field(default_factory=set)
    _outputs: Outputs | None = None
    _repositories: Watched | None = None
    _visible: tuple[Path, ...] | None = None
    _assumed: bool = False
    _looked: bool = False
    _known: Proof | None = None
    _proving: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def off(self) -> bool:
        """Whether the user wants none."""
        return self.wanted == "off"

    def level(self) -> Sandbox | None:
        """What commands run in now; None where there is none though none was waived.

        As long as nothing was tried, what is there is taken for good: should it turn out otherwise, the
        command that it was said for is not run (see `wrapper`).
        """
        if self.off:
            return "off"
        if unconfinable(self.root, self.env):
            return None
        if self._proof is None:
            if not self._looked:
                self._looked, self._known = True, remembered(self.cache, self.env)
            self._assumed = self._known is None or self._known.kind is not None
            if not self._assumed:
                return None
        elif self._proof.kind is None:
            self._assumed = False
            return None
        return "read-only" if self._only_reads() else "workspace"

    async def prove(self) -> Proof:
        """The sandbox that holds here. Raises `NoSandbox`."""
        reason = unconfinable(self.root, self.env)
        if reason:
            raise NoSandbox(reason, "start croze in the folder of a project")
        async with self._proving:
            from croze.workspace.probe import Prober

            if self._proof is None:
                self._proof = await Prober(self.cache, self.env).prove()
        return _held(self._proof)

    async def look(self) -> None:
        """Find out what holds, where nothing is known of this machine yet."""
        if self._proof is None and self._known is None and not self.off:
            with suppress(NoSandbox):
                await self.prove()

    async def wrapper(self) -> Wrapper | None:
        """The sandbox for a command that is about to run; None where commands run with the user's rights.
        Raises `NoSandbox` where none holds but the user has asked for one, is not asked himself, or was
        asked (or not) in the belief that there is one."""
        if self.off:
            return None
        try:
            proof = await self.prove()
        except NoSandbox as error:
            if self.wanted is not None or self.mode() == "full" or self._assumed:
                self._assumed = False
                raise
            self._news = News(error.code, error.message, error.params)
            return None
        if proof.gaps:
            self._news = _weaker(proof)
        if self._repositories is None:
            self._repositories = Watched(os.path.realpath(self.root))
        if proof.kind == "bubblewrap" and self._repositories.is_due:
            await asyncio.to_thread(self._repositories.look)
        return proof.wrapper(self.policy())

    async def for_reading(self, *, offline: bool = False) -> Wrapper | None:
        """The sandbox for croze's own reading of what others may have prepared; None where none holds.
        `offline`: without network, whatever commands may do."""
        if self.off:
            return None
        try:
            proof = await self.prove()
        except NoSandbox:
            return None
        policy = replace(self.policy(), level="read-only")
        return proof.wrapper(replace(policy, network=False) if offline else policy)

    def at_start(self) -> News | None:
        """What can be said of the sandbox without trying it out: that there is none."""
        if self.off:
            return None
        try:
            reason = unconfinable(self.root, self.env)
            if reason:
                raise NoSandbox(reason, "start croze in the folder of a project")
            self._looked, self._known = True, remembered(self.cache, self.env)
            known = self._known
            if known is None and find_bwrap(self.env) is None:
                from croze.workspace.probe import at_a_glance

                known = self._known = at_a_glance()
            if known is not None:
                _held(known)
        except NoSandbox as error:
            self._news = News(error.code, error.message, error.params)
        return self.news()

    def missed_network(self) -> News | None:
        """What to tell the user of a command that failed for want of network; once."""
        text = (
            f"A command may have failed because the sandbox has no network. To grant it: {GRANT}."
        )
        self._news = News("no_network", text, {})
        return self.news()

    def news(self) -> News | None:
        """What has come up since the last time; each thing once."""
        news, self._news = self._news, None
        if news is None or news.code in self._told:
            return None
        self._told.add(news.code)
        return news

    def outputs(self, folder: Path) -> Path:
        """A folder below `folder` for long outputs, which later commands can read."""
        if self._outputs is None:
            self._outputs = Outputs(folder)
        return self._outputs.folder()

    def another(self) -> "Confinement":
        """The same for another agent of the run: what was found out of this machine holds for it too."""
        told = set(self._told)
        return copied(self, _outputs=None, _news=None, _told=told, _proving=asyncio.Lock())

    def close(self) -> None:
        """No more commands will run: remove what was kept for them."""
        if self._outputs is not None:
            self._outputs.close()

    def _only_reads(self) -> bool:
        return self.wanted == "read-only" or self.mode() == "plan"

    def _nested(self) -> tuple[Path, ...]:
        return () if self._repositories is None else tuple(map(Path, self._repositories.present()))

    def policy(self) -> Policy:
        """What a command may touch that runs now."""
        root = Path(os.path.realpath(self.root))
        if self._visible is None:
            self._visible = visible(self.env, root)
        shown = self._visible
        if self._outputs is not None and self._outputs.made is not None:
            shown += (self._outputs.made,)
        return Policy(
            root=root,
            level="read-only" if self._only_reads() else "workspace",
            network=self.network,
            hidden=tuple(path for path in hidden(self.env, self.own) if path != root),
            temporary=temporary(self.env),
            visible=shown,
            guarded=guarded(self.env, root, self.own) + self._nested(),
            lent=tuple(Path(os.path.realpath(each)) for each in self.lent if each.is_dir()),
            shown=self.shown,
        )

    def moved(self, root: Path, *, shown: Path | None = None) -> "Confinement":
        """The same for another workspace of the run; one that is `shown` elsewhere has nothing of the
        user's."""
        lent = self.lent if shown is None else ()
        moved = copied(self.another(), root=root, shown=shown, lent=lent)
        return copied(moved, _repositories=None, _visible=None)


def _held(proof: Proof) -> Proof:
    if proof.kind is None:
        raise NoSandbox("; ".join(proof.reasons), proof.fix)
    return proof


def _weaker(proof: Proof) -> News:
    reason, gaps = "; ".join(proof.reasons), "; ".join(proof.gaps)
    return News(
        "weaker_sandbox",
        f"Commands run in a weaker sandbox, {proof.about}, because: {reason}. It has gaps: {gaps}."
        + (f" Fix: {proof.fix}." if proof.fix else ""),
        {"about": proof.about, "reason": reason, "gaps": gaps, "fix": proof.fix},
    )


GRANT = "croze … --allow network, or croze config set permissions.network true"
"""How commands get network."""

_NO_NETWORK = re.compile(
    r"Could not resolve|[Nn]ame resolution|Name or service not known|Network is unreachable"
    r"|ENOTFOUND|EAI_AGAIN|getaddrinfo|Connection refused|ECONNREFUSED|Operation not permitted.*socket"
)
_READ_ONLY = re.compile(r"Read-only file system|EROFS|[Rr]ead-only filesystem|os error 30")
_GIT = re.compile(r"\.git/[^\n]*(?:Read-only file system|os error 30)|index\.lock")


def explain(policy: Policy, output: str) -> tuple[str, ...]:
    """What a failed command's output has to do with the sandbox, for the model."""
    told = []
    if _GIT.search(output):
        told.append(
            "The sandbox keeps .git read-only: git can show, but not stage, commit, stash or switch. "
            "Leave that to the user (croze commit), and go on."
        )
    elif _READ_ONLY.search(output):
        where = "Only the workspace and /tmp" if policy.level == "workspace" else "Only /tmp"
        told.append(f"{where} can be written in the sandbox; /tmp is emptied after each command.")
    if lacks_network(policy, output):
        told.append(
            "The sandbox has no network but a loopback of its own, for this command. If it needs more, "
            f"only the user can grant it, by {GRANT}: say so, or do without."
        )
    return tuple(told)


def lacks_network(policy: Policy, output: str) -> bool:
    """Whether a failed command's output looks as if it had needed the network that it hasn't got."""
    return not policy.network and _NO_NETWORK.search(output) is not None


def unconfinable(root: Path, env: Mapping[str, str]) -> str:
    """Why no sandbox makes sense round this folder; nothing where one does."""
    real = Path(os.path.realpath(root))
    home = env.get("HOME", "")
    if len(real.parts) == 1:
        return "the project is the root of the file system"
    if len(real.parts) >= 2 and real.parts[1] in _SYSTEM_FOLDERS and len(real.parts) == 2:
        return f"the project is the system's folder {real}"
    if real.parts[1] in ("proc", "sys", "dev"):
        return f"the project lies in {real.parents[-2]}"
    if os.path.isabs(home) and real in Path(os.path.realpath(home)).parents:
        return f"the project {real} contains the home folder"
    return ""
