"""A folder that is there only for as long as somebody needs it, unless something is put into it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def placeholder(path: str | os.PathLike[str], mode: int = 0o755) -> Iterator[None]:
    """Hold the folder, made where it is missing; whoever leaves last removes it if it is empty.

    While anybody holds the folder it is locked, also against those of other processes: removing it would
    take it away from a command that is running there.
    """
    while True:
        with suppress(FileExistsError):
            os.mkdir(path, mode)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # whoever made it has removed it again
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
                break
        os.close(descriptor)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
                os.rmdir(path)
        os.close(descriptor)
