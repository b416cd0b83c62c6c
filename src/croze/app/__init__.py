"""Configuration and the composition root."""
