"""What the agent can do: the tools, their registry, approvals and the running of calls."""
