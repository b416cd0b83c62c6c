"""Conversations in and out of files, and the store's backups, for front ends."""

import asyncio
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from croze.store import transfer
from croze.store.backup import Backup, list_backups, make_backup, stamp_of
from croze.store.db import StoreSettings
from croze.store.restore import restore as restore_store
from croze.types.errors import StoreError
from croze.types.event import Notice
from croze.types.ids import SystemSource

if TYPE_CHECKING:
    from croze.app.app import App

Form = Literal["json", "events"]


async def export_session(app: "App", session: str, path: Path, form: Form) -> str:
    """Write one conversation to `path`: the transcript as JSON, or all its events as JSON lines.

    Gives the conversation's id. Raises `ConversationNotFound`, `StoreError`.
    """
    found = await app.conversations.resolve(session)
    if form == "events":
        await transfer.export_events(app.store, found, path)
    else:
        await transfer.export_json(app.conversations, found, path)
    return found


async def export_all(app: "App", folder: Path) -> int:
    """Write every conversation of the project into a folder; gives their number."""
    return len(await transfer.export_folder(app.conversations, folder))


async def import_path(
    app: "App", path: Path, *, new_id: bool
) -> tuple[tuple[str, ...], tuple[Notice, ...]]:
    """Take in a conversation's file (JSON, or events as `.jsonl`) or a folder of them; gives the new
    ids, and what of a folder was left out. Raises `ConversationExists`, `StoreError`."""
    if path.is_dir():
        imported = await transfer.import_folder(app.store, path)
        return imported.sessions, imported.problems
    if path.suffix == ".jsonl":
        return (await transfer.import_events(app.store, path, new_id=new_id),), ()
    return (await transfer.import_json(app.store, path, new_id=new_id),), ()


async def back_up(app: "App") -> Path:
    """Make a backup now; gives its file. Raises `StoreError` where it can't be made."""
    folder = app.config.store_folder
    limit = app.config.settings.store.max_backups
    stamp = stamp_of(SystemSource().now())
    await app.conversations.namespaces()  # opens the store, so that a new project has one to copy
    try:
        made = await asyncio.to_thread(make_backup, folder, max_backups=limit, stamp=stamp)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(
            f"no backup could be made in {folder}: {error}",
            hint="check the space and the rights of this folder",
            code="backup_failed",
            path=str(folder),
            reason=str(error),
        ) from error
    if made is None:
        raise StoreError(
            "another process is making a backup", hint="try again", code="backup_running"
        )
    return made


def backups(app: "App") -> list[Backup]:
    """The project's backups, newest first."""
    return list_backups(app.config.store_folder)


def restore(app: "App", name: str) -> tuple[str, Path | None]:
    """Put a backup (the newest good one where `name` is empty) in the store's place, while no process
    has it open. Gives the backup's name and where the replaced store now lies."""
    return restore_store(
        app.config.store_folder,
        name,
        stamp=stamp_of(SystemSource().now()),
        settings=StoreSettings(lock_timeout=app.config.settings.store.lock_timeout),
    )
