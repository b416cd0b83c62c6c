"""The index page of a set: made from the brief and the structure, without a model."""

from collections.abc import Sequence
from itertools import groupby

from croze.teams.docs.values import Brief, Page


def index_page(brief: Brief, pages: Sequence[Page]) -> str:
    """What the set is, and its pages by folder with their purposes, in the order of the structure."""
    lines = [f"# {_line(brief.title)}", "", brief.summary.strip(), "", f"*{_line(brief.audience)}*"]
    order: dict[str, int] = {"": 0}
    for page in pages:
        order.setdefault(_folder(page), len(order))
    for folder, group in groupby(sorted(pages, key=lambda p: order[_folder(p)]), key=_folder):
        lines += ["", f"## {folder}"] if folder else []
        lines.append("")
        for page in group:
            title = page.title.replace("[", "\\[").replace("]", "\\]")
            lines.append(f"- [{title}]({page.path}): {_line(page.purpose)}")
    return "\n".join(lines) + "\n"


def _folder(page: Page) -> str:
    return page.path.rpartition("/")[0]


def _line(text: str) -> str:
    return " ".join(text.split())
