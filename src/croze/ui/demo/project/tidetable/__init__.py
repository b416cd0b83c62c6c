"""Opening hours of a harbour gate."""

from tidetable.hours import Span, merge, total_minutes
from tidetable.parse import parse_hours

__all__ = ["Span", "merge", "parse_hours", "total_minutes"]
