"""Changing a configuration file: comments stay, wrong values are refused, the write is atomic."""

import os
import tempfile
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from croze.app.config import check_value, parse_toml, read_bytes
from croze.app.keypath import Key, field_of, flatten, join, split
from croze.app.settings import ALIASES
from croze.types.errors import ConfigError

TEMPLATE = """\
# croze's configuration; `croze config list` shows every setting and where its value comes from.
# [model]
# model = "anthropic:claude-sonnet-4-5"
# [permissions]
# mode = "ask"            # plan | ask | auto-edit | full
"""


def set_value(path: Path, name: str, value: str) -> Any:
    """Write one setting; gives the value as it will be read. Nothing is written when it is refused."""
    import tomlkit

    key = split(name)
    checked = check_value(key, value, "the command line", text=True)
    if checked is None:
        remove_value(path, name)
        return None
    document = _document(path)
    table: MutableMapping[str, Any] = document
    for part in key[:-1]:
        if part not in table:
            table[part] = tomlkit.table()
        table = table[part]
    _drop_aliases(document, key)
    table[key[-1]] = list(checked) if isinstance(checked, tuple) else checked
    write_checked(path, tomlkit.dumps(document).encode())
    return checked


def remove_value(path: Path, name: str) -> bool:
    """Take a setting out of the file, so that its default holds again; False where it wasn't in it."""
    import tomlkit

    key = split(name)
    field_of(key, "the command line")
    document = _document(path)
    removed = _drop_aliases(document, key)
    table: Any = document
    for part in key[:-1]:
        table = table.get(part, {})
    if key[-1] in table:
        del table[key[-1]]
        removed = True
    if removed:
        write_checked(path, tomlkit.dumps(document).encode())
    return removed


def check_file(path: Path) -> int:
    """Check every key of a configuration file; gives how many it sets."""
    data = read_bytes(path)
    return 0 if data is None else _check(data, path)


def write_checked(path: Path, data: bytes) -> None:
    """Replace a configuration file by `data` in one step, 0600, after checking all of it."""
    _check(data, path)
    target = Path(os.path.realpath(path))
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".config-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise ConfigError(
            f"{path} can't be written: {error.strerror}",
            hint=f"check the space and the rights of {target.parent}",
            code="config_unwritable",
            path=str(path),
            reason=str(error.strerror),
        ) from error


def _check(data: bytes, path: Path) -> int:
    flat = flatten(parse_toml(data, path), str(path))
    for key, value in flat.items():
        check_value(key, value, str(path), text=False)
    return len(flat)


def _document(path: Path) -> Any:
    """The file as an editable document; refused where it is broken already."""
    import tomlkit

    data = read_bytes(path) or b""
    _check(data, path)
    return tomlkit.parse(data.decode("utf-8-sig"))


def _drop_aliases(document: MutableMapping[str, Any], key: Key) -> bool:
    """Take out a role under its other names: one role must not be set twice."""
    dropped = False
    for alias, meant in ALIASES.items():
        if meant != join(key):
            continue
        for table in (document, document.get("model", {})):
            if alias in table:
                del table[alias]
                dropped = True
    return dropped
