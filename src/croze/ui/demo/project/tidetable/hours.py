"""Spans of minutes within a day, and what can be done with several of them."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Span:
    """From `start` up to, not including, `end`; both in minutes after midnight."""

    start: int
    end: int

    def __post_init__(self):
        if not 0 <= self.start < self.end <= 24 * 60:
            raise ValueError(f"not a span within a day: {self.start}-{self.end}")

    def contains(self, minute):
        return self.start <= minute < self.end


def merge(spans):
    """The same times in as few spans as possible, in order."""
    merged = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, span.end)
        else:
            merged.append(span)
    return merged


def total_minutes(spans):
    """How many minutes of the day the spans cover together."""
    return sum(span.end - span.start for span in merge(spans))
