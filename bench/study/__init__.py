"""What to run: the plan of a run, an explanation, a sweep, the machine's peaks."""
