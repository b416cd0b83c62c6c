"""The edit engine's two verbs: plan an edit on a text, apply the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, assert_never

from croze.edit.values import BlockEdit, EditPlan, Refusal

if TYPE_CHECKING:
    from croze.edit.patch import PatchEdit
    from croze.edit.ranges import RangeEdit
    from croze.edit.sketch import SketchEdit
    from croze.edit.whole import WholeEdit

Edit: TypeAlias = "BlockEdit | RangeEdit | SketchEdit | WholeEdit | PatchEdit"


def plan(text: str, edit: Edit) -> EditPlan | Refusal:
    """Where and how `edit` changes `text` (line ends are LF), all of it or nothing."""
    # Each form is imported where it is used: most runs need one of them.
    if isinstance(edit, BlockEdit):
        from croze.edit.place import plan_blocks

        return plan_blocks(text, edit)
    from croze.edit.ranges import RangeEdit, plan_ranges

    if isinstance(edit, RangeEdit):
        return plan_ranges(text, edit)
    from croze.edit.whole import WholeEdit, plan_whole

    if isinstance(edit, WholeEdit):
        return plan_whole(text, edit)
    from croze.edit.sketch import SketchEdit, plan_sketch

    if isinstance(edit, SketchEdit):
        return plan_sketch(text, edit)
    from croze.edit.patch import PatchEdit, plan_patch

    if isinstance(edit, PatchEdit):
        return plan_patch(text, edit)
    assert_never(edit)


def apply(plan: EditPlan) -> str:
    """The text after the plan. A final newline stays as it was; a text without lines has none."""
    final = plan.text.endswith("\n")
    lines = plan.text.removesuffix("\n").split("\n") if plan.text else []
    for change in reversed(plan.changes):
        lines[change.start : change.end] = change.lines
    return "\n".join(lines) + ("\n" if lines and (final or not plan.text) else "")
