"""What a server says that it has: its tools, and what is remembered of them between sessions."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from croze.mcp.doubts import doubts, harmless
from croze.store.files import private_folder

MOST_TOOLS = 500
MOST_SCHEMA = 64_000
"""Characters of a tool's description and schema together; a longer one can't be called."""

_DEEPEST = 12
_CALLABLE = re.compile(r"[A-Za-z0-9_./-]{1,128}\Z")
_FIRST = re.compile(r"(?<=[.!?。])\s|\n")
_encoder = msgspec.json.Encoder(order="deterministic")


class ToolInfo(Struct, frozen=True, omit_defaults=True):
    """A tool as its server describes it, word for word."""

    name: str
    description: str = ""
    schema: dict[str, Any] = {}
    title: str = ""
    hints: dict[str, Any] = {}

    @property
    def said(self) -> str:
        """All that the server says of it, as the lines that are pinned and compared."""
        schema = msgspec.json.format(_encoder.encode(self.schema), indent=1).decode()
        hints = _encoder.encode(self.hints).decode() if self.hints else ""
        return "\n".join(filter(None, [self.title, self.description, schema, hints])) + "\n"

    @property
    def doubts(self) -> tuple[str, ...]:
        """What in it a person should see first."""
        return doubts([self.name, self.title, self.description, self.schema, self.hints])

    @property
    def unusable(self) -> str:
        """Why it can't be called at all; empty where it can."""
        if not _CALLABLE.match(self.name):
            return "its name holds other characters than letters, digits, _ - . and /"
        if len(self.said) > MOST_SCHEMA:
            return f"its description has more than {MOST_SCHEMA:,} characters"
        return ""

    @property
    def summary(self) -> str:
        """Its first sentence, harmless."""
        text = str(harmless(self.description or self.title)).strip()
        first = _FIRST.split(text, maxsplit=1)[0].strip()
        return first if len(first) <= 160 else f"{first[:159]}…"

    def parameters(self) -> dict[str, Any]:
        """Its schema, harmless and of the shape that descriptions are made of: an object with properties, local
        references put in place."""
        definitions = {
            f"#/{key}/{name}": value
            for key in ("$defs", "definitions")
            for name, value in _mapping(self.schema.get(key)).items()
        }
        found = {
            str(name): _inlined(value, definitions, 0)
            for name, value in _mapping(self.schema.get("properties")).items()
        }
        required = self.schema.get("required")
        names = [each for each in required if each in found] if isinstance(required, list) else []
        whole = {"type": "object", "properties": found, **({"required": names} if names else {})}
        shaped: dict[str, Any] = harmless(whole)
        return shaped


class Listing(Struct, frozen=True, omit_defaults=True):
    """The tools of a server at one time."""

    tools: tuple[ToolInfo, ...] = ()
    instructions: str = ""
    server: str = ""
    version: str = ""
    notes: tuple[str, ...] = ()

    def tool(self, name: str) -> ToolInfo | None:
        return next((tool for tool in self.tools if tool.name == name), None)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _inlined(value: object, definitions: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """A parameter's schema as descriptions read it: references put in place, odd shapes left out."""
    if not isinstance(value, dict) or depth > _DEEPEST:
        return {}
    reference = value.get("$ref")
    if isinstance(reference, str):
        found = _inlined(definitions.get(reference), definitions, depth + 4)
        return {**found, **{k: v for k, v in value.items() if k == "description"}}
    out: dict[str, Any] = {}
    for key, inner in value.items():
        match key:
            case "properties" if isinstance(inner, dict):
                out[key] = {str(k): _inlined(v, definitions, depth + 1) for k, v in inner.items()}
            case "items":
                out[key] = _inlined(inner, definitions, depth + 1)
            case "anyOf" | "oneOf" if isinstance(inner, list):
                out[key] = [_inlined(each, definitions, depth + 1) for each in inner]
            case "enum" | "required" if isinstance(inner, list) and inner:
                out[key] = inner
            case "type" if isinstance(inner, str | list):
                out[key] = [str(k) for k in inner] if isinstance(inner, list) else inner
            case "description" if isinstance(inner, str):
                out[key] = inner
            case "const" | "default" | "minimum" | "maximum":
                out[key] = inner
            case _:
                pass
    return out


class ListingCache:
    """Listings by their servers' keys, in the cache folder. One that is missing or damaged is done without."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "mcp"

    def load(self, key: str) -> Listing | None:
        try:
            return msgspec.json.decode((self._folder / f"{key}.json").read_bytes(), type=Listing)
        except (OSError, msgspec.DecodeError, RecursionError):
            return None

    def save(self, key: str, listing: Listing) -> None:
        path = self._folder / f"{key}.json"
        draft = path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            private_folder(self._folder)
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(_encoder.encode(listing))
            os.replace(draft, path)
