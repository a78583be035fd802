"""Programs that measure what devbench claims: `python -m benchmarks.NAME`, or `make bench` for all of them.

Each prints ratios within one run, with the noise of the machine. `benchmarks/README.md` has the figures so far.
"""
