"""From a document to the row that lists, pages and metrics are made of."""

from __future__ import annotations

import hashlib
import json
import math
import secrets
import time
import zlib
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from bench.hub.db import gauges, precedence
from bench.hub.db.tables import NAME
from bench.machine.environment import at
from bench.model.result import Interval, Result
from bench.model.spec import Spec
from bench.render.text import plain
from bench.version import __version__

PLACE = (
    ("host", "cpu", "model"),
    ("host", "cpu", "limit"),
    ("device", "name"),
    ("host", "deployment", "pool"),
    ("host", "deployment", "instance_type"),
)
"""Places in `environment` of what makes the same spec another series; a new TensorFlow is the next point of it."""

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def row(result: Result, body: bytes) -> dict[str, Any]:
    """A row of `tables.RESULTS`, and its document under "body".

    Args:
        result: what was read from it.
        body: the document as it was sent.
    """
    spec, step = result.spec, result.summary.step_seconds
    key = series(result)
    return {
        "id": result.id,
        "attempt": result.attempt,
        "precedence": precedence.of_result(result),
        "digest": digest(body),
        "stamp": stamp(),
        "size": len(body),
        "received": now(),
        "created": microseconds(result.created),
        "status": result.status,
        "failure": result.failure.kind if result.failure else None,
        "purpose": result.purpose,
        "parent": short(result.parent) if result.parent else None,
        "group": short(result.group),
        "key": short(result.key),
        "series": key,
        "work": work(spec),
        "workload": short(spec.workload),
        "title": short(spec.title),
        "label": short(spec.label),
        "loop": spec.loop,
        "backend": short(spec.backend),
        "pool": pool(result.environment),
        "tensorflow": _version(result),
        "devbench": short(result.devbench),
        "processes": len(result.samples),
        "step": _finite(step.value) if step else None,
        "step_low": _finite(step.low) if step else None,
        "step_high": _finite(step.high) if step else None,
        "head": result.model_copy(update={"samples": []}).model_dump_json(),
        "gauges": json.dumps(gauges.lines(result, key, work(spec), pool(result.environment))),
        "made_by": __version__,
        "body": zlib.compress(body, 1),
    }


def series(result: Result) -> str:
    """The comparison key: 16 hex digits that name a spec together with where it ran, whatever its TensorFlow."""
    place = [at(result.environment, steps) for steps in PLACE]
    return _hash([result.spec.key, *place])


def work(spec: Spec) -> str:
    """16 hex digits that name what is run, without the backend and the threads, which come with the machine."""
    return _hash(
        spec.model_dump(mode="json", exclude={"file": True, "backend": True, "threads": True, "data": {"source"}})
    )


def pool(environment: Mapping[str, Any]) -> str:
    """The pool that it ran in; of a machine that is in none its CPU."""
    named = at(environment, ("host", "deployment", "pool")) or at(environment, ("host", "cpu", "model"))
    return short(str(named or "unknown machine"))


def digest(body: bytes) -> str:
    """Names a document's bytes."""
    return hashlib.sha256(body).hexdigest()


def stamp() -> int:
    """A number that is another one after each change; small, so that the sum of millions fits a database's integers."""
    return secrets.randbits(31)


def short(text: str) -> str:
    """A text that fits a column: printable, of limited length."""
    return plain(text)[:NAME]


def now() -> int:
    """The time in microseconds since 1970, UTC."""
    return time.time_ns() // 1000


def microseconds(when: datetime) -> int:
    """A moment as the tables hold it; one without a zone is in UTC."""
    aware = when if when.tzinfo else when.replace(tzinfo=timezone.utc)
    return (aware - EPOCH) // timedelta(microseconds=1)


def moment(when: int) -> datetime:
    """A moment from the tables."""
    return EPOCH + timedelta(microseconds=when)


def interval(stored: Any) -> Interval | None:
    """The step of a row."""
    if stored.step is None:
        return None
    return Interval(value=stored.step, low=stored.step_low, high=stored.step_high, n=max(1, stored.processes))


def _version(result: Result) -> str | None:
    found = at(result.environment, ("framework", "tensorflow"))
    return short(str(found)) if found else None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _hash(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True, default=str).encode()).hexdigest()[:16]
