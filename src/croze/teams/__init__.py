"""Several agents or steps working together: flows."""
