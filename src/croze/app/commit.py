"""`croze commit`: what a session has changed, as one commit, with the user's own changes left alone."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from croze.agent.aside import Record
from croze.agent.undo import Changed, History, Turn, effects, history
from croze.app.assemble import confinement_for, open_journal
from croze.app.commit_message import plain_message, written_message
from croze.app.options import RunOptions
from croze.app.timetravel import chosen, root_of, summed, turn_of
from croze.types.errors import CrozeError, UsageError
from croze.types.tool import FileChange
from croze.workspace.git import Git, GitError, Listed
from croze.workspace.git_commit import CommitFile, check_ready, commit_files
from croze.workspace.git_index import blob_name
from croze.workspace.journal import Journal
from croze.workspace.restore import Present, look

if TYPE_CHECKING:
    from croze.app.app import App

Reason = Literal["before", "since", "staged"]


class Protected(CrozeError):
    """Files hold changes that aren't the session's; nothing was committed. `params["files"]` maps them
    to why: changed `before` the session, `since` then, or `staged` by somebody else."""

    code = "commit_protected"


class CommitReport(Struct, frozen=True):
    """`commit` is the new commit's name, empty where it was only looked at (`dry_run`). `left_out` maps
    paths to why: `ignored` by git, or `filtered`: git would have to run a program for them. `by` says
    who wrote the message, `problem` why the model didn't."""

    session: str
    commit: str
    message: str
    files: tuple[str, ...]
    left_out: Mapping[str, str]
    by: Literal["user", "model", "template"]
    problem: str = ""


async def commit(
    app: "App",
    session: str | None = None,
    *,
    turn: int | None = None,
    last: bool = False,
    message: str | None = None,
    everything: bool = False,
    dry_run: bool = False,
) -> CommitReport:
    """Commit the files that a session (or one turn, or its last one with changes) has changed, as they
    stand now. Files with other changes in them refuse the whole, unless `everything` takes them in.

    Raises Protected, GitError, UsageError, SessionBusy.
    """
    with closing(await app.store.open_log(await chosen(app, session))) as log:
        found = history(log.events)
        root = await root_of(app, log.session, log.events)
        options = RunOptions().resolved(app.config.settings)
        confinement = confinement_for(app.config, options, app.env, lambda: "plan")
        git = Git.of(root, app.env, confinement)
        if git is None:
            raise UsageError(
                f"{root} is no git repository.",
                hint="`git init` makes one; undo and diff work without.",
                code="no_repository",
                path=str(root),
            )
        await check_ready(git)
        turns = _turns(found, turn, last=last)
        candidates = await _candidates(git, found, turns, open_journal(app.config), root)
        if candidates.protected and not everything:
            raise _protected(candidates.protected)
        if not candidates.files:
            raise GitError(
                "There is nothing to commit.",
                hint="`croze diff` shows what the session has changed.",
                code="nothing_to_commit",
            )
        paths = tuple(file.path for file in candidates.files)
        by: Literal["user", "model", "template"] = "user"
        text, problem = message or "", ""
        if not text:
            changes = _changes(found, turns, open_journal(app.config), set(paths))
            plain = plain_message([item.title for item in turns], changes)
            text, by = plain, "template"
            if app.config.settings.model.commit:
                record = Record(events=log.events, append=log.append, new_id=app.store.source.uuid)
                written = await written_message(app, record, plain, changes)
                problem = written.problem
                if written.text:
                    text, by = written.text, "model"
        name = "" if dry_run else await commit_files(git, candidates.files, text)
        return CommitReport(
            session=log.session,
            commit=name,
            message=text,
            files=paths,
            left_out=candidates.left_out,
            by=by,
            problem=problem,
        )


def _turns(found: History, number: int | None, *, last: bool) -> list[Turn]:
    """The turns whose changes are meant, those without any left out."""
    if number is not None:
        return [turn_of(found, number)]
    turns = [turn for turn in found.turns if found.active(turn)]
    return turns[-1:] if last else turns


