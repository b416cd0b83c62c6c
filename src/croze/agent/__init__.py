"""The agent: loop, live session, bus, callbacks, limits, resume."""
