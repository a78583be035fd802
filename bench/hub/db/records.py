"""The row of a result: what lists, pages and metrics read, computed from the document."""

from __future__ import annotations

import hashlib
import json
import math
import secrets
import zlib
from datetime import datetime, timedelta, timezone
from time import time_ns
from typing import Any

from bench.hub.db import documents, gauges, precedence
from bench.hub.db.tables import SHORT
from bench.hub.problems import Problem
from bench.model.environment import Environment
from bench.model.interval import Interval
from bench.model.result import Result
from bench.render.text import plain
from bench.version import __version__

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
LATEST = int(documents.LAST_TIME) * 1_000_000
"""The latest time that a table holds, in microseconds since 1970."""

HEADER_BYTES = 512 * 2**10
"""Maximum size of a result without its samples, in bytes. Lists and charts read hundreds of them."""


def row(result: Result, body: bytes) -> dict[str, Any]:
    """Return a row of `tables.RESULTS`, with its compressed document under "body".

    Args:
        result: the parsed document.
        body: the document as it was sent.

    Raises:
        Problem: the result is too large without its samples.
    """
    header = result.model_copy(update={"samples": []}).model_dump_json()
    if len(header) > HEADER_BYTES:
        detail = f"the result has more than {HEADER_BYTES // 2**10} kB without its samples"
        raise Problem(413, "too-large", detail, "Keep such a result on the machine that measured it.")
    spec, step = result.spec, result.summary.step_seconds
    key = comparison_key(result)
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
        "comparison_key": key,
        "program": spec.program_key,
        "workload": short(spec.workload),
        "title": short(spec.title),
        "label": short(spec.label),
        "loop": spec.loop,
        "backend": short(spec.backend),
        "pool": pool(result.environment),
        "node": _node(result),
        "tensorflow": _version(result),
        "devbench": short(result.devbench),
        "processes": len(result.samples),
        "step": _finite(step.value) if step else None,
        "step_low": _finite(step.low) if step else None,
        "step_high": _finite(step.high) if step else None,
        "header": header,
        "gauges": json.dumps(gauges.lines(result, key, spec.program_key, pool(result.environment))),
        "writer": __version__,
        "body": zlib.compress(body, 1),
    }


def comparison_key(result: Result) -> str:
    """Return the comparison key: 16 hex digits that identify a spec and where it ran, for any version of TensorFlow."""
    return _hash([result.spec.key, *result.environment.identity("comparison key")])


def pool(environment: Environment) -> str:
    """Return the pool that a result was measured in, or the CPU's model if the machine is in no pool."""
    host = environment.host
    return short(host.deployment.pool or host.cpu.model or "unknown machine")


def digest(body: bytes) -> str:
    """Return the SHA-256 of a document."""
    return hashlib.sha256(body).hexdigest()


def stamp() -> int:
    """Return a random number for a changed row. It is small: the sum of millions fits into a database's integers."""
    return secrets.randbits(31)


def short(text: str) -> str:
    """Return a text that fits into a column: printable, of limited length."""
    return plain(text)[:SHORT]


def now() -> int:
    """Return the current time in microseconds since 1970, UTC."""
    return time_ns() // 1000


def microseconds(time: datetime) -> int:
    """Return a time as the tables hold it. A time without a zone is in UTC."""
    aware = time if time.tzinfo else time.replace(tzinfo=timezone.utc)
    return (aware - EPOCH) // timedelta(microseconds=1)


def to_datetime(stored: int) -> datetime:
    """Return a time from the tables."""
    return EPOCH + timedelta(microseconds=stored)


def step_interval(row: Any) -> Interval | None:
    """Return the step time of a row, or None if it has none."""
    if row.step is None:
        return None
    return Interval(value=row.step, low=row.step_low, high=row.step_high, n=max(1, row.processes))


def _node(result: Result) -> str | None:
    node = result.environment.host.deployment.node
    return short(node) if node else None


def _version(result: Result) -> str | None:
    version = result.environment.tensorflow
    return short(version) if version else None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _hash(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True, default=str).encode()).hexdigest()[:16]
