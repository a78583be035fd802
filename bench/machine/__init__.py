"""The machine under a run: what it is, what it grants, what happened on it."""
