"""croze: a coding agent for real repositories."""

__version__ = "0.1.0"
