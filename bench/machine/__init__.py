"""The machine that a run measures on: what it is, what it allows, and what disturbed a measurement."""
