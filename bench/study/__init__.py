"""Decide what to run: a run, an explanation, a sweep, a scaling study, a bisection, a gate, or the peaks."""
