"""Start-up time of `devbench --help` and `devbench list`, interleaved with a bare interpreter.

`python -m benchmarks.startup [ROUNDS]`. Claim: 0.25 s and 0.4 s on a quiet core.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "devbench --help": [sys.executable, "-m", "bench", "--help"],
    "devbench list": [sys.executable, "-m", "bench", "list"],
}


def main() -> None:
    """Print each command's fastest and median time, and its ratio to the interpreter's."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name in random.sample(list(COMMANDS), len(COMMANDS)):
            start = time.perf_counter()
            subprocess.run(COMMANDS[name], stdout=subprocess.DEVNULL, check=True)
            times[name].append(time.perf_counter() - start)
    base = statistics.median(times["python -c pass"])
    for name, seconds in times.items():
        middle = statistics.median(seconds)
        print(
            f"{name:16} fastest {min(seconds):.3f} s   median {middle:.3f} s   {middle / base:5.1f} × the interpreter"
        )


if __name__ == "__main__":
    main()
