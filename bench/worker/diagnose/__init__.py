"""The diagnosis: what a worker measures after the timed part, in the same process, where everything is warm."""
