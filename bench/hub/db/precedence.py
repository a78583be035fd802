"""Which state of a result or a run counts when several states of one id arrive, in any order.

A sender may be killed after it sent a document and before it got the response. So every document may arrive twice,
late and out of order. Each state has a number. A state replaces those with a smaller number, whenever it arrives. Of
states with the same number, the one that arrives last counts, unless a complete result or an ended run is stored.

- A complete result is final. The first one stays.
- Of other results, the later attempt counts. Within an attempt, a failed result counts before a partial one. Of
  partial results, the one with more processes counts, and of those the one that says why it stopped.
- Of a run's states, the later attempt counts. Within an attempt, the state that started later counts: a stopped pod
  that is started again starts later. Of states that started at the same time, the final one counts. If
  the watcher saw an interruption, the run's own report that it finished or failed still replaces it, and so does the
  watcher's that it failed for good.
"""

from __future__ import annotations

from datetime import datetime

from bench.model.result import Result

COMPLETE = 2**60
EPOCH = 1_577_836_800
"""The start of 2020, in seconds since 1970."""

_SECONDS = 2**31
_ATTEMPT, _FAILED, _SAMPLES = 2**28, 2**26, 2**25 - 1


def of_result(result: Result) -> int:
    """Return a result's number. It fits into 63 bits."""
    if result.status == "complete":
        return COMPLETE
    failed = _FAILED if result.status == "failed" else 0
    return result.attempt * _ATTEMPT + failed + 2 * min(len(result.samples), _SAMPLES) + (result.stop is not None)


def of_run(attempt: int, started: datetime, ended: bool) -> int:
    """Return a run's number. It fits into 63 bits."""
    seconds = min(max(0, int(started.timestamp()) - EPOCH), _SECONDS - 1)
    return 2 * (attempt * _SECONDS + seconds) + ended
