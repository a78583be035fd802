"""What the chart's templates need to know of its values and of devbench, as a file that they can read.

Helm removes a value that a user sets to null, and `--reuse-values` keeps values of an older version of the chart. So a
template cannot rely on `values.yaml`. It completes the values from this file.
"""

from __future__ import annotations

import json
from typing import Any, get_args

from pydantic import BaseModel

from bench.registry import names
from charts.source.pools import NOT_WITH_WORKERS, ONLY_FOR_SCRIPTS, SHARED_MEMORY, UNMEASURED
from charts.source.values import Values


def facts_json() -> str:
    """Return `facts.json`: the defaults of the values, the built-in workloads, and names of values and settings."""
    facts = {
        "defaults": defaults(Values()),
        "workloads": names(),
        "unmeasured": sorted(UNMEASURED),
        "notWithWorkers": NOT_WITH_WORKERS,
        "onlyForScripts": ONLY_FOR_SCRIPTS,
        "sharedMemory": SHARED_MEMORY,
    }
    return json.dumps(facts, indent=1, ensure_ascii=False) + "\n"


def defaults(part: BaseModel) -> dict[str, Any]:
    """Return what a value means that is missing or null.

    A map of names is empty then. A value that may be None is absent, whatever its default.
    """
    values: dict[str, Any] = {}
    for name, field in type(part).model_fields.items():
        value = getattr(part, name)
        if isinstance(value, BaseModel):
            values[field.alias or name] = defaults(value)
        elif isinstance(value, dict):
            values[field.alias or name] = {}
        elif type(None) not in get_args(field.annotation):
            values[field.alias or name] = value
    return values
