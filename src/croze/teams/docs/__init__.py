"""The documentation pipeline: create → structure → detail → index."""
