"""The hub's HTTP interface."""
