"""The web as the agent may reach it: guarded addresses, bounded fetches, searches."""
