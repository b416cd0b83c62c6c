"""Readers of documents: bytes in, text out; no reader opens a file or a connection."""
