"""The documents that the parts of devbench exchange, store and publish."""
