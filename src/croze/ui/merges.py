"""What of a sub-agent's work could not be taken over, for people."""

from collections.abc import Sequence

from croze.text.display import one_line
from croze.types.team import MergeConflict
from croze.ui.i18n import _, mark

SHOWN = 5
_REASONS = (
    mark("both sides changed the same lines"),
    mark("both sides changed it, and it is no text"),
    mark("both sides changed it, and its encoding differs"),
    mark("both sides changed it, and one of them is a link"),
    mark("it was added here too, with other content"),
    mark("it was removed here, but the sub-agent changed it"),
    mark("the sub-agent removed it, but it has changed here"),
    mark("a folder stands here"),
    mark("it is too large or special"),
    mark("its name is not UTF-8"),
    mark("it keeps changing here"),
    mark("interrupted"),
)


def conflict_lines(conflicts: Sequence[MergeConflict]) -> list[str]:
    """A line for each of the first few files that were left as they are."""
    lines = []
    for conflict in conflicts[:SHOWN]:
        reason = _(conflict.reason) if conflict.reason in _REASONS else conflict.reason
        lines.append(
            _(
                "not merged: {path} ({reason})",
                path=one_line(conflict.path, 120),
                reason=one_line(reason, 120),
            )
        )
    if len(conflicts) > SHOWN:
        lines.append(_("and {count} more", count=len(conflicts) - SHOWN))
    return lines