@dataclass(frozen=True, slots=True)
class _Candidates:
    files: list[CommitFile]
    protected: dict[str, Reason]
    left_out: dict[str, str]


async def _candidates(
    git: Git, found: History, turns: Sequence[Turn], journal: Journal, root: Path
) -> _Candidates:
    """Each changed file, held against HEAD, the index and what the session left."""
    chains = _chains(item for turn in found.turns for item in found.active(turn))
    wanted = {
        effect.path
        for turn in turns
        for item in found.active(turn)
        for change in item.changes
        for effect in effects(change)
    }
    paths = sorted(wanted)
    head, index = await git.in_head(paths), await git.in_index(paths)
    ignored = await git.ignored([path for path in paths if path not in head])
    filtered = await git.filtered(paths)
    result = _Candidates([], {}, {})
    for path in paths:
        if path in ignored or path in filtered:
            result.left_out[path] = "ignored" if path in ignored else "filtered"
            continue
        present = look(root, path)
        if _is_in_head(present, head.get(path)):
            continue
        reason = _reason(chains[path], present, head.get(path), index.get(path), journal)
        if reason is not None:
            result.protected[path] = reason
        if present is None:
            if path in head:
                result.files.append(CommitFile(path, None))
        elif present.data is not None:
            target = present.data if (present.mode & 0o170000) == 0o120000 else None
            result.files.append(CommitFile(path, present.mode, target))
    return result


def _chains(items: Iterable[Changed]) -> dict[str, list[str | None]]:
    """Every state that the session has known of a path, the oldest first: hashes, None for no file."""
    chains: dict[str, list[str | None]] = {}
    for item in items:
        for change in item.changes:
            for effect in effects(change):
                chain = chains.setdefault(effect.path, [] if effect.lost else [effect.before])
                chain.append(effect.after)
    return chains


def _reason(
    chain: Sequence[str | None],
    present: Present | None,
    head: Listed | None,
    index: Listed | None,
    journal: Journal,
) -> Reason | None:
    """Why a file holds more than the session's changes; None where it doesn't."""
    if (present.digest if present is not None else None) != chain[-1]:
        return "since"
    blobs: set[str | None] = {None} if None in chain else set()
    for digest in chain:
        data = None if digest is None else journal.get(digest)
        if data is not None:
            like = (head or index or Listed("", "0" * 40)).blob
            blobs |= {blob_name(data, like), blob_name(data.replace(b"\r\n", b"\n"), like)}
    if (head.blob if head is not None else None) not in blobs:
        return "before"
    staged = index.blob if index is not None else None
    known = {*blobs, head.blob if head is not None else None}
    return None if staged in known else "staged"


def _is_in_head(present: Present | None, head: Listed | None) -> bool:
    """Whether HEAD already has the file as it stands."""
    if present is None or head is None:
        return present is None and head is None
    if present.data is None or blob_name(present.data, head.blob) != head.blob:
        return False
    return head.mode == "120000" or (head.mode == "100755") == bool(present.mode & 0o100)


def _changes(
    found: History, turns: Sequence[Turn], journal: Journal, paths: set[str]
) -> tuple[FileChange, ...]:
    changes = [c for turn in turns for item in found.active(turn) for c in item.changes]
    return tuple(c for c in summed(changes, journal.get) if c.path in paths)


def _protected(files: Mapping[str, Reason]) -> Protected:
    why = {
        "before": "had changes of yours before the session",
        "since": "has changed since the session",
        "staged": "has other changes staged",
    }
    names = "; ".join(f"{path} {why[reason]}" for path, reason in list(files.items())[:10])
    more = f"; and {len(files) - 10} more" if len(files) > 10 else ""
    return Protected(
        f"These files hold more than the session's changes: {names}{more}. Nothing was committed.",
        hint="Commit or stash your part first, or take everything in with --all.",
        files=dict(files),
        names=names + more,
    )
