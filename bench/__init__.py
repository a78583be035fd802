"""devbench: which device runs my TensorFlow program faster, and why.

from bench import run
outcome = run(["cifar"], backend="cpu", max_time="1m")
print(outcome.results[0].summary.step_seconds)
"""

from __future__ import annotations

from typing import Any

from bench.version import __version__

__all__ = ["__version__", "compare", "run"]


def __getattr__(name: str) -> Any:
    """Load `run` and `compare` when they are first used, so that `import bench` costs nothing."""
    if name in ("run", "compare"):
        from bench import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
