"""The links of Markdown pages: found, checked against what there is, taken out."""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import unquote

from msgspec import Struct

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CODE = re.compile(r"(?<!`)(`+)(?!`)((?:(?!\n[ \t]*\n).)+?)(?<!`)\1(?!`)", re.DOTALL)
_INLINE = re.compile(
    r"(?P<image>!?)\[(?P<text>(?:[^\[\]\\]|\\.|\[(?:[^\[\]\\]|\\.){0,400}\]){0,400})\]"
    r"\(\s*(?P<target><[^<>\n]*>|[^\s()<]*(?:\([^\s()]*\)[^\s()]*)*)"
    r"(?:\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?\s*\)"
)
_DEFINITION = re.compile(
    r"^ {0,3}\[(?P<id>[^\[\]\n]+)\]:[ \t]*(?P<target><[^<>\n]*>|\S+)[^\n]*$", re.MULTILINE
)
_USE = re.compile(r"!?\[(?P<text>[^\[\]\n]*)\](?:\[(?P<id>[^\[\]\n]*)\])?(?![\[(:])")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r"^ {0,3}(?:=+|-+)[ \t]*$")
_ANCHOR = re.compile(r"<[^<>]*\b(?:id|name)\s*=\s*[\"']([^\"']+)[\"']", re.IGNORECASE)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_LINES = re.compile(r"L\d+(?:C\d+)?(?:-L\d+(?:C\d+)?)?")


class Link(Struct, frozen=True):
    """A link where it stands in a page (`start` to `end` in characters); `name` is its definition's, where
    it is one."""

    target: str
    text: str
    start: int
    end: int
    name: str = ""


class Broken(Struct, frozen=True):
    """A link that leads nowhere: its page, its target as written, and why."""

    page: str
    target: str
    why: str


def links(text: str) -> list[Link]:
    """The links and images of a page in their order, inline ones and definitions; none out of code or
    comments."""
    plain = _without_code(text)
    found = [
        Link(
            _bare(hit["target"]), text[hit.start("text") : hit.end("text")], hit.start(), hit.end()
        )
        for hit in _INLINE.finditer(plain)
    ]
    found += [
        Link(_bare(hit["target"]), "", hit.start(), hit.end(), _named(hit["id"]))
        for hit in _DEFINITION.finditer(plain)
    ]
    return sorted(found, key=lambda link: link.start)


def anchors(text: str) -> set[str]:
    """What `#…` can name in a page: its headings, as GitHub makes anchors of them, and elements' ids."""
    plain = _without_code(text, spans=False)
    found = set(_ANCHOR.findall(plain))
    counts: dict[str, int] = {}
    before = ""
    for line in plain.split("\n"):
        heading = _HEADING.match(line)
        title = heading.group(1) if heading else ""
        if heading is None and before.strip() and _SETEXT.match(line):
            title = before
        if title:
            slug = slugged(title)
            count = counts.get(slug, 0)
            counts[slug] = count + 1
            found.add(f"{slug}-{count}" if count else slug)
        before = "" if heading else line
    return found


def slugged(title: str) -> str:
    """A heading's anchor: lower case, links by their text, only letters, digits, `_`, `-`; blanks are `-`."""
    title = _INLINE.sub(lambda hit: hit["text"], title)
    return "".join(
        "-" if char == " " else char
        for char in title.strip().lower()
        if char == " " or char in "-_" or char.isalnum()
    )


def broken(
    pages: Mapping[str, str], out: str, exists: Callable[[str], bool], of: Sequence[str] = ()
) -> list[Broken]:
    """The links of `pages` (path below `out` → text) that lead nowhere, those of the pages `of` only where
    these are given. `exists` tells of a path of the project whether it is there. Links into the web aren't
    followed."""
    known = {path: anchors(text) for path, text in pages.items()}
    found = []
    for page in of or pages:
        for link in links(pages[page]):
            why = _problem(page, link.target, out, known, exists)
            if why:
                found.append(Broken(page, link.target, why))
    return list(dict.fromkeys(found))


def without(text: str, targets: set[str]) -> str:
    """The page without the links to these targets: their text stays."""
    names: set[str] = set()
    for link in reversed(links(text)):
        if link.target not in targets:
            continue
        if link.name:
            names.add(link.name)
            end = link.end + 1 if text[link.end : link.end + 1] == "\n" else link.end
            text = text[: link.start] + text[end:]
        else:
            text = text[: link.start] + link.text + text[link.end :]
    if names:
        plain = _without_code(text)
        for hit in reversed(list(_USE.finditer(plain))):
            if _named(hit["id"] or hit["text"]) in names:
                text = text[: hit.start()] + text[slice(*hit.span("text"))] + text[hit.end() :]
    return text


def _problem(
    page: str,
    target: str,
    out: str,
    known: Mapping[str, set[str]],
    exists: Callable[[str], bool],
) -> str:
    """Why a link leads nowhere; empty where it leads somewhere."""
    if not target:
        return "it is empty"
    if _SCHEME.match(target):
        return ""
    path, _, anchor = target.partition("#")
    path, anchor = unquote(path.partition("?")[0]), unquote(anchor)
    if not path:
        return "" if not anchor or anchor in known[page] else "no heading here has this anchor"
    if path.startswith("/"):
        return "it must be relative to its page"
    place = posixpath.normpath(posixpath.join(out, posixpath.dirname(page), path))
    if place == ".." or place.startswith("../"):
        return "it leads out of the project"
    inside = place.removeprefix(f"{out}/")
    if inside != place and inside in known:
        wrong = anchor and anchor not in known[inside]
        return f"{inside} has no heading with this anchor" if wrong else ""
    if not exists(place):
        return "there is no such page or file"
    if anchor and path.endswith(".md"):
        return ""
    return "" if not anchor or _LINES.fullmatch(anchor) else "a file's anchor is a line, as #L10"


def _without_code(text: str, *, spans: bool = True) -> str:
    """The same text with blanks for what is code or a comment, so that places stay; code spans only with
    `spans`."""
    plain = "".join(_outside_comments("".join(_outside_fences(text))))
    return _CODE.sub(lambda hit: _blank(hit[0]), plain) if spans else plain


def _outside_fences(text: str) -> Iterator[str]:
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if fence:
            yield _blank(line)
            closes = (
                mark is not None and mark[1].startswith(fence) and not line[mark.end() :].strip()
            )
            fence = "" if closes else fence
        elif mark is not None and not (mark[1][0] == "`" and "`" in line[mark.end() :]):
            fence = mark[1]
            yield _blank(line)
        else:
            yield line


def _outside_comments(text: str) -> Iterator[str]:
    at = 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        yield text[at:start]
        yield _blank(text[start : end + 3])
        at = end + 3
    yield text[at:]


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _bare(target: str) -> str:
    return target[1:-1] if target.startswith("<") and target.endswith(">") else target


def _named(name: str) -> str:
    return " ".join(name.split()).casefold()
