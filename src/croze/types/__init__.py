"""Values that every layer shares: no I/O, only the standard library and msgspec."""
