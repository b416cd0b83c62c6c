"""`croze blame`: which session, agent, turn and call wrote each line of a file as it is now.

The versions come from the logs of all sessions of the project, sub-agents' too, their contents from the
journal. What croze has not written is git's to tell, where there is git.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from croze.agent.undo import effects, history
from croze.app.assemble import confinement_for, open_journal
from croze.app.blame_fold import YOU, Fold, Origin, Text, Version
from croze.app.options import RunOptions
from croze.edit.source import is_binary
from croze.store.changes import sessions_changing
from croze.types.errors import ConversationNotFound, UsageError
from croze.types.event import (
    ChildOpened,
    Event,
    FilesChanged,
    HeadSet,
    SessionOpened,
    Undoing,
)
from croze.types.tool import FileChange
from croze.workspace.git import Git, GitError
from croze.workspace.paths import below
from croze.workspace.restore import look

if TYPE_CHECKING:
    from croze.app.app import App

UNKNOWN = Origin(by="unknown")


class BlameLine(Struct, frozen=True):
    """One line, from 1; `text` without its end."""

    line: int
    text: str
    origin: Origin


class Blame(Struct, frozen=True):
    """A file's lines with their origins; `path` is relative to the project."""

    path: str
    lines: tuple[BlameLine, ...]


@dataclass(slots=True)
class _Session:
    """What the fold needs of one log. `home` is the sub-agent in whose work tree it worked, empty for
    the project itself."""

    id: str
    events: list[Event]
    parent: str | None
    agent: str = ""
    home: str = ""
    project: str = ""
    opened: dict[str, ChildOpened] = field(default_factory=dict)


async def blame(app: "App", path: str, cwd: Path) -> Blame:
    """Raises UsageError where `path` (relative to `cwd`, or absolute) is no text file of the project."""
    root = app.config.project.root
    name = _in_project(root, cwd, path)
    present = await asyncio.to_thread(look, root, name)
    data = _readable(path, present.data if present is not None else None, root / name)
    sessions = await _Logs(app, root).naming(name)
    journal = open_journal(app.config)
    text = await asyncio.to_thread(lambda: _Versions(sessions, journal.get).text(name, data))
    lines, origins = await _with_git(app, root, name, text)
    return Blame(
        path=name,
        lines=tuple(
            BlameLine(at, _readable_line(line), origin)
            for at, (line, origin) in enumerate(zip(lines, origins, strict=True), start=1)
        ),
    )


def _readable_line(line: str) -> str:
    return line.rstrip("\r\n").encode("latin-1").decode("utf-8", "replace")


def _in_project(root: Path, cwd: Path, path: str) -> str:
    try:
        asked = os.path.join(cwd, path)
        # The folder's real path: a link itself has no lines.
        real = os.path.join(os.path.realpath(os.path.dirname(asked)), os.path.basename(asked))
        name = below(os.path.realpath(real), root)
    except ValueError:
        name = None
    if name is None:
        raise UsageError(
            f"{path} is outside of the project {root}.",
            hint="Name a file of this project.",
            code="blame_outside",
            path=path,
            root=str(root),
        )
    return name


def _readable(path: str, data: bytes | None, place: Path) -> bytes:
    if not os.path.lexists(place):
        raise UsageError(
            f"There is no file {path}.",
            hint="Name a file as it is now; `croze diff` shows what was removed.",
            code="blame_no_file",
            path=path,
        )
    if data is None or place.is_symlink():
        raise UsageError(
            f"{path} is a folder, or no regular file that can be read.",
            hint="Name a text file.",
            code="blame_not_a_file",
            path=path,
        )
    if is_binary(data) or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise UsageError(
            f"{path} has no lines that could be told apart: it is binary, or UTF-16.",
            hint="Name a text file.",
            code="blame_binary",
            path=path,
        )
    return data


@dataclass(slots=True)
class _Logs:
    """The logs that matter for a path."""

    app: "App"
    root: Path
    _read: dict[str, _Session] = field(default_factory=dict)

    async def naming(self, path: str) -> list[_Session]:
        """The sessions that changed the path, under its earlier names too."""
        names, done = {path}, set[str]()
        found: dict[str, _Session] = {}
        while names - done:
            fresh, done = names - done, set(names)
            hits = await self.app.store.database.aside(partial(_changing, fresh))
            for session in sorted(hits):
                log = await self._session(session)
                if log is not None and log.project in ("", str(self.root)):
                    found[session] = log
                    names |= set(_earlier(log.events, names))
        return list(found.values())

    async def _session(self, session: str) -> _Session | None:
        if session in self._read:
            return self._read[session]
        try:
            events = await self.app.store.read(session)
        except ConversationNotFound:
            return None
        log = _Session(session, events, None)
        self._read[session] = log
        for event in events:
            match event.body:
                case SessionOpened() as body:
                    log.parent, log.project = body.parent, body.project
                case HeadSet(agent=agent):
                    log.agent = agent.name
                case ChildOpened(child=child) as body:
                    log.opened[child] = body
        parent = await self._session(log.parent) if log.parent else None
        if parent is not None:
            opened = parent.opened.get(session)
            log.home, log.project = parent.home, parent.project
            if opened is not None:
                log.agent = opened.agent
                if opened.isolation != "shared":
                    log.home = session
        return log


def _changing(paths: set[str], connection: sqlite3.Connection) -> set[str]:
    return sessions_changing(connection, paths)


