"""PDF, notebooks, HTML, charsets, images: what each gives, and what hostile ones get."""

import io
import json
import sys

import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.documents.charset import decoded
from croze.documents.html import read_html
from croze.documents.kinds import kind_of, kind_of_media
from croze.documents.notebook import MOST_OUTPUT, read_notebook
from croze.documents.pdf import read_pdf
from croze.documents.pictures import Picture, picture_of
from croze.documents.values import Text, Unreadable
from tests.documents.made import pdf, png


def refusal(read, *args) -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        read(*args)
    return caught.value


def outcome(read, data: bytes) -> str:
    """`read`, or the code of the refusal; anything else that is raised fails the test."""
    try:
        read(data)
    except Unreadable as error:
        return error.code
    return "read"


def test_a_pdf_gives_its_pages_under_headings():
    found = read_pdf(pdf("first page", "", "third page"))
    assert found.text.split("\n") == [
        "--- page 1 of 3 ---", "first page", "", "--- page 2 of 3 ---", "", "", "--- page 3 of 3 ---", "third page",
    ]  # fmt: skip
    assert (found.about, found.notes) == ("PDF document, 3 pages", ())


def test_of_a_pdf_with_very_many_pages_the_first_are_read(monkeypatch):
    monkeypatch.setattr("croze.documents.pdf.MOST_PAGES", 2)
    found = read_pdf(pdf(*["words"] * 10))
    assert found.notes == ("pages 3-10 are left out",)
    assert "--- page 2 of 10 ---" in found.text
    assert "--- page 3" not in found.text


def test_a_pdf_without_text_says_that_it_is_probably_scanned():
    assert refusal(read_pdf, pdf("", "")).code == "no_text"


def test_an_encrypted_pdf_says_so_and_one_without_a_user_password_is_read():
    for password, readable in (("secret", False), ("", True)):
        writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("hidden words")))
        writer.encrypt(user_password=password, owner_password="owner", algorithm="RC4-128")
        out = io.BytesIO()
        writer.write(out)
        if readable:
            assert "hidden words" in read_pdf(out.getvalue()).text
        else:
            assert refusal(read_pdf, out.getvalue()).code == "encrypted"


@pytest.mark.parametrize("cut", range(0, 900, 83))
def test_a_pdf_that_is_cut_off_is_read_or_refused(cut):
    data = pdf("some words here", "and there")
    assert outcome(read_pdf, data[: len(data) - cut]) in ("read", "damaged", "no_text")


def test_a_pdf_whose_pages_refer_to_themselves_is_refused():
    data = pdf("x").replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]")
    assert refusal(read_pdf, data).code in ("damaged", "no_text")


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdf", None)
    error = refusal(read_pdf, pdf("x"))
    assert (error.code, "croze[docs]" in error.hint) == ("missing_extra", True)
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    error = refusal(read_html, b"<p>x</p>")
    assert (error.code, "croze[docs]" in error.hint) == ("missing_extra", True)


def notebook(*cells, **more) -> bytes:
    return json.dumps({"cells": list(cells), "nbformat": 4, **more}).encode()


def test_a_notebook_gives_cells_and_bounded_outputs():
    code = {
        "cell_type": "code",
        "execution_count": 3,
        "source": ["import x\n", "x.run()"],
        "outputs": [
            {"output_type": "stream", "name": "stdout", "text": "y" * (MOST_OUTPUT + 10)},
            {
                "output_type": "display_data",
                "data": {"image/png": "AAAA", "text/plain": ["<Figure>"]},
            },
            {
                "output_type": "error",
                "ename": "E",
                "evalue": "v",
                "traceback": ["\x1b[31mTrace\x1b[0m"],
            },
        ],
    }
    text = {"cell_type": "markdown", "source": "# Title"}
    found = read_notebook(notebook(text, code, metadata={"language_info": {"name": "python"}}))
    assert found.about == "Jupyter notebook, 2 cells"
    assert found.text.split("\n") == [
        "--- cell 1 (markdown) ---",
        "# Title",
        "",
        "--- cell 2 (code, run as [3]) ---",
        "```python",
        "import x",
        "x.run()",
        "```",
        "Output:",
        "y" * MOST_OUTPUT,
        "[… 10 characters of this output are left out …]",
        "Output:",
        "<Figure>",
        "[output of type image/png, 4 characters, left out]",
        "Error:",
        "Trace",
    ]


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b'{"cells": 3}', b"\xff\xfe", b"[" * 100_000, b'{"cells": {"a": 1}}'],
)
def test_what_is_no_notebook_is_refused(data):
    assert refusal(read_notebook, data).code == "damaged"


@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["cells", "cell_type", "source", "outputs", "output_type", "data", "text", "image/png", "worksheets", "metadata"]), inner, max_size=4), max_leaves=12))  # fmt: skip
def test_json_of_any_shape_is_read_or_refused(cells):
    for value in (cells, {"cells": cells}, {"cells": [cells]}, {"worksheets": [cells]}):
        assert outcome(read_notebook, json.dumps(value).encode()) in ("read", "damaged")


PAGE = "<html><head><title>T</title></head><body><header>top</header><article><h1>Head</h1>{0}<ul><li>one</li><li>two</li></ul><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table></article><footer>foot</footer></body></html>"


def test_html_becomes_markdown_with_whole_links():
    body = "<p>Some <b>bold</b> words with <a href='../x'>a link</a> in them.</p>" * 8
    found = read_html(PAGE.format(body).encode(), url="https://site.test/a/b/")
    assert found.title == "T"
    assert found.text.startswith("# Head")
    assert "[a link](https://site.test/a/x)" in found.text
    assert "**bold**" in found.text
    assert "- one\n- two" in found.text
    assert "| a | b |" in found.text


