"""Word, Excel and PowerPoint files as their own writers make them, and as nobody should."""

import datetime
import io

import docx
import openpyxl
import pptx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from croze.documents.archive import Archive
from croze.documents.archive import parse_xml as parse
from croze.documents.sheets import read_sheets
from croze.documents.slides import read_slides
from croze.documents.values import Unreadable
from croze.documents.word import read_word
from tests.documents.made import archive, encrypted

W = "xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'"


def saved(document) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def word(body: str, **members: str) -> bytes:
    return archive(
        {"word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>", **members}
    )


def test_a_word_document_keeps_headings_lists_and_tables_in_their_order():
    document = docx.Document()
    document.add_heading("The barrel", 0)
    document.add_heading("Staves", 1)
    document.add_paragraph("Oak, and\tnothing else.")
    document.add_paragraph("first", style="List Bullet")
    document.add_paragraph("second", style="List Number")
    table = document.add_table(2, 2)
    for at, text in enumerate(["name", "width", "a|b", "1\n2"]):
        table.cell(at // 2, at % 2).text = text
    document.add_heading("Deep", 3)
    found = read_word(saved(document))
    lines = [line for line in found.text.split("\n") if line]
    assert lines == [
        "# The barrel",
        "# Staves",
        "Oak, and\tnothing else.",
        "- first",
        "1. second",
        "| name | width |",
        "| --- | --- |",
        "| a\\|b | 1 / 2 |",
        "### Deep",
    ]
    assert found.about.startswith("Word document")


def test_a_word_document_keeps_content_controls_and_insertions_and_leaves_deletions_out():
    document = docx.Document()
    body = document.element.body
    for xml in (
        "<w:sdt {0}><w:sdtContent><w:p><w:r><w:t>in a control</w:t></w:r></w:p></w:sdtContent></w:sdt>",
        "<w:p {0}><w:ins><w:r><w:t>inserted</w:t></w:r></w:ins><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>",
        "<w:p {0}><w:hyperlink><w:r><w:t>linked</w:t></w:r></w:hyperlink></w:p>",
    ):
        body.insert(0, parse_xml(xml.format(nsdecls("w"))))
    text = read_word(saved(document)).text
    assert "in a control" in text
    assert "inserted" in text
    assert "linked" in text
    assert "gone" not in text


def test_a_workbook_gives_a_table_a_sheet_with_dates_as_dates():
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Costs"
    sheet.append(["what", "when", "how much", "so?"])
    sheet.append(["oak|elm", datetime.datetime(2024, 2, 29, 12, 30), 1.5, True])
    sheet.append([None, datetime.date(1999, 12, 31), "=C2*2", "a\nb"])
    sheet["A4"] = 0.25
    sheet["A4"].number_format = "0.00%"
    other = book.create_sheet("Empty & hidden")
    other.sheet_state = "hidden"
    found = read_sheets(saved(book))
    assert found.text.split("\n") == [
        "## Costs",
        "",
        "| what | when | how much | so? |",
        "| --- | --- | --- | --- |",
        "| oak\\|elm | 2024-02-29 12:30:00 | 1.5 | TRUE |",
        "|  | 1999-12-31 | =C2*2 | a / b |",
        "| 0.25 |",
        "",
        "## Empty & hidden (hidden)",
    ]
    assert found.about == "Excel workbook, 2 sheets"


def test_a_workbook_with_very_many_rows_says_what_it_leaves_out(monkeypatch):
    monkeypatch.setattr("croze.documents.sheets.MOST_ROWS", 3)
    book = openpyxl.Workbook()
    for at in range(10):
        book.active.append([at])
    found = read_sheets(saved(book))
    assert found.notes == ("rows after the first 3 are left out",)
    assert "| 2 |" in found.text
    assert "| 3 |" not in found.text


def test_slides_come_in_their_order_with_titles_tables_and_notes():
    show = pptx.Presentation()
    for number in (1, 2):
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = f"Title {number}"
        slide.placeholders[1].text = "body\nmore"
    table = slide.shapes.add_table(2, 2, 0, 0, 10, 10).table
    table.cell(0, 0).text = "k"
    table.cell(1, 1).text = "v"
    slide.notes_slide.notes_text_frame.text = "say this"
    ids = show.slides._sldIdLst
    ids.insert(0, ids[1])
    found = read_slides(saved(show))
    lines = [line for line in found.text.split("\n") if line]
    assert lines == [
        "## Slide 1", "### Title 2", "body", "more", "| k |  |", "| --- | --- |", "|  | v |", "Notes:", "say this",
        "## Slide 2", "### Title 1", "body", "more",
    ]  # fmt: skip


ENTITIES = '<!DOCTYPE x [<!ENTITY a "{}">{}]><x>&i;</x>'.format(
    "ha" * 100,
    "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    ),
)


@pytest.mark.parametrize("read", [read_word, read_sheets, read_slides])
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "damaged"),
        (b"PK\x03\x04 and nothing", "damaged"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 500, "encrypted"),
        (archive({}), "damaged"),
        (archive({"x": "y"}), "damaged"),
        (encrypted(archive({"word/document.xml": "<x/>"})), "encrypted"),
    ],
)
def test_a_file_that_is_none_is_told(read, data, code):
    with pytest.raises(Unreadable) as caught:
        read(data)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "xml",
    [
        ENTITIES,
        '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>',
        '<!DOCTYPE x SYSTEM "http://127.0.0.1/x.dtd"><x/>',
        ENTITIES.encode("utf-16"),
        "<x>&undefined;</x>",
        "<x>",
        "",
        "<x/><y/>",
        "<a>" * 100_000,
    ],
)
def test_xml_that_grows_refers_elsewhere_or_is_broken_is_refused(xml):
    with pytest.raises(Unreadable) as caught:
        parse(xml.encode() if isinstance(xml, str) else xml, "x")
    assert caught.value.code == "damaged"


def test_an_archive_that_unpacks_to_very_much_is_refused_before_it_is_unpacked():
    bomb = archive({f"word/{at}.xml": b"\0" * (64 << 20) for at in range(5)})
    assert len(bomb) < 1 << 20
    with pytest.raises(Unreadable) as caught:
        Archive(bomb, "x")
    assert caught.value.code == "too_large"


def test_an_archive_that_lies_about_its_sizes_is_unpacked_no_further_than_it_says():
    data = bytearray(archive({"word/document.xml": b" " * (64 << 20)}))
    at = data.rfind(b"PK\x01\x02") + 24
    data[at : at + 4] = (100).to_bytes(4, "little")
    with pytest.raises(Unreadable) as caught:
        read_word(bytes(data))
    assert caught.value.code == "damaged"


def test_names_that_lead_out_of_an_archive_lead_nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    evil = {"../../evil.txt": "x", "/etc/evil": "y", "word/../../evil2": "z"}
    text = read_word(word("<w:p><w:r><w:t>fine</w:t></w:r></w:p>", **evil)).text
    assert text == "fine"
    assert list(tmp_path.rglob("*")) == []


def test_very_many_members_are_refused():
    with pytest.raises(Unreadable) as caught:
        Archive(archive({str(at): "" for at in range(20_001)}), "x")
    assert caught.value.code == "too_large"
