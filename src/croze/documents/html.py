"""HTML pages as Markdown: the main content, or where none stands out all of the text. The reader is
trafilatura, of the extra `docs`."""

import logging
from contextlib import suppress
from copy import deepcopy

from croze.documents.charset import decoded
from croze.documents.values import Extracted, Text, Unreadable

MOST_BYTES = 8 << 20


def read_html(data: bytes, charset: str = "", url: str = "") -> Extracted:
    """`charset` is what the server says of it; `url` makes links of it whole."""
    try:
        import trafilatura
    except ImportError as error:
        raise Unreadable(
            "missing_extra",
            "turning HTML into Markdown needs the extra docs.",
            'Install it: pip install "croze[docs]".',
        ) from error
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    if len(data) > MOST_BYTES:
        raise Unreadable("too_large", f"the page has {len(data):,} bytes of HTML.")
    page = decoded(data, charset)
    tree = trafilatura.load_html(page)
    if tree is None:
        raise Unreadable("no_text", "the page holds no HTML elements.")
    if url:
        with suppress(ValueError):  # a link that is none
            tree.make_links_absolute(url, resolve_base_href=True, handle_failures="ignore")
    title = " ".join((tree.findtext(".//title") or "").split())[:300]
    whole = trafilatura.html2txt(deepcopy(tree))
    markdown = trafilatura.extract(
        tree,
        output_format="markdown",
        include_links=True,
        include_tables=True,
        include_formatting=True,
        include_comments=False,
        favor_recall=True,
        with_metadata=False,
    )
    notes: tuple[str, ...] = ()
    if not markdown or len(markdown) < min(200, len(whole) // 4):
        markdown = whole
    elif len(markdown) * 3 < len(whole):
        notes = ("only the main content is shown: navigation and margins are left out",)
    if not markdown.strip():
        raise Unreadable(
            "no_text", "the page holds no text: it is probably made by scripts in a browser."
        )
    heading = tree.find(".//h1")
    said = " ".join("".join(heading.itertext()).split()) if heading is not None else ""
    if said and said not in markdown:  # the extraction of a very short page passes over it
        markdown = f"# {said}\n\n{markdown}"
    text = Text()
    text.add(markdown)
    return Extracted(text=text.text, about="HTML page", notes=(*notes, *text.notes()), title=title)
