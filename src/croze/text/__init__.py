"""Pure text rooms: redaction, token estimates, safe display."""
