"""Finding one's way in code: what files define, and which of it matters most."""
