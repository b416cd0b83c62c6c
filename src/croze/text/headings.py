"""Text of others below a heading of ours."""

import re

_HEADING = re.compile(r"(?m)^([ ]{0,3})##(?=[ \t])")


def below(text: str) -> str:
    """`text` as it stands below a heading `## …`: its own headings of that rank go one down, so that it
    can't pass for a part that somebody else wrote."""
    return _HEADING.sub(r"\1###", text) if "##" in text else text
