"""What the repository and the user say: rules, agents, skills, tools, libraries; found, audited, never guessed."""
