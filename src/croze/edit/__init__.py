"""The edit engine: text in, plan or refusal out.

    from croze.edit import apply, parse_blocks, plan

    planned = plan(text, parse_blocks(blocks))
    if isinstance(planned, EditPlan):
        text = apply(planned)

Texts have LF line ends here; `croze.edit.source` takes a file's own off and puts them back.
"""

from croze.edit.blocks import listed_blocks, parse_blocks
from croze.edit.plan import Edit, apply, plan
from croze.edit.values import Block, BlockEdit, Change, EditPlan, Refusal

__all__ = [
    "Block",
    "BlockEdit",
    "Change",
    "Edit",
    "EditPlan",
    "Refusal",
    "apply",
    "listed_blocks",
    "parse_blocks",
    "plan",
]
