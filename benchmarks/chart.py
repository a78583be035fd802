"""How long Helm takes to render the chart for 200 pools of five workloads. Claim: 5 seconds.

`python -m benchmarks.chart` renders it ten times with each Helm and prints the median, the slowest and the size.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "cluster"))

POOLS = 200
TIMES = 10
ALLOWED = 5.0


def main() -> int:
    """Print a line per Helm. Return 1 if a median exceeds the claim."""
    from rendering import TOKEN, many_pools, text

    slow = 0
    for program in ("helm-3", "helm-4"):
        text(values={**TOKEN, **many_pools(1)}, program=program)  # builds Helm and warms the disk's cache
        seconds = []
        for _ in range(TIMES):
            began = time.perf_counter()
            written = text(values={**TOKEN, **many_pools(POOLS)}, program=program)
            seconds.append(time.perf_counter() - began)
        median = statistics.median(seconds)
        slow += median > ALLOWED
        print(
            json.dumps(
                {
                    "helm": program,
                    "pools": POOLS,
                    "median_seconds": round(median, 2),
                    "slowest_seconds": round(max(seconds), 2),
                    "manifest_bytes": len(written),
                }
            )
        )
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
