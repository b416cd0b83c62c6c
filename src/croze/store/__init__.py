"""The durable log: events, conversations, blobs, search, backups, transfer."""
