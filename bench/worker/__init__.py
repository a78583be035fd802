"""The worker: the process that runs a program and times its steps."""
