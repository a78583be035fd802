"""What devbench claims about speed and trust, as programs: `python -m benchmarks.NAME`, or `make bench` for all.

Each prints ratios measured within one run, with the machine's noise beside them. The figures that were seen,
and how, are in `benchmarks/README.md`.
"""