def _earlier(events: Sequence[Event], names: set[str]) -> Iterator[str]:
    for event in events:
        for change in _changes(event):
            if change.path in names and change.moved_from is not None:
                yield change.moved_from


def _changes(event: Event) -> tuple[FileChange, ...]:
    match event.body:
        case FilesChanged(changes=changes) | Undoing(files=changes):
            return changes
        case _:
            return ()


class _Versions:
    """The versions of one file in the order of time, over all sessions of a place."""

    def __init__(
        self, sessions: Sequence[_Session], content: Callable[[str], bytes | None]
    ) -> None:
        self._sessions = {session.id: session for session in sessions}
        self._content = content
        self._origins = {session.id: _Origins(session) for session in sessions}

    def text(self, name: str, data: bytes) -> Text:
        return self._fold(name, "").finish(data)

    def _fold(self, name: str, home: str) -> Fold:
        fold = Fold(self._content)
        for version, known_as in self._of(name, home):
            came = self._fold(known_as, version.child).text if version.child else None
            fold.feed(version, came)
        return fold

    def _of(self, name: str, home: str) -> list[tuple[Version, str]]:
        """The versions in one place (`home`), followed back through moves."""
        found: list[tuple[int, str, int, FileChange, Version]] = []
        own: set[tuple[str, str, str | None, str | None]] = set()
        for session in self._sessions.values():
            if session.home != home:
                continue
            for event in session.events:
                for change in _changes(event):
                    version = self._version(session, event, change)
                    found.append((event.at, session.id, event.seq, change, version))
                    if not change.by:
                        own |= {
                            (session.id, each.path, each.before, each.after)
                            for each in effects(change)
                        }
        kept: list[tuple[Version, str]] = []
        for _, _, _, change, version in sorted(found, key=lambda item: item[:3], reverse=True):
            mine = [each for each in effects(change) if each.path == name]
            if not mine:
                continue
            one = mine[-1]
            if change.by and (change.by, name, one.before, one.after) in own:
                continue  # the sub-agent's own log has it
            if change.moved_from is not None and change.path == name:
                kept.append((replace(version, before=change.before), name))
                name = change.moved_from
            else:
                lost = change.lost and one.before is None
                kept.append((replace(version, before=one.before, after=one.after, lost=lost), name))
        return kept[::-1]

    def _version(self, session: _Session, event: Event, change: FileChange) -> Version:
        origin = self._origins[session.id].of(event)
        child = ""
        if change.by:
            worker = self._sessions.get(change.by)
            opened = session.opened.get(change.by)
            agent = worker.agent if worker is not None else opened.agent if opened else ""
            origin = Origin(by="croze", at=event.at, session=change.by, agent=agent)
            if worker is not None and worker.home == change.by:
                child = change.by
        return Version(
            at=event.at,
            seq=event.seq,
            before=change.before,
            after=change.after,
            origin=origin,
            undo=isinstance(event.body, Undoing),
            child=child,
        )


class _Origins:
    """The origins that the changes of one session stand for."""

    def __init__(self, session: _Session) -> None:
        self._session = session
        self._changed: Mapping[str, tuple[int, str]] | None = None

    def of(self, event: Event) -> Origin:
        if self._changed is None:
            found = history(self._session.events)
            self._changed = {
                call: (changed.turn, changed.tool) for call, changed in found.changed.items()
            }
        call = event.body.call_id if isinstance(event.body, FilesChanged) else ""
        turn, tool = self._changed.get(call, (0, ""))
        return Origin(
            by="croze",
            at=event.at,
            session=self._session.id,
            agent=self._session.agent,
            turn=turn,
            call=call,
            tool=tool,
        )


async def _with_git(
    app: "App", root: Path, name: str, text: Text
) -> tuple[list[str], list[Origin]]:
    """What nobody is known for yet is asked of git."""
    lines, origins = text
    if all(origin is not None and origin.by == "croze" for origin in origins):
        return lines, [origin for origin in origins if origin is not None]
    options = RunOptions().resolved(app.config.settings)
    git = Git.of(root, app.env, confinement_for(app.config, options, app.env, lambda: "plan"))
    told: dict[int, Origin] = {}
    if git is not None:
        try:
            await git.disarm()
            told = _parsed(await git.call("blame", "--porcelain", "--no-textconv", "--", name))
        except GitError:
            told = {}
    found = []
    for at, origin in enumerate(origins, start=1):
        if origin is not None and origin.by == "croze":
            found.append(origin)
        else:
            nobody = UNKNOWN if git is None else YOU
            found.append(told.get(at, origin or nobody))
    return lines, found


def _parsed(output: bytes) -> dict[int, Origin]:
    """`git blame --porcelain`: the commits by line; what isn't committed is left out."""
    commits: dict[str, Origin] = {}
    found: dict[int, str] = {}
    commit, author, at = "", "", 0
    for row in output.split(b"\n"):
        if row.startswith(b"\t"):
            if commit.strip("0"):
                commits.setdefault(
                    commit, Origin(by="git", at=at * 1_000_000, commit=commit, author=author)
                )
            continue
        key, _, value = row.partition(b" ")
        if key == b"author":
            author = value.decode("utf-8", "replace")
        elif key == b"author-time":
            at = int(value)
        elif len(key) in (40, 64) and value[:1].isdigit():
            commit = key.decode()
            found[int(value.split(b" ")[1])] = commit
    return {line: commits[commit] for line, commit in found.items() if commit in commits}
