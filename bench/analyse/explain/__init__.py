"""Explanations: where the time of a step goes, and why."""
