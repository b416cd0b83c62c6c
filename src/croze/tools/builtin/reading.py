"""Reading files that are no plain text: documents as lines of text, images for models that see them."""

import asyncio

from msgspec import Struct

from croze.documents.kinds import Kind, is_old_office, kind_of
from croze.documents.pictures import MOST_BYTES, MOST_PIXELS, NAMES, Picture, picture_of
from croze.documents.read import Request
from croze.text.display import safe
from croze.tools.base import ToolContext
from croze.types.parts import Image
from croze.types.tool import Look, ToolResult, View
from croze.workspace.extraction import LARGEST, ExtractionError
from croze.workspace.files import FileStat, sha256

_HEAD = 4096
_NAMES = (".ipynb", ".pdf", ".docx", ".xlsx", ".pptx")
"""Of documents that may look like text."""
_SOURCES: frozenset[Kind] = frozenset({"html"})
"""Kinds that are read as they are written, since they are edited so."""


class Lines(Struct, frozen=True):
    """A document as text. `sha256` is of the file, `note` says what it is and what is left out."""

    stat: FileStat
    sha256: str
    lines: list[str]
    note: str


def is_read_otherwise(path: str) -> bool:
    """Whether a file of this name is no plain text, though its bytes may be."""
    return path.lower().endswith(_NAMES)


async def read_otherwise(ctx: ToolContext, path: str) -> Lines | ToolResult | None:
    """What a file gives that isn't shown as it is written: lines, or a result that says all of it. None
    where it is neither a document nor an image. Raises `PathError`."""
    stat, data = await asyncio.to_thread(_read, ctx, path)
    picture = picture_of(data)
    kind = kind_of(stat.path, data[:_HEAD])
    if picture is not None:
        return await _image(ctx, stat, data, picture)
    if kind is None and is_old_office(data):
        return _refused(
            stat, "a file of an Office before 2007", "Save it in today's format.", "binary"
        )
    if kind is None or kind in _SOURCES:
        return None
    if stat.size > LARGEST:
        hint = "Look into it with a command."
        return _refused(stat, f"too large to be read (at most {LARGEST:,})", hint, "too_large")
    try:
        found = await ctx.documents.text(Request(kind), data, ctx.env)
    except ExtractionError as error:
        return ToolResult(
            ok=False,
            message=f"{stat.path} ({stat.size:,} bytes): {error.message}",
            text=error.hint,
            data={"path": stat.path, "type": kind, "size": stat.size},
            code=error.code,
        )
    title = f" «{found.title}»" if found.title else ""
    notes = "".join(f"; {note}" for note in found.notes)
    note = f" ({found.about}{title}, as text{notes})"
    return Lines(stat, sha256(data), safe(found.text).split("\n"), safe(note, keep_newlines=False))


def _read(ctx: ToolContext, path: str) -> tuple[FileStat, bytes]:
    """All of the file where it is something that is read here, else how it begins."""
    with ctx.workspace.files.open(path) as (stat, stream):
        head = stream.read(_HEAD)
        known = kind_of(stat.path, head) is not None or picture_of(head) is not None
        if not known or stat.size > LARGEST:
            return stat, head
        return stat, head + stream.read(LARGEST + 1 - len(head))


async def _image(ctx: ToolContext, stat: FileStat, data: bytes, picture: Picture) -> ToolResult:
    name = NAMES[picture.media_type]
    size = f"{picture.width:,}×{picture.height:,} pixels, " if picture.width else ""
    facts = {
        "path": stat.path,
        "type": name,
        "size": stat.size,
        "width": picture.width,
        "height": picture.height,
    }
    what = f"{stat.path} is a {name} ({size}{stat.size:,} bytes)"
    if not ctx.vision:
        return ToolResult(
            ok=False,
            message=f"{what}; this model can't see images.",
            text="Ask the user what it shows, or go on without it.",
            data=facts,
            code="no_vision",
        )
    largest = max(picture.width, picture.height)
    if stat.size > MOST_BYTES or largest > MOST_PIXELS:
        limit = f"{MOST_BYTES:,} bytes and {MOST_PIXELS:,} pixels on a side"
        return ToolResult(
            ok=False,
            message=f"{what}: too large to be shown; models take {limit}.",
            text="Make a smaller copy with a command (magick, ffmpeg, sips), where there is one.",
            data=facts,
            code="too_large",
        )
    blob = await ctx.keep(data)
    digest = sha256(data)
    return ToolResult(
        ok=True,
        message=f"{what}.",
        text="The image is shown below the results of this step.",
        view=View(title=f"Read {stat.path} ({name}, {size}{stat.size:,} bytes)"),
        data=facts,
        observed={stat.path: digest},
        blobs=(blob,),
        look=Look(key=f"read:{stat.path}", digest=digest),
        images=(Image(blob=blob, media_type=picture.media_type),),
        image_tokens=picture.tokens,
    )


def _refused(stat: FileStat, why: str, hint: str, code: str) -> ToolResult:
    return ToolResult(
        ok=False,
        message=f"{stat.path} has {stat.size:,} bytes and is {why}.",
        text=hint,
        data={"path": stat.path, "size": stat.size},
        code=code,
    )
