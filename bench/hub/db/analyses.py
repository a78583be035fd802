"""What stored results say: comparisons, explanations, sweeps and scaling studies, from their documents."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from bench.analyse.analysis import Explained, Scaled, Swept
from bench.analyse.outcome import Outcome
from bench.hub.db import result_queries
from bench.model.explanation import Explanation
from bench.model.result import Result


def outcome(connection: Connection, ids: Sequence[str], threshold: float) -> Outcome:
    """Compare results, the first of which is the baseline.

    Raises:
        Problem: one of them does not exist or has another schema version.
    """
    return Outcome.of_group(_read(connection, ids), threshold)


def explained(connection: Connection, explanation: Explanation, levels: Sequence[str], threshold: float) -> Explained:
    """Return an explanation with the results of its levels.

    Raises:
        Problem: one of them does not exist or has another schema version.
    """
    return Explained(explanation, _read(connection, levels), threshold)


def swept(connection: Connection, points: Sequence[str], threshold: float) -> Swept:
    """Return the sweep whose points are these results, of which there is at least one.

    Raises:
        Problem: one of them does not exist or has another schema version.
    """
    return Swept.of(_read(connection, points), threshold)


def scaled(connection: Connection, levels: Sequence[str], threshold: float) -> Scaled:
    """Return the scaling study whose levels are these results, with the run of at least one number of workers.

    Raises:
        Problem: one of them does not exist or has another schema version.
    """
    return Scaled.of(_read(connection, levels), threshold)


def _read(connection: Connection, ids: Sequence[str]) -> list[Result]:
    return [result_queries.result(connection, id_) for id_ in ids]
