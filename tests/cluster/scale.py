"""Values with very many pools."""

from __future__ import annotations

from typing import Any


def many(count: int) -> dict[str, Any]:
    """So many pools of five workloads each, every pool on nodes of its own."""
    return {
        "workloads": ["cifar", "mnist", "matmul", "tabular", "dense-inference"],
        "pools": {
            "cpu": None,
            "t4": None,
            **{f"p{n}": {"preset": "none", "nodeSelector": {"pool": f"p{n}"}, "cpu": 1} for n in range(count)},
        },
        "poolDefaults": {"memory": "1Gi"},
    }
