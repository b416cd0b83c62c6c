"""The interactive chat."""
