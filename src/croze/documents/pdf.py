"""PDF documents as text, a heading line for each page. The reader is pypdf, of the extra `docs`."""

import io
import logging
import time

from croze.documents.values import Extracted, Text, Unreadable, plural

MOST_PAGES = 1_000
SECONDS = 20.0
"""After which no further page is begun: what has been read is given."""


def read_pdf(data: bytes) -> Extracted:
    try:
        import pypdf
        from pypdf.errors import DependencyError, PdfReadError, PyPdfError
    except ImportError as error:
        raise Unreadable(
            "missing_extra",
            "reading PDF documents needs the extra docs.",
            'Install it: pip install "croze[docs]".',
        ) from error
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    text, notes, failed = Text(), list[str](), list[int]()
    started = time.monotonic()
    try:
        reader = pypdf.PdfReader(io.BytesIO(data), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("encrypted", "it is encrypted.", "Save it without a password.")
        count = len(reader.pages)
        title = (reader.metadata.title if reader.metadata is not None else None) or ""
        last = 0
        for number in range(1, min(count, MOST_PAGES) + 1):
            if time.monotonic() - started > SECONDS:
                break
            try:
                found = reader.pages[number - 1].extract_text()
            except (MemoryError, Unreadable):
                raise
            except Exception:  # noqa: BLE001 - a page that pypdf fails on; the others may be read
                failed.append(number)
                found = ""
            last = number
            if not text.add(f"--- page {number} of {count} ---", *found.split("\n"), ""):
                break
    except DependencyError as error:
        raise Unreadable(
            "encrypted", "it is encrypted in a way that isn't read.", "Save it without a password."
        ) from error
    except (
        PdfReadError,
        PyPdfError,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        OSError,
    ) as error:
        raise Unreadable("damaged", f"it is no whole PDF document: {error}") from error
    except (AttributeError, RecursionError, AssertionError, OverflowError) as error:
        raise Unreadable(
            "damaged", f"its structure can't be read: {type(error).__name__}"
        ) from error
    if last < count:
        notes.append(f"pages {last + 1:,}-{count:,} are left out")
    if failed:
        numbers = ", ".join(map(str, failed[:10])) + (" …" if len(failed) > 10 else "")
        notes.append(f"no text could be read of page {numbers}")
    lines = (line for line in text.text.split("\n") if line and not line.startswith("--- page "))
    if not any(line.strip() for line in lines):
        raise Unreadable(
            "no_text",
            f"its {plural(count, 'page')} hold no text: they are probably scanned images.",
            "Turn pages into images (pdftoppm) and read those, or use OCR (ocrmypdf), where there is one.",
        )
    about = f"PDF document, {plural(count, 'page')}"
    return Extracted(
        text=text.text,
        about=about,
        notes=(*notes, *text.notes()),
        title=" ".join(title.split())[:200],
    )