@pytest.mark.parametrize(
    "page",
    [
        "",
        " ",
        "<html></html>",
        "<script>x</script>",
        "<!-- only -->",
        "<html><body><img src=x></body></html>",
    ],
)
def test_a_page_without_text_says_so(page):
    assert refusal(read_html, page.encode()).code == "no_text"


@pytest.mark.parametrize(
    "page",
    [
        b"<div>" * 50_000 + b"deep",
        b"<p>" + b"x" * 500_000,
        b"<a href='" * 5_000,
        b"<p>a</p>" * 20_000,
        b"\x00\x01\x02<p>text text text</p>",
        b"<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'b'>]><html><body><p>&a; text</p></body></html>",
    ],
    ids=["deep", "long", "open", "many", "control", "entity"],
)  # fmt: skip
def test_a_hostile_page_is_read_or_refused(page):
    assert outcome(read_html, page) in ("read", "no_text", "damaged")


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("é".encode(), "", "é"),
        ("é".encode("latin-1"), "", "é"),
        ("é".encode("latin-1"), "ascii", "é"),
        ("“".encode("cp1252"), "iso-8859-1", "“"),
        ("日本".encode("shift_jis"), "Shift_JIS", "日本"),
        (b'<meta charset="euc-kr">' + "한".encode("euc-kr"), "", '<meta charset="euc-kr">한'),
        (b"<meta http-equiv=x content='text/html; charset=koi8-r'>" + "я".encode("koi8-r"), "", None),
        ("é".encode("utf-16"), "latin-1", "é"),
        (b"<meta charset=utf-16>\xc3\xa9", "", "<meta charset=utf-16>é"),
        (b"\\u0041", "unicode_escape", "\\u0041"),
        (b"+AEE-", "utf-7", "+AEE-"),
        (b"abc", "no-such-charset", "abc"),
        (b"abc", "x\0y", "abc"),
        (b"abc", "hex", "abc"),
    ],
)  # fmt: skip
def test_a_page_is_decoded_as_browsers_do(data, charset, text):
    found = decoded(data, charset)
    assert found == text if text is not None else found.endswith("я")


@given(st.binary(max_size=200), st.text(max_size=12))
def test_any_bytes_in_any_charset_become_text(data, charset):
    assert isinstance(decoded(data, charset), str)


def test_images_tell_their_size():
    from PIL import Image

    for form, media in (
        ("PNG", "image/png"),
        ("JPEG", "image/jpeg"),
        ("GIF", "image/gif"),
        ("WEBP", "image/webp"),
    ):
        for options in ({}, {"lossless": True}) if form == "WEBP" else ({}, {"progressive": True}):
            out = io.BytesIO()
            Image.new("RGB", (321, 123), "red").save(out, form, **options)
            assert picture_of(out.getvalue()) == Picture(media, 321, 123), form
    assert picture_of(png(7, 5)) == Picture("image/png", 7, 5)


@pytest.mark.parametrize("data", [b"", b"GIF8", b"RIFFxxxxWAVE", b"BM", b"%PDF-1.4"])
def test_what_is_no_image_is_none(data):
    assert picture_of(data) is None


@given(st.sampled_from([b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFFxxxxWEBPVP8X", b"RIFFxxxxWEBPVP8L"]), st.binary(max_size=60))  # fmt: skip
def test_a_cut_image_has_a_type_and_perhaps_no_size(magic, rest):
    found = picture_of(magic + rest)
    assert found is not None
    assert found.width >= 0


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("a.pdf", b"%PDF-1.7", "pdf"),
        ("a.txt", b"\n\n%PDF-1.7", "pdf"),
        ("A.DOCX", b"PK\x03\x04", "docx"),
        ("a.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "xlsx"),
        ("a.docx", b"text", None),
        ("a.zip", b"PK\x03\x04", None),
        ("a.ipynb", b"{", "notebook"),
        ("a.htm", b"<p>", "html"),
        ("a.csv", b"a,b", None),
    ],
)
def test_a_kind_is_told_by_bytes_and_name(name, head, kind):
    assert kind_of(name, head) == kind


@pytest.mark.parametrize(
    ("media_type", "name", "head", "kind"),
    [
        ("text/html", "x", b"", "html"),
        ("application/pdf", "x", b"%PDF-", "pdf"),
        ("application/pdf", "x", b"<html>", None),
        ("application/octet-stream", "x.pdf", b"%PDF-", "pdf"),
        ("application/zip", "x.docx", b"PK\x03\x04", "docx"),
        ("text/plain", "x.html", b"<html>", None),
    ],
)
def test_a_kind_of_the_web_is_told_by_its_media_type(media_type, name, head, kind):
    assert kind_of_media(media_type, name, head) == kind


def test_text_is_cut_at_its_most_and_says_so():
    text = Text(most=10)
    assert text.add("12345")
    assert not text.add("67890", "x")
    assert (text.text, text.notes()) == (
        "12345\n6789",
        ("the text is longer; its rest is left out",),
    )


@pytest.mark.parametrize(
    "page",
    [
        "<h1>Head</h1><p>short</p>",
        "<h1> He<i>a</i>d\n</h1><p>" + "words " * 50,
        "<html><body><h1>Head</h1><p>" + "words " * 50 + "</p></body></html>",
    ],
)
def test_a_very_short_page_keeps_its_heading(page):
    assert read_html(page.encode()).text.removeprefix("# ").startswith("Head\n")
