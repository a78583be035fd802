"""devbench's version, in a file that imports nothing, so that every other file can import it."""

__version__ = "0.1.0"
