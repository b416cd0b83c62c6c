"""Bring a backup back in place of the store; what stood there is kept beside it."""

import os
import shutil
from pathlib import Path

from croze.store.backup import FOLDER, list_backups
from croze.store.db import (
    DEFAULTS,
    ENGINE_ERRORS,
    StoreSettings,
    examine,
    lock_store,
    set_aside,
    translate,
)
from croze.store.files import storage_error, sync_folder
from croze.types.errors import LockTimeout, StoreError


def restore(
    folder: Path, name: str = "", *, stamp: str, settings: StoreSettings = DEFAULTS
) -> tuple[str, Path | None]:
    """Put the backup `name` (the newest good one where it is empty) in the store's place.

    `stamp` goes into the name of the replaced file. Gives the backup's name and where the replaced
    store lies (None where there was none). Raises `StoreError` where there is no such backup or none
    is good, `LockTimeout` while anybody has the store open.
    """
    lock = lock_store(folder, settings)
    try:
        if not lock.whole:
            raise LockTimeout(
                f"{folder} is in use by another croze",
                hint="End it, then restore.",
                path=str(folder),
            )
        chosen = _choose(folder, name)
        path = folder / "log.db"
        copy = folder / "log.db.new"
        copy.unlink(missing_ok=True)
        os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        copy.chmod(0o600)
        shutil.copyfile(folder / FOLDER / chosen, copy)
        with copy.open("rb") as file:
            os.fsync(file.fileno())
        aside = None
        if path.exists() or Path(f"{path}-wal").exists():
            aside = set_aside(path, "replaced", stamp)
        copy.rename(path)
        sync_folder(folder)
        return chosen, aside
    except OSError as error:
        raise storage_error(error, folder) from error
    finally:
        lock.close()


def _choose(folder: Path, name: str) -> str:
    names = [backup.name for backup in list_backups(folder)]
    if name and name not in names:
        raise StoreError(
            f"There is no backup {name!r} in {folder / FOLDER}",
            hint=f"There are: {', '.join(names)}" if names else "There are no backups at all.",
            code="backup_not_found",
        )
    problems = []
    for candidate in [name] if name else names:
        try:
            examine(folder / FOLDER / candidate, thorough=True)
        except (StoreError, *ENGINE_ERRORS) as error:
            found = error if isinstance(error, StoreError) else translate(error, None)
            problems.append(f"{candidate}: {found.message}")
            continue
        return candidate
    raise StoreError(
        f"No good backup in {folder / FOLDER}: {'; '.join(problems) or 'there is none'}",
        hint="The store was left as it is.",
        code="backup_not_found",
    )
