"""How the context inspector's values look in a terminal, for the command line and the chat."""
