"""Which reader a file or an answer from the web is for, by how it begins and by its name or media type."""

from typing import Literal

Kind = Literal["pdf", "docx", "xlsx", "pptx", "notebook", "html"]

_ZIPPED: dict[str, Kind] = {
    "docx": "docx",
    "docm": "docx",
    "dotx": "docx",
    "xlsx": "xlsx",
    "xlsm": "xlsx",
    "pptx": "pptx",
    "pptm": "pptx",
    "ppsx": "pptx",
}
_MEDIA: dict[str, Kind] = {
    "application/pdf": "pdf",
    "application/x-pdf": "pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/x-ipynb+json": "notebook",
    "text/html": "html",
    "application/xhtml+xml": "html",
}
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

NAMES: dict[Kind, str] = {
    "pdf": "PDF document",
    "docx": "Word document",
    "xlsx": "Excel workbook",
    "pptx": "PowerPoint file",
    "notebook": "Jupyter notebook",
    "html": "HTML page",
}


def kind_of(name: str, head: bytes) -> Kind | None:
    """The reader of a file of this name which begins so; None where there is none."""
    suffix = name.rpartition(".")[2].lower()
    if b"%PDF-" in head[:1024]:
        return "pdf"
    if head.startswith((b"PK\x03\x04", _OLE)):
        return _ZIPPED.get(suffix)
    if suffix == "ipynb":
        return "notebook"
    return "html" if suffix in ("html", "htm", "xhtml") else None


def kind_of_media(media_type: str, name: str, head: bytes) -> Kind | None:
    """The reader of an answer from the web. What a server calls only "bytes" is told by its name."""
    found = _MEDIA.get(media_type)
    if found is not None and (found != "pdf" or b"%PDF-" in head[:1024]):
        return found
    if media_type in ("application/octet-stream", "application/zip", "binary/octet-stream", ""):
        return kind_of(name, head)
    return None


def is_old_office(head: bytes) -> bool:
    """Whether it is a file of Office before 2007, or an encrypted one of later."""
    return head.startswith(_OLE)
