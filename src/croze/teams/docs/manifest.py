"""What a documentation set was made from: a file in its folder, by which the next run sees what changed."""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from croze.teams.docs.values import Brief, DocsOptions, Page
from croze.types.errors import CrozeError

NAME = ".croze-docs.json"
VERSION = 1


class Entry(Struct, frozen=True):
    """A page and where it comes from: hashes of what was written, of its sources (path → SHA-256), of what
    it was asked to be. `before` is what stood there then: the entry is kept before the page."""

    path: str
    sha256: str
    sources: dict[str, str]
    spec: str
    before: str = ""

    def is_ours(self, digest: str) -> bool:
        """Whether a page with this digest is as it was written."""
        return digest in (self.sha256, self.before)


class Manifest(Struct, frozen=True):
    """`known` is the digest of the project's listing that the structure was made from; `index` the SHA-256
    of the index page. `brief` None: no stage has run."""

    version: int = VERSION
    prompt: str = ""
    globs: tuple[str, ...] = ()
    language: str = ""
    known: str = ""
    brief: Brief | None = None
    pages: tuple[Page, ...] = ()
    written: tuple[Entry, ...] = ()
    index: str = ""

    def entry(self, path: str) -> Entry | None:
        return next((each for each in self.written if each.path == path), None)


def read_manifest(data: bytes | None, path: str) -> Manifest:
    """The manifest in `data`; an empty one where there is none. Raises CrozeError for one that can't be
    read: nobody knows then which pages are whose."""
    if data is None:
        return Manifest()
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except msgspec.DecodeError as error:
        raise CrozeError(
            f"{path} can't be read: {error}.",
            hint="Bring it back from version control, or delete it: then all pages count as yours.",
            code="docs_manifest",
            path=path,
        ) from error
    if found.version > VERSION:
        raise CrozeError(
            f"{path} was written by a newer croze.",
            hint="Update croze, or delete it: then all pages count as yours.",
            code="docs_manifest",
            path=path,
        )
    return found


def encoded(manifest: Manifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def asked_as(options: DocsOptions, manifest: Manifest) -> bool:
    """Whether the options that shape the whole set are those of the last run."""
    return (options.prompt, options.sources, options.language) == (
        manifest.prompt, manifest.globs, manifest.language,
    )  # fmt: skip


def spec_of(page: Page, brief: Brief, options: DocsOptions, form: str) -> str:
    """The digest of what a page is asked to be; `form` is the task's wording, so that a new one counts."""
    asked = (form, options.language, options.prompt, brief, page)
    return hashlib.sha256(msgspec.json.encode(asked)).hexdigest()


def listing_digest(folders: Mapping[str, Sequence[str]], out: str) -> str:
    """Tells one listing of the project from another: by its names, without the set's folder and what leads
    to nothing but that."""
    way = {out.rpartition("/")[0] or ".": f"{out.rpartition('/')[2]}/"}
    while "." not in way:
        top = next(reversed(way))
        way[top.rpartition("/")[0] or "."] = f"{top.rpartition('/')[2]}/"
    rows = []
    for path, names in folders.items():
        if path == out or path.startswith(f"{out}/"):
            continue
        kept = sorted(name for name in names if name != way.get(path))
        if kept or path not in way:
            rows.append((path, *kept))
    return hashlib.sha256(msgspec.json.encode(sorted(rows))).hexdigest()


def with_entry(manifest: Manifest, entry: Entry) -> Manifest:
    """The manifest with a page's new entry."""
    others = tuple(each for each in manifest.written if each.path != entry.path)
    return replace(manifest, written=tuple(sorted((*others, entry), key=_path)))


def without_pages(manifest: Manifest, paths: Sequence[str]) -> Manifest:
    return replace(
        manifest, written=tuple(each for each in manifest.written if each.path not in paths)
    )


def _path(entry: Entry) -> str:
    return entry.path
