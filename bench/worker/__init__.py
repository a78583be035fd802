"""The worker: the process that runs one spec and times its steps."""
