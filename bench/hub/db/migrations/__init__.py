"""Alembic's migrations of the hub's database."""
