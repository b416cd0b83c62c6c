"""What models and people answer: the brief and the structure, read and checked."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict

from croze.teams.docs.values import INDEX, Brief, Page
from croze.text.display import one_line
from croze.workspace.gitignore import Patterns

MOST_PAGES = 60
MOST_SOURCES = 20
MOST_PROBLEMS = 12
LONGEST_PATH = 120

_PATH = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)*\.md")
_FENCE = re.compile(r"^(`{3,})[^\n`]*\n(.*?)^\1[ \t]*$", re.DOTALL | re.MULTILINE)

T = TypeVar("T")

Lookup = Callable[[str], str]
"""What is wrong with a file as a page's source; empty where it can be one."""


class _Pages(msgspec.Struct, frozen=True):
    pages: tuple[Page, ...]


def read_brief(answer: str) -> Brief | str:
    """The brief in an answer; where it can't be used, what is wrong with it."""
    found = _read(answer, Brief)
    if isinstance(found, str):
        return found
    empty = [name for name in Brief.__struct_fields__ if not getattr(found, name).strip()]
    return f"{', '.join(empty)}: must not be empty" if empty else found


def read_structure(answer: str, source_problem: Lookup) -> tuple[Page, ...] | str:
    """The pages in an answer (JSON, or YAML from a person's editor); where they can't be used, what is
    wrong with them, a line each."""
    found = _read(answer, _Pages)
    if isinstance(found, str):
        return found
    pages = tuple(_tidy(page) for page in found.pages)
    problems = [*_set_problems(pages)]
    for at, page in enumerate(pages, 1):
        problems += [f"page {at} ({page.path}): {what}" for what in page_problems(page)]
        for source in page.sources:
            if what := source_problem(source):
                problems.append(f"page {at} ({page.path}): source {source!r} {what}")
    if not problems:
        return pages
    more = len(problems) - MOST_PROBLEMS
    return "\n".join([*problems[:MOST_PROBLEMS], *([f"… {more} more"] if more > 0 else [])])


def page_problems(page: Page) -> list[str]:
    """What is wrong with a page whatever the project holds."""
    found = []
    if not _PATH.fullmatch(page.path) or len(page.path) > LONGEST_PATH:
        found.append(
            "the path must be relative, of letters, digits, '.', '_' and '-', end in .md and have at most "
            f"{LONGEST_PATH} characters"
        )
    if page.path.casefold() == INDEX:
        found.append(f"{INDEX} is written from the structure; give another path")
    if not page.title or not page.purpose:
        found.append("title and purpose must not be empty")
    if not 1 <= len(page.sources) <= MOST_SOURCES:
        found.append(f"1 to {MOST_SOURCES} sources are needed")
    return found


def matches(path: str, globs: Sequence[str]) -> bool:
    """Whether a path is among the sources; globs as in `.gitignore`, later ones over earlier ones. No
    globs: every path is."""
    patterns = Patterns.of(globs)
    if patterns is None:
        return not any(glob.strip() for glob in globs)
    found: bool | None = None
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        folder = "/" if depth < len(parts) else ""
        verdict = patterns.verdict("/".join(parts[:depth]) + folder)
        found = found if verdict is None else verdict
    return bool(found)


def shown(brief: Brief, pages: Sequence[Page]) -> str:
    """The structure as a person edits it: YAML, with the brief as comments."""
    import yaml

    about = [f"{brief.title}: {brief.summary}", f"For: {brief.audience}", f"Scope: {brief.scope}"]
    body = yaml.safe_dump(
        {"pages": [{**asdict(page), "sources": list(page.sources)} for page in pages]},
        sort_keys=False,
        allow_unicode=True,
        width=100,
    )
    return "".join(f"# {one_line(line, 300)}\n" for line in about) + body


def _tidy(page: Page) -> Page:
    sources = tuple(dict.fromkeys(source.strip().removeprefix("./") for source in page.sources))
    path = page.path.strip().removeprefix("./")
    return Page(path, one_line(page.title.strip(), 200), page.purpose.strip(), sources)


def _set_problems(pages: Sequence[Page]) -> list[str]:
    if not 1 <= len(pages) <= MOST_PAGES:
        return [f"there are {len(pages)} pages; 1 to {MOST_PAGES} are possible"]
    found, seen = [], set[str]()
    for page in pages:
        if page.path.casefold() in seen:
            found.append(f"{page.path}: two pages have this path")
        seen.add(page.path.casefold())
    for page in pages:
        folders = page.path.casefold().split("/")[:-1]
        for depth in range(1, len(folders) + 1):
            if "/".join(folders[:depth]) in seen:
                found.append(f"{page.path}: lies below a path that is a page itself")
    return found


def _read(answer: str, kind: type[T]) -> T | str:
    """The value in an answer: in a fence, alone, or amid prose."""
    body = answer.strip()
    fenced = _FENCE.search(body)
    if fenced is not None:
        body = fenced.group(2)
    value, problem = _value(body)
    if problem and "{" in body and "}" in body:
        value, _ = _value(body[body.index("{") : body.rindex("}") + 1])
    if value is None:
        return problem or "it is empty"
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return str(error)


def _value(body: str) -> tuple[dict[str, Any] | None, str]:
    """The mapping that a text is, in JSON or YAML; else why it is none."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        problem = f"it is no JSON object: {error}"
        if body.lstrip().startswith("{"):
            return None, problem
        import yaml

        try:
            value = yaml.safe_load(body)
        except (yaml.YAMLError, ValueError, RecursionError) as wrong:
            return None, f"it is neither JSON nor YAML: {' '.join(str(wrong).split())}"
    return (value, "") if isinstance(value, dict) else (None, "there is no JSON object in it")
