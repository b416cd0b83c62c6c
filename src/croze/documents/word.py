"""Word documents (ECMA-376, WordprocessingML) as Markdown: headings, lists, tables, notes.

Read by hand rather than by python-docx, which passes over content controls and tracked insertions.
"""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from croze.documents.archive import Archive
from croze.documents.values import Extracted, Text, plural, table

MOST_PARAGRAPHS = 200_000
_SKIPPED = frozenset({"Fallback", "del", "moveFrom", "instrText", "delText"})
_WRAPPERS = frozenset({"sdt", "sdtContent", "customXml", "ins", "moveTo", "smartTag"})


def read_word(data: bytes) -> Extracted:
    archive = Archive(data, "Word document")
    main = next(
        (name for kind, name in archive.relations("").values() if kind == "officeDocument"),
        "word/document.xml",
    )
    body = archive.required(main).find("body")
    headings = _headings(archive, main)
    text = Text()
    count = 0
    for block in _blocks(body) if body is not None else ():
        count += 1
        lines = _table(block) if block.tag == "tbl" else _paragraph(block, headings)
        if count > MOST_PARAGRAPHS or not text.add(*lines):
            text.full = True
            break
    for part, heading in (("footnotes", "Footnotes"), ("endnotes", "Endnotes")):
        _notes(archive, main, part, heading, text)
    about = f"Word document, {plural(count, 'paragraph')}"
    return Extracted(text=text.text, about=about, notes=text.notes())


def _blocks(element: Element) -> Iterator[Element]:
    """Paragraphs and tables in their order, also those inside content controls and insertions."""
    for child in element:
        if child.tag in ("p", "tbl"):
            yield child
        elif child.tag in _WRAPPERS:
            yield from _blocks(child)


def _paragraph(paragraph: Element, headings: dict[str, int]) -> list[str]:
    text = _text(paragraph).strip()
    properties = paragraph.find("pPr")
    if not text:
        return [""]
    style = _value(properties, "pStyle")
    level = headings.get(style, 0)
    if level:
        return ["", f"{'#' * level} {text}", ""]
    numbering = properties.find("numPr") if properties is not None else None
    if numbering is not None or style.startswith("List"):
        depth = _value(numbering, "ilvl")
        indent = "  " * (min(int(depth), 8) if depth.isdecimal() else 0)
        mark = "1." if "Number" in style else "-"
        return [f"{indent}{mark} {text}"]
    return [text, ""]


def _table(element: Element) -> list[str]:
    rows = []
    for row in _all(element, "tr"):
        cells = []
        for cell in _all(row, "tc"):
            paragraphs = (_text(each).strip() for each in cell.iter("p"))
            cells.append("\n".join(each for each in paragraphs if each))
        rows.append(cells)
    return ["", *table(rows), ""]


def _all(element: Element, tag: str) -> Iterator[Element]:
    for child in element:
        if child.tag == tag:
            yield child
        elif child.tag in _WRAPPERS:
            yield from _all(child, tag)


def _text(element: Element) -> str:
    return "".join(_pieces(element))


def _pieces(element: Element) -> Iterator[str]:
    for child in element:
        match child.tag:
            case "t":
                yield child.text or ""
            case "tab":
                yield "\t"
            case "br" | "cr":
                yield "\n"
            case "noBreakHyphen":
                yield "-"
            case "footnoteReference" | "endnoteReference":
                yield f"[^{child.get('id', '')}]"
            case "p":  # a text box inside of a paragraph
                yield from (*_pieces(child), "\n")
            case "pPr" | "rPr" | "sectPr":
                pass
            case tag if tag not in _SKIPPED:
                yield from _pieces(child)


def _notes(archive: Archive, main: str, part: str, heading: str, text: Text) -> None:
    name = next((n for kind, n in archive.relations(main).values() if kind == part), "")
    root = archive.xml(name) if name else None
    found = []
    for note in root if root is not None else ():
        said = _text(note).strip()
        if said and note.get("type") in (None, "normal"):
            found.append(f"[^{note.get('id', '')}]: {said}")
    if found:
        text.add("", f"## {heading}", "", *found)


def _headings(archive: Archive, main: str) -> dict[str, int]:
    """Style id → level of the heading that it makes."""
    name = next((n for kind, n in archive.relations(main).values() if kind == "styles"), "")
    root = archive.xml(name) if name else None
    found = {}
    for style in root.iter("style") if root is not None else ():
        title = _value(style, "name").lower()
        words = title.split()
        if title == "title":
            found[style.get("styleId", "")] = 1
        elif len(words) == 2 and words[0] == "heading" and words[1].isdecimal():
            found[style.get("styleId", "")] = min(int(words[1]), 6)
    return found


def _value(element: Element | None, tag: str) -> str:
    found = element.find(tag) if element is not None else None
    return "" if found is None else found.get("val", "")
