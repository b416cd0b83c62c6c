"""What the model sees: facts, sections, projection, checks."""
