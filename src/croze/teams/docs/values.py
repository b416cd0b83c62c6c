"""What the documentation pipeline works with: options, the brief, pages, and how far it is."""

from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct

from croze.teams.state import FlowState

Stage = Literal["create", "structure", "detail", "index"]

IndexState = Literal["", "written", "unchanged", "kept"]

OUT = "docs/reference"
INDEX = "index.md"
AT_ONCE = 5
"""Pages that are written at the same time."""


class DocsOptions(Struct, frozen=True, omit_defaults=True):
    """What is to be made. `out` is the folder, relative to the project; `stage` one stage alone; `sources`
    are globs that a page's sources must match (none: every file may be one). `review` puts the structure
    to the user, `accept` takes one that waits for that; `force` writes over pages that were edited by
    hand. `language` is the pages'."""

    out: str = OUT
    stage: Stage | None = None
    prompt: str = ""
    sources: tuple[str, ...] = ()
    language: str = ""
    review: bool = False
    accept: bool = False
    force: bool = False


class Brief(Struct, frozen=True):
    """What the set is about: for whom it is, what it covers and what it leaves out."""

    title: str
    summary: str
    audience: str
    scope: str


class Page(Struct, frozen=True):
    """A page to be written: its path below the set's folder, and the files that it is written from,
    relative to the project."""

    path: str
    title: str
    purpose: str
    sources: tuple[str, ...]


class PageDone(Struct, frozen=True, omit_defaults=True):
    """What became of a page. `written`; `unchanged`: nothing it depends on has changed; `kept`: somebody
    else edited it; `failed`: `note` says why. `child` is the session that wrote it, `sha256` how the page
    stands."""

    path: str
    state: Literal["written", "unchanged", "kept", "failed"]
    sha256: str = ""
    child: str = ""
    note: str = ""


class LinkNote(Struct, frozen=True, omit_defaults=True):
    """A broken link and what became of it: `mended` by its writer, `removed` (its text stays), or `left`
    in a page that isn't ours to change."""

    page: str
    target: str
    why: str
    state: Literal["mended", "removed", "left"] = "left"


class PageLinks(Struct, frozen=True, omit_defaults=True):
    """What became of a page's broken links, and how the page stands now."""

    path: str
    sha256: str = ""
    notes: tuple[LinkNote, ...] = ()


@dataclass(slots=True)
class DocsState(FlowState):
    """The pipeline's shared state. `known` is the digest of the project's listing that the structure was
    made from, `why` the reason for a new one, `wish` what the user says of the last. `gone` are pages that
    went with the old one."""

    options: DocsOptions = field(default_factory=DocsOptions)
    brief: Brief | None = None
    pages: tuple[Page, ...] = ()
    known: str = ""
    why: str = ""
    wish: str = ""
    gone: tuple[str, ...] = ()
    done: tuple[PageDone, ...] = ()
    links: tuple[LinkNote, ...] = ()
    index: IndexState = ""
