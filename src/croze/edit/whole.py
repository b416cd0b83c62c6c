"""Whole files as a model writes them: refused, or merged, where they leave something out."""

import re

from msgspec import Struct

from croze.edit.markers import new_markers
from croze.edit.rows import changes, finished, split
from croze.edit.sketch import SketchEdit, plan_sketch
from croze.edit.syntax import new_errors
from croze.edit.values import EditPlan, Refusal

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[\w.+-]*[ \t]*")
_PROSE = ("md", "markdown", "mdx", "rst", "txt")
_SHORTER = 0.8
_LAST_LINES = 3


class WholeEdit(Struct, frozen=True):
    """A file's whole new text; `path` tells its language."""

    text: str
    path: str = ""


def plan_whole(text: str, edit: WholeEdit) -> EditPlan | Refusal:
    """`text` becomes the edit's text. Where that holds an elision marker which the file doesn't have,
    it is taken for a sketch; such a marker is never written."""
    new = _unfenced(edit.text.replace("\r\n", "\n"), text, edit.path)
    old_lines, new_lines = split(text), split(new)
    prose = edit.path.rpartition(".")[2].lower() in _PROSE
    marks = () if prose and not text.strip() else new_markers(new_lines, old_lines)
    if marks:
        merged = plan_sketch(text, SketchEdit(new, edit.path)) if text.strip() else None
        if isinstance(merged, EditPlan):
            return merged
        at = marks[0] + 1
        shown = new_lines[marks[0]].strip()[:120]
        why = f" Taken as a sketch: {merged.message}" if merged is not None else ""
        return Refusal(
            "elision_marker",
            f"Line {at} of the content leaves something out ({shown!r}). Nothing was changed.",
            f"Write all of the content, or change parts by replace_in_file.{why}",
            lines=(at,),
        )
    cut = _cut_off(text, new, edit.path)
    if cut is not None:
        return cut
    if new == text:
        return EditPlan(text, (), ("The file already reads so.",))
    final = new.endswith("\n") or not new
    return finished(text, changes(old_lines, new_lines), (), "exact", final=final)


def _cut_off(text: str, new: str, path: str) -> Refusal | None:
    """A refusal where the new text is much shorter and breaks off: its syntax is wrong at its end."""
    if len(new) >= _SHORTER * len(text):
        return None
    last = len(split(new.rstrip()))
    ends = [error for error in new_errors(text, new, path) if error.line > last - _LAST_LINES]
    if not ends:
        return None
    return Refusal(
        "elision_marker",
        f"The content breaks off at line {last}: {ends[-1].text}. Nothing was changed.",
        "Write all of the content, in several calls if it is long (mode append), or change parts by "
        "replace_in_file.",
        lines=(ends[-1].line,),
    )


def _unfenced(new: str, old: str, path: str) -> str:
    """Without a code fence round all of it, save in files that may hold one."""
    if path.rpartition(".")[2].lower() in _PROSE or _FENCE.match(old):
        return new
    rows = new.strip("\n").split("\n")
    first, last = _FENCE.fullmatch(rows[0]), _FENCE.fullmatch(rows[-1])
    if len(rows) < 2 or first is None or last is None or rows[-1].strip() != first[1]:
        return new
    return "\n".join(rows[1:-1]) + "\n"
