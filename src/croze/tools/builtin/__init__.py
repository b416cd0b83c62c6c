"""The built-in tools, one module a subject."""
