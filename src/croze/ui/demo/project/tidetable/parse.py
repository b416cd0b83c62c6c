"""Reads opening hours such as `06:10-09:45, 12:00-15:30`."""

import re

from tidetable.hours import Span, merge

_SPAN = re.compile(r"(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})")


def parse_hours(text):
    """The spans of a line, merged. Raises ValueError for what is no span."""
    spans = []
    for piece in text.split(","):
        match = _SPAN.fullmatch(piece.strip())
        if match is None:
            raise ValueError(f"not a span: {piece.strip()!r}")
        start_hour, start_minute, end_hour, end_minute = map(int, match.groups())
        spans.append(Span(start_hour * 60 + start_minute, end_hour * 60 + end_minute))
    return merge(spans)
