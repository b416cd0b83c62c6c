"""A task to watch without a key or a network: sample project, script, and how they are shown."""
