"""The sending side of a hub: the client, the outbox, and the reports of a run."""
