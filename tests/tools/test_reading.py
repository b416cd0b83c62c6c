"""read_file on documents and images."""

import pytest

from croze.tools.builtin.files import ReadFile
from tests.documents.made import archive, encrypted, pdf, png
from tests.documents.test_office import word
from tests.documents.test_readers import notebook


def put(ctx, name: str, data: bytes) -> None:
    path = ctx.workspace.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


async def read(ctx, name: str, **options):
    return ctx.remember(await ReadFile(path=name, **options).run(ctx))


def paragraphs(count: int) -> bytes:
    return word(
        "".join(f"<w:p><w:r><w:t>line {at}</w:t></w:r></w:p>" for at in range(1, count + 1))
    )


async def test_a_pdf_is_read_as_numbered_lines(fake_context):
    put(fake_context, "docs/a.pdf", pdf("some words", "more words"))
    result = await read(fake_context, "docs/a.pdf")
    assert result.ok, result.message
    assert result.text.split("\n") == [
        "1\t--- page 1 of 2 ---", "2\tsome words", "3\t", "4\t--- page 2 of 2 ---", "5\tmore words",
    ]  # fmt: skip
    assert "PDF document, 2 pages" in result.message
    assert result.data == {"path": "docs/a.pdf", "start_line": 1, "end_line": 5, "lines": 5}
    assert len(result.observed["docs/a.pdf"]) == 64


async def test_a_document_is_paged_like_a_text_file(fake_context):
    put(fake_context, "a.docx", paragraphs(600))
    whole = await read(fake_context, "a.docx")
    assert whole.truncated == "lines 501-1,199 are left out; go on with start_line=501"
    rest = await read(fake_context, "a.docx", start_line=501, end_line=503)
    assert rest.text.split("\n") == ["501\tline 251", "502\t", "503\tline 252"]
    found = await read(fake_context, "a.docx", query="line 599")
    assert "1197\tline 599" in found.text
    beyond = await read(fake_context, "a.docx", start_line=5_000)
    assert beyond.code == "no_such_lines"
    assert fake_context.documents.started == 1


async def test_a_document_that_has_changed_is_read_anew(fake_context):
    put(fake_context, "a.docx", paragraphs(1))
    assert "line 1" in (await read(fake_context, "a.docx")).text
    put(fake_context, "a.docx", word("<w:p><w:r><w:t>changed</w:t></w:r></w:p>"))
    assert "changed" in (await read(fake_context, "a.docx")).text
    assert fake_context.documents.started == 2


async def test_a_notebook_is_read_as_cells_though_it_is_text(fake_context):
    put(fake_context, "a.ipynb", notebook({"cell_type": "code", "source": "x = 1", "outputs": []}))
    result = await read(fake_context, "a.ipynb")
    assert result.text.split("\n")[:3] == ["1\t--- cell 1 (code) ---", "2\t```", "3\tx = 1"]


async def test_html_and_csv_are_read_as_they_are_written_because_they_are_edited_so(fake_context):
    put(fake_context, "a.html", b"<p>hello</p>\n")
    put(fake_context, "a.csv", b"a,b\n1,2\n")
    assert (await read(fake_context, "a.html")).text == "1\t<p>hello</p>"
    assert (await read(fake_context, "a.csv")).text == "1\ta,b\n2\t1,2"


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("a.pdf", b"%PDF-1.7\n\0", "damaged"),
        ("a.docx", b"PK\x03\x04" + b"\0" * 6, "damaged"),
        ("a.xlsx", encrypted(archive({"xl/workbook.xml": "<x/>"})), "encrypted"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "binary"),
        ("a.ipynb", b"{}", "damaged"),
        ("a.zip", archive({"x": "y"}), "binary"),
    ],
)
async def test_a_document_that_gives_no_text_says_why(fake_context, name, data, code):
    put(fake_context, name, data)
    result = await read(fake_context, name)
    assert (result.ok, result.code) == (False, code)
    assert name in result.message
    assert f"{len(data):,} bytes" in result.message


async def test_terminal_escapes_in_a_document_become_harmless(fake_context):
    put(
        fake_context,
        "a.ipynb",
        notebook({"cell_type": "markdown", "source": "a\x1b]0;x\x07b\u202ec"}),
    )
    result = await read(fake_context, "a.ipynb")
    assert not set("\x1b\x07\u202e") & set(result.text)


async def test_an_image_goes_to_a_model_that_sees(fake_context):
    fake_context.vision = True
    data = png(800, 600)
    put(fake_context, "a.png", data)
    result = await read(fake_context, "a.png")
    assert result.ok
    assert result.message == f"a.png is a PNG image (800×600 pixels, {len(data):,} bytes)."
    (image,) = result.images
    assert (image.media_type, image.data) == ("image/png", "")
    assert fake_context.kept[image.blob] == data
    assert result.blobs == (image.blob,)
    assert result.image_tokens == 640


async def test_of_an_image_a_model_that_sees_none_gets_type_and_size(fake_context):
    put(fake_context, "a.png", png(3, 2))
    result = await read(fake_context, "a.png")
    assert (result.ok, result.code, result.images) == (False, "no_vision", ())
    assert (result.data["width"], result.data["height"], result.data["type"]) == (3, 2, "PNG image")
    assert "3×2 pixels" in result.message
    assert fake_context.kept == {}


@pytest.mark.parametrize("data", [png(8_001, 1), png() + b"\0" * 4_000_000])
async def test_an_image_above_what_models_take_is_refused_with_the_number(fake_context, data):
    fake_context.vision = True
    put(fake_context, "a.png", data)
    result = await read(fake_context, "a.png")
    assert (result.ok, result.code, result.images) == (False, "too_large", ())
    assert "3,750,000 bytes and 8,000 pixels" in result.message
