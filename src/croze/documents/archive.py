"""Office files as they are packed: a ZIP archive of XML, read within bounds and without trust.

Nothing is unpacked to a disk, so names of members lead nowhere. XML with a document type is refused:
that is where entities, which can grow without bounds or read files, are declared; Office writes none.
"""

import io
import posixpath
import zipfile
import zlib
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from croze.documents.values import Unreadable

MOST_MEMBERS = 20_000
MOST_BYTES = 256 << 20
"""Of all members unpacked."""
MOST_MEMBER = 96 << 20
MOST_DEPTH = 500


class Archive:
    """The members of an Office file."""

    def __init__(self, data: bytes, what: str) -> None:
        self._what = what
        if data.startswith(b"\xd0\xcf\x11\xe0"):
            raise Unreadable(
                "encrypted",
                f"it is encrypted, or a {what} of an Office before 2007.",
                "Save it without a password, or in today's format.",
            )
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError, EOFError, NotImplementedError) as error:
            raise Unreadable("damaged", f"it is no whole {what}: {error}") from error
        members = self._zip.infolist()
        if len(members) > MOST_MEMBERS:
            raise Unreadable("too_large", f"it holds {len(members):,} files.")
        size = sum(member.file_size for member in members)
        if size > MOST_BYTES:
            raise Unreadable(
                "too_large", f"it unpacks to {size:,} bytes; at most {MOST_BYTES:,} are read."
            )
        if any(member.flag_bits & 1 for member in members):
            raise Unreadable("encrypted", "it is encrypted.", "Save it without a password.")
        self.names = frozenset(member.filename for member in members)

    def xml(self, name: str) -> Element | None:
        """The XML of a member, None where there is no such member."""
        if name not in self.names:
            return None
        try:
            with self._zip.open(name) as stream:
                data = stream.read(MOST_MEMBER + 1)
        except (
            zipfile.BadZipFile,
            zlib.error,
            OSError,
            EOFError,
            NotImplementedError,
            RuntimeError,
        ) as error:
            raise Unreadable("damaged", f"{name} in it is damaged: {error}") from error
        if len(data) > MOST_MEMBER:
            raise Unreadable("too_large", f"{name} in it is larger than {MOST_MEMBER:,} bytes.")
        return parse_xml(data, name)

    def required(self, name: str) -> Element:
        found = self.xml(name)
        if found is None:
            raise Unreadable("damaged", f"it is no {self._what}: {name} is missing.")
        return found

    def relations(self, name: str) -> dict[str, tuple[str, str]]:
        """What a member refers to: id → (the last word of its type, the other member's name)."""
        folder, _, last = name.rpartition("/")
        root = self.xml(f"{folder}/_rels/{last}.rels" if folder else f"_rels/{last}.rels")
        found: dict[str, tuple[str, str]] = {}
        for each in root if root is not None else ():
            if each.get("TargetMode") == "External":
                continue
            target = each.get("Target", "")
            path = target[1:] if target.startswith("/") else posixpath.join(folder, target)
            kind = each.get("Type", "").rpartition("/")[2]
            found[each.get("Id", "")] = kind, posixpath.normpath(path)
        return found


def parse_xml(data: bytes, name: str) -> Element:
    """Parse XML. Names lose their namespaces, but for attributes that refer to other members: these
    begin with `r:`. Raises `Unreadable`."""
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MOST_DEPTH:
            raise Unreadable("damaged", f"{name} in it is nested deeper than {MOST_DEPTH} levels.")
        plain = {_attribute(key): value for key, value in attributes.items()}
        builder.start(tag.rpartition("}")[2], plain)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag.rpartition("}")[2])

    def doctype(*_: object) -> None:
        raise Unreadable("damaged", f"{name} in it declares a document type, which isn't read.")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(data, True)
        return builder.close()
    except (expat.ExpatError, AssertionError, ValueError) as error:
        raise Unreadable("damaged", f"{name} in it is damaged: {error}") from error


def _attribute(name: str) -> str:
    namespace, _, local = name.rpartition("}")
    return f"r:{local}" if namespace.endswith("/relationships") else local
