"""Keys of model providers kept in a file that only the user can read; the environment comes first."""

import os
import stat
from pathlib import Path

from croze.app.config import MAX_FILE, parse_toml
from croze.types.errors import ConfigError


class Secrets(dict[str, str]):
    """Keys by the name of their environment variable; their text never shows in a repr."""

    def __repr__(self) -> str:
        return f"<keys: {', '.join(sorted(self)) or 'none'}>"


def stored_keys(path: Path) -> Secrets:
    """The keys of `path`, a TOML file of names and keys; none where it doesn't exist.

    A name is the environment variable (`OPENAI_API_KEY`) or the provider's (`openai`). Raises
    `ConfigError` with the fix where others can read the file, or where it can't be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return Secrets()
    except OSError as error:
        raise _refused(path, os.strerror(error.errno or 0), f"chmod 600 {path}") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise _refused(path, "it is not a regular file", f"make {path} a plain file")
    with os.fdopen(descriptor, "rb") as file:
        if status.st_mode & 0o077:
            raise _refused(path, "other users can read it", f"chmod 600 {path}")
        data = file.read(MAX_FILE)
    found = Secrets()
    for name, value in parse_toml(data, path).items():
        if not isinstance(value, str) or not value.strip():
            raise _refused(path, f"{name} is not a text", f'write {name} = "..." in {path}')
        found[name if name.isupper() else _variable(name)] = value.strip()
    return found


def _variable(provider: str) -> str:
    return f"{provider.upper().replace('-', '_')}_API_KEY"


def _refused(path: Path, reason: str, fix: str) -> ConfigError:
    return ConfigError(
        f"the keys in {path} are not used: {reason}",
        hint=f"fix: {fix}",
        code="keys_refused",
        path=str(path),
        reason=reason,
        fix=fix,
    )
