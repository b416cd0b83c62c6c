"""Stands in for setuptools while pip downloads: see `build_meta`."""
