"""The program that asks search engines by the library of the extra `websearch`: a query as JSON on
standard input, what was found as JSON on standard output."""

import os
import re
import sys

import msgspec

from croze.web.search import Hit, Hits, Query

_KIND = re.compile(r"[A-Za-z]\w{2,40}")
_LATER = "Try again later, or fetch a page that you know with web_crawl."


def search(query: Query) -> Hits:
    """Ask the engines; what goes wrong is in the answer."""
    try:
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException
    except ImportError:
        return Hits(
            code="missing_extra",
            message="Searching the web needs the extra websearch.",
            hint='Install it: pip install "croze[websearch]".',
        )
    try:
        found = DDGS(timeout=query.seconds).text(
            query.text, max_results=query.limit, backend=query.backend
        )
    except TimeoutException:
        return Hits(
            code="too_slow", message="The search engines gave no answer in time.", hint=_LATER
        )
    except RatelimitException:
        return Hits(
            code="rate_limited", message="The search engines want fewer requests.", hint=_LATER
        )
    except DDGSException as error:
        said = " ".join(str(error).split())[:200]
        if "no results" in said.lower():
            return Hits()
        kind = _KIND.match(said)
        why = f" ({kind[0]})" if kind else ""
        message = f"No search engine could be reached{why}. There may be no network."
        return Hits(code="not_reached", message=message, hint=_LATER)
    hits = []
    for each in found:
        url = str(each.get("href", "")).strip()
        if url.startswith(("http://", "https://")):
            hits.append(Hit(str(each.get("title", "")), url, str(each.get("body", ""))))
    return Hits(hits=tuple(hits[: query.limit]))


def main() -> None:
    out = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what a library prints must not get between the answer
    os.dup2(nowhere, 2)
    answer = search(msgspec.json.decode(sys.stdin.buffer.read(), type=Query))
    with open(out, "wb") as stream:
        stream.write(msgspec.json.encode(answer))


if __name__ == "__main__":
    main()
