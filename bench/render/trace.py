"""What a profiler's trace says about a step: its parts as shares, and its longest operations."""

from __future__ import annotations

from bench.model.profile import Profile
from bench.render import numbers


def shares(profile: Profile) -> dict[str, float]:
    """Return the parts of a traced step as shares."""
    parts = {
        "operations running": profile.device_share,
        "waiting for input": profile.input_share,
        "TensorFlow on the host": profile.host_share,
        "Python or waiting": profile.idle_share,
    }
    return {name: share for name, share in parts.items() if share is not None}


def longest_operations(profile: Profile, count: int = 3) -> str:
    """Return the operations that take longest in a traced step."""
    return ", ".join(f"{operation.name} {numbers.time(operation.seconds)}" for operation in profile.operations[:count])
