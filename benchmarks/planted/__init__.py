"""Programs with one planted cause of lost time each, and programs without one. `benchmarks.explain` explains them.

Each program has a parameter `planted`. Without it, the program does the same work without the cause, so the share that
the cause takes can be measured. `CAUSE` names what an explanation should say, as a regular expression. A program
without a cause has an empty `CAUSE`. `BETWEEN_EPOCHS` marks a cause that takes no time of the steps.
"""
