"""One document read by the reader of its kind."""

from msgspec import Struct

from croze.documents.kinds import Kind
from croze.documents.values import Extracted


class Request(Struct, frozen=True, omit_defaults=True):
    """What is to be read; `charset` and `url` are of a page of the web."""

    kind: Kind
    charset: str = ""
    url: str = ""


class Failed(Struct, frozen=True, omit_defaults=True):
    code: str
    message: str
    hint: str = ""


class Answer(Struct, frozen=True, omit_defaults=True):
    """Either what was read, or why nothing was."""

    read: Extracted | None = None
    failed: Failed | None = None


def read(request: Request, data: bytes) -> Extracted:
    """The text of a document. Raises `Unreadable`."""
    match request.kind:
        case "pdf":
            from croze.documents.pdf import read_pdf

            return read_pdf(data)
        case "docx":
            from croze.documents.word import read_word

            return read_word(data)
        case "xlsx":
            from croze.documents.sheets import read_sheets

            return read_sheets(data)
        case "pptx":
            from croze.documents.slides import read_slides

            return read_slides(data)
        case "notebook":
            from croze.documents.notebook import read_notebook

            return read_notebook(data)
        case "html":
            from croze.documents.html import read_html

            return read_html(data, request.charset, request.url)
