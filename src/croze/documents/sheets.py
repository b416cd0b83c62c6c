"""Excel workbooks (ECMA-376, SpreadsheetML) as one Markdown table a sheet, dates as dates.

Number formats 14 to 22 and 45 to 47 are dates and times (ECMA-376 part 1, 18.8.30).
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from xml.etree.ElementTree import Element

from croze.documents.archive import Archive
from croze.documents.values import Extracted, Text, plural

MOST_ROWS = 50_000
MOST_COLUMNS = 256
_DATES = frozenset({*range(14, 23), *range(45, 48)})
_NOT_FORMAT = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
_DATE_LETTERS = re.compile(r"[ymdhs]", re.IGNORECASE)
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})\Z")


def read_sheets(data: bytes) -> Extracted:
    archive = Archive(data, "Excel workbook")
    main = next(
        (name for kind, name in archive.relations("").values() if kind == "officeDocument"),
        "xl/workbook.xml",
    )
    workbook = archive.required(main)
    relations = archive.relations(main)
    by_kind = dict(relations.values())
    shared = _shared(archive.xml(by_kind.get("sharedStrings", "")))
    dates = _date_styles(archive.xml(by_kind.get("styles", "")))
    since = _epoch(workbook)
    text, notes, count, used = Text(), [], 0, 0
    for sheet in workbook.iter("sheet"):
        count += 1
        name, hidden = sheet.get("name", ""), sheet.get("state", "visible") != "visible"
        _, member = relations.get(sheet.get("r:id", ""), ("", ""))
        root = archive.xml(member)
        text.add("", f"## {name}{' (hidden)' if hidden else ''}", "")
        for at, row in enumerate(_rows(root, shared, dates, since) if root is not None else ()):
            if used >= MOST_ROWS:
                notes.append(f"rows after the first {MOST_ROWS:,} are left out")
                break
            used += 1
            text.add("| " + " | ".join(row) + " |")
            if at == 0:
                text.add("|" + " --- |" * len(row))
        if text.full or notes:
            break
    about = f"Excel workbook, {plural(count, 'sheet')}"
    return Extracted(text=text.text, about=about, notes=(*notes, *text.notes()))


def _rows(
    root: Element, shared: list[str], dates: frozenset[int], since: datetime
) -> Iterator[list[str]]:
    """The rows that hold something, each up to its last cell with a value."""
    for row in root.iter("row"):
        cells: dict[int, str] = {}
        column = -1
        for cell in row.iter("c"):
            found = _REFERENCE.match(cell.get("r", ""))
            column = _column(found[1]) if found else column + 1
            if column >= MOST_COLUMNS:
                break
            value = _value(cell, shared, dates, since)
            if value:
                cells[column] = value.replace("|", "\\|").replace("\n", " / ")
        if cells:
            yield [cells.get(at, "") for at in range(max(cells) + 1)]


def _value(cell: Element, shared: list[str], dates: frozenset[int], since: datetime) -> str:
    kind, found, formula = cell.get("t", "n"), cell.find("v"), cell.find("f")
    raw = (found.text or "") if found is not None else ""
    if kind == "s":
        return shared[int(raw)] if raw.isdecimal() and int(raw) < len(shared) else ""
    if kind == "inlineStr":
        return "".join(each.text or "" for each in cell.iter("t"))
    if kind == "b":
        return "TRUE" if raw == "1" else "FALSE"
    if not raw and formula is not None and formula.text:
        return f"={formula.text}"
    style = cell.get("s", "0")
    if kind == "n" and raw and style.isdecimal() and int(style) in dates:
        return _date(raw, since)
    return raw.strip()


def _date(raw: str, since: datetime) -> str:
    try:
        days = float(raw)
        moment = since + timedelta(seconds=round(days * 86_400))
    except (ValueError, OverflowError):
        return raw
    if days < 1:
        return moment.strftime("%H:%M:%S")
    return moment.strftime("%Y-%m-%d" if days.is_integer() else "%Y-%m-%d %H:%M:%S")


def _epoch(workbook: Element) -> datetime:
    """Day 0. Excel counts a 29 February 1900 that never was, so days after it begin a day earlier."""
    properties = workbook.find("workbookPr")
    since_1904 = properties is not None and properties.get("date1904") in ("1", "true")
    return datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 30)  # noqa: DTZ001


def _column(letters: str) -> int:
    at = 0
    for letter in letters:
        at = at * 26 + ord(letter) - 64
    return at - 1


def _shared(root: Element | None) -> list[str]:
    if root is None:
        return []
    return ["".join(_strings(each)) for each in root.iter("si")]


def _strings(item: Element) -> Iterator[str]:
    """The text of a shared string, its phonetic hints left out."""
    for child in item:
        if child.tag == "t":
            yield child.text or ""
        elif child.tag == "r":
            yield from _strings(child)


def _date_styles(root: Element | None) -> frozenset[int]:
    """The indexes of the cell styles that show a number as a date or a time."""
    if root is None:
        return frozenset()
    own = {
        each.get("numFmtId", ""): _is_date(each.get("formatCode", ""))
        for each in root.iter("numFmt")
    }
    formats = root.find("cellXfs")
    found = set()
    for at, each in enumerate(formats if formats is not None else ()):
        number = each.get("numFmtId", "0")
        if own.get(number, number.isdecimal() and int(number) in _DATES):
            found.add(at)
    return frozenset(found)


def _is_date(form: str) -> bool:
    return _DATE_LETTERS.search(_NOT_FORMAT.sub("", form)) is not None
