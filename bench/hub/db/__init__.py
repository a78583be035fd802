"""The hub's database."""
