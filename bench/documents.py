"""What reading documents and pages costs: the start of the reader apart, pages a second, a fetch, memory.

Run: python bench/documents.py. Each line: name, value, unit, target.
"""

import asyncio
import os
import statistics
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from croze.documents.read import Request
from croze.documents.values import Extracted
from croze.web.address import parse_url
from croze.web.fetch import Fetcher
from croze.web.robots import parse
from croze.workspace.extraction import ExtractionError, Extractions
from figures import figure, timed
from tests.documents.made import archive, pdf
from tests.web.site import answer, resolver, serving

ROUNDS = 5
PARAGRAPH = "<w:p><w:r><w:t>The croze cuts a groove into the staves.</w:t></w:r></w:p>"
ARTICLE = "<html><body><article><h1>Head</h1>{}</article></body></html>"


async def took(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def reading(name: str, request: Request, data: bytes, target: str) -> None:
    async def read() -> Extracted:
        return await Extractions().text(request, data, os.environ)

    times = [await took(read) for _ in range(ROUNDS)]
    figure(f"{name}, apart, median", statistics.median(times), "s", target)


async def main() -> None:
    small = archive({"word/document.xml": f"<w:d xmlns:w='w'><w:body>{PARAGRAPH}</w:body></w:d>"})
    large = f"<w:d xmlns:w='w'><w:body>{PARAGRAPH * 20_000}</w:body></w:d>"
    page = ARTICLE.format("<p>The croze cuts a groove, see <a href='/x'>there</a>.</p>" * 1_000)
    await reading("Word document of a line", Request("docx"), small, "< 0.5")
    await reading(
        "Word document of 20,000 paragraphs",
        Request("docx"),
        archive({"word/document.xml": large}),
        "< 3",
    )
    await reading(
        "PDF of 100 pages", Request("pdf"), pdf(*["The croze cuts a groove."] * 100), "< 3"
    )
    await reading("HTML page of 1,000 paragraphs", Request("html"), page.encode(), "< 3")

    known = Extractions()
    data = pdf("words")
    await known.text(Request("pdf"), data, os.environ)
    again = [await took(lambda: known.text(Request("pdf"), data, os.environ)) for _ in range(100)]
    figure("a document that is known", statistics.median(again) * 1e3, "ms", "< 1")

    bomb = b'{"cells": [' + b"[]," * (20 << 20) + b"[]]}"
    tracemalloc.start()
    try:
        await Extractions().text(Request("notebook"), bomb, os.environ)
    except ExtractionError as error:
        print(f"a bomb of {len(bomb):,} bytes: {error.code}")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    figure("memory that croze itself takes beside a bomb's bytes", peak / 1e6, "MB", "< 100")

    async with serving() as site:
        site.pages["/"] = answer("x" * 1_000_000, kind="text/plain")
        fetcher = Fetcher(resolver=resolver())
        await fetcher.fetch(site.url())
        times = [await took(lambda: fetcher.fetch(site.url())) for _ in range(20)]
    figure(
        "page of 1 MB from a site on loopback, median",
        statistics.median(times) * 1e3,
        "ms",
        "< 100",
    )

    rules = parse(
        "User-agent: *\n" + "".join(f"Disallow: /{n}/*a*b$\n" for n in range(5_000)), "croze"
    )
    figure(
        "5,000 rules of robots.txt",
        timed(lambda: rules.allows("/4999/" + "a" * 1_000)) * 1e3,
        "ms",
        "< 100",
    )
    urls = timed(lambda: [parse_url(f"https://host{n}.example.org/a?b={n}") for n in range(1_000)])
    figure("checking a URL", urls * 1e3, "µs", "< 100")


asyncio.run(main())
