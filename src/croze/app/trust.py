"""Which projects' own configuration may act: an exact list of file hashes in the user's state folder.

The file is JSON: {"<project root>": {"<file below the root>": "<SHA-256 in hex>"}}.
"""

import hashlib
import json
from pathlib import Path

from croze.types.errors import ConfigError


def is_trusted(trusted_file: Path, root: Path, files: dict[str, bytes]) -> bool:
    """Whether the user trusts exactly these contents of the project at `root`."""
    try:
        raw = trusted_file.read_bytes()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unreadable(trusted_file, str(error)) from error
    try:
        projects = json.loads(raw)
        known = projects.get(str(root), {})
        return bool(files) and all(
            known.get(name) == hashlib.sha256(data).hexdigest() for name, data in files.items()
        )
    except (ValueError, AttributeError) as error:
        raise _unreadable(trusted_file, "not a JSON object of objects") from error


def _unreadable(path: Path, reason: str) -> ConfigError:
    return ConfigError(
        f"the list of trusted projects can't be read: {path}: {reason}",
        hint=f"repair or remove {path}",
        code="trust_unreadable",
        path=str(path),
        reason=reason,
    )
