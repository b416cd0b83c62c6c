"""The head of a session's requests: system text and core tools, rendered once and frozen by hash."""

import os
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from croze.context.environment import SystemInfo
from croze.context.roster import team_inputs
from croze.context.sections import PARTS, HeadInputs, assemble
from croze.dialect.base import Dialect
from croze.text.tokens import estimate
from croze.types.agent import AgentSpec
from croze.types.context import Section
from croze.types.team import Roster
from croze.types.tool import ToolDoc

KEPT = 64
"""Rendered heads that stay in the cache folder; the oldest go."""

_encoder = msgspec.json.Encoder(order="deterministic")


class Head(Struct, frozen=True):
    """What stands at the top of every request of a session.

    `sections` account for `system` and, where the protocol sends schemas, for `core`; `tokens` is their
    sum (an estimate). `digest` is the SHA-256, in hex, of `encode()`.
    """

    system: str
    core: tuple[ToolDoc, ...]
    sections: tuple[Section, ...]
    tokens: int
    digest: str

    def encode(self) -> bytes:
        """The stored form, for the blob table: deterministic JSON, the digest left out."""
        return _encoder.encode(_Stored(self.system, self.core, self.sections, self.tokens))

    @staticmethod
    def decode(data: bytes) -> "Head":
        """The head of a stored form; raises `msgspec.DecodeError` where it is none."""
        stored = msgspec.json.decode(data, type=_Stored)
        return Head(
            stored.system, stored.core, stored.sections, stored.tokens, sha256(data).hexdigest()
        )


class _Stored(Struct, frozen=True):
    system: str
    core: tuple[ToolDoc, ...]
    sections: tuple[Section, ...]
    tokens: int


class _Rendered(Struct, frozen=True):
    """A cache file: the rendered parts, and the SHA-256 of their JSON, so that damage is seen."""

    texts: tuple[str, ...]
    check: str


def build_head(
    spec: AgentSpec,
    core: Sequence[ToolDoc],
    others: Sequence[ToolDoc],
    dialect: Dialect,
    system: SystemInfo,
    *,
    cache: Path | None,
    roster: Roster | None = None,
    servers: Sequence[str] = (),
) -> Head:
    """The head for an agent with these tools, which can call those of the `roster`. `servers` are the
    lines of the MCP servers. The same arguments
    give the same bytes.

    Rendered parts are kept in `heads/` of the folder `cache` under the hash of everything they are rendered from
    (templates included), so that the next start needs no template engine. A damaged or missing file is
    made anew, a folder that can't be written is done without.
    """
    tools = frozenset(doc.name for doc in (*core, *others))
    team = None
    if roster is not None:
        known = frozenset(doc.name for doc in core)
        team = team_inputs(roster, spec, tools=tools, core=known, dialect=dialect)
    inputs = HeadInputs(
        role=spec.prompt,
        advertised=dialect.advertise(core, others),
        tools=tools,
        system=system,
        demand_completion=spec.demand_completion,
        team=team,
        servers=tuple(servers),
    )
    text, sections = assemble(_render(inputs, cache))
    if dialect.name == "native":
        sections = (*sections, _account_of_schemas(core))
    tokens = sum(section.tokens for section in sections)
    stored = _Stored(text, tuple(core), sections, tokens)
    digest = sha256(_encoder.encode(stored)).hexdigest()
    return Head(stored.system, stored.core, stored.sections, stored.tokens, digest)


def _account_of_schemas(core: Sequence[ToolDoc]) -> Section:
    """What both wires send of each tool, give or take a few characters of form."""
    sent = _encoder.encode(
        [
            {
                "name": doc.name,
                "description": doc.description or doc.summary,
                "parameters": doc.parameters,
            }
            for doc in core
        ]
    )
    return Section(
        key="tools",
        layer="system",
        place="head",
        tokens=estimate(sent.decode()),
        reason="the core tools' schemas",
        digest=sha256(sent).hexdigest(),
    )


def _render(inputs: HeadInputs, cache: Path | None) -> tuple[str, ...]:
    if cache is None:
        return tuple(part.prompt.prompt(inputs) for part in PARTS)
    made_of = [(part.key, part.prompt.source, part.prompt(inputs)) for part in PARTS]
    path = cache / "heads" / f"{sha256(_encoder.encode(made_of)).hexdigest()}.json"
    texts = _load(path)
    if texts is None:
        texts = tuple(part.prompt.prompt(inputs) for part in PARTS)
        with suppress(OSError):
            _save(path, texts)
    return texts


def _load(path: Path) -> tuple[str, ...] | None:
    try:
        rendered = msgspec.json.decode(path.read_bytes(), type=_Rendered)
    except (OSError, msgspec.DecodeError):
        return None
    return rendered.texts if rendered.check == _check(rendered.texts) else None


def _save(path: Path, texts: tuple[str, ...]) -> None:
    """Write a cache file whole or not at all, readable for the user only."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    data = _encoder.encode(_Rendered(texts, _check(texts)))
    draft = path.with_suffix(f".{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.replace(draft, path)
    kept = sorted(path.parent.glob("*.json"), key=lambda entry: entry.stat().st_mtime_ns)
    for old in kept[:-KEPT]:
        old.unlink(missing_ok=True)


def _check(texts: tuple[str, ...]) -> str:
    return sha256(_encoder.encode(texts)).hexdigest()
