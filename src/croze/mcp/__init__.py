"""The client of the Model Context Protocol: servers started on first use, their tools as croze's."""
