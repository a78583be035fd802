"""A run's side of a hub."""
