"""PowerPoint files (ECMA-376, PresentationML) as Markdown: a heading a slide, its text, tables and notes."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from croze.documents.archive import Archive
from croze.documents.values import Extracted, Text, plural, table

MOST_SLIDES = 2_000


def read_slides(data: bytes) -> Extracted:
    archive = Archive(data, "PowerPoint file")
    main = next(
        (name for kind, name in archive.relations("").values() if kind == "officeDocument"),
        "ppt/presentation.xml",
    )
    presentation = archive.required(main)
    relations = archive.relations(main)
    text, notes, count = Text(), [], 0
    for each in presentation.iter("sldId"):
        _, member = relations.get(each.get("r:id", ""), ("", ""))
        slide = archive.xml(member)
        if slide is None:
            continue
        if count >= MOST_SLIDES:
            notes.append(f"slides after the first {MOST_SLIDES:,} are left out")
            break
        count += 1
        hidden = slide.get("show") in ("0", "false")
        heading = f"## Slide {count}{' (hidden)' if hidden else ''}"
        text.add("", heading, "", *_shapes(slide))
        _, noted = next(
            (found for found in archive.relations(member).values() if found[0] == "notesSlide"),
            ("", ""),
        )
        said = archive.xml(noted)
        if said is not None:
            lines = [line for line in _notes(said) if line.strip()]
            text.add(*(["", "Notes:", *lines] if lines else []))
        if text.full:
            break
    about = f"PowerPoint file, {plural(count, 'slide')}"
    return Extracted(text=text.text, about=about, notes=(*notes, *text.notes()))


def _shapes(element: Element) -> Iterator[str]:
    """Text of shapes and tables, in the order of the file."""
    for child in element:
        if child.tag == "sp":
            placeholder = next(child.iter("ph"), None)
            kind = placeholder.get("type", "") if placeholder is not None else ""
            if kind in ("sldNum", "dt", "ftr"):
                continue
            paragraphs = list(_paragraphs(child))
            if kind in ("title", "ctrTitle"):
                paragraphs = [f"### {line.strip()}" for line in paragraphs]
            yield from paragraphs
            yield ""
        elif child.tag == "tbl":
            yield from (*table(list(_cells(child))), "")
        elif child.tag != "Fallback":
            yield from _shapes(child)


def _cells(element: Element) -> Iterator[list[str]]:
    for row in element.iter("tr"):
        yield ["\n".join(_paragraphs(cell)) for cell in row.iter("tc")]


def _paragraphs(element: Element) -> Iterator[str]:
    for paragraph in element.iter("p"):
        pieces = []
        for child in paragraph.iter():
            if child.tag == "t":
                pieces.append(child.text or "")
            elif child.tag == "br":
                pieces.append("\n")
        line = "".join(pieces).strip()
        properties = paragraph.find("pPr")
        level = properties.get("lvl", "0") if properties is not None else "0"
        if line:
            indent = "  " * min(int(level), 8) if level.isdecimal() else ""
            yield f"{indent}- {line}" if indent else line


def _notes(root: Element) -> Iterator[str]:
    for shape in root.iter("sp"):
        placeholder = next(shape.iter("ph"), None)
        if placeholder is not None and placeholder.get("type") == "body":
            yield from _paragraphs(shape)
