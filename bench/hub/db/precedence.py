"""Which state of a result or a run counts, where several of one id arrive, in whatever order.

A sender may be killed after it sent and before it heard the answer, so everything may come twice, late and out of
order. Each state has a number, and a state replaces another of a smaller number only; so it does not matter when it
comes.

- A complete result is final: the first one stays, whatever comes.
- Of others that of a later attempt counts; within an attempt one that ended (failed) before one that goes on, and of
  those the one with more processes, or of as many the one that says why it stopped.
- A run's state is replaced by a later attempt's. Within an attempt one that was started later counts, as a pod that was
  stopped does when it goes on, and of those that were started at the same time one that ended.
"""

from __future__ import annotations

from datetime import datetime

from bench.model.result import Result

COMPLETE = 2**60
FIRST = 1_577_836_800  # 2020, in seconds since 1970
_SECONDS = 2**31
_ATTEMPT, _FAILED, _SAMPLES = 2**28, 2**26, 2**25 - 1


def of_result(result: Result) -> int:
    """A result's number; it fits 63 bits."""
    if result.status == "complete":
        return COMPLETE
    ended = _FAILED if result.status == "failed" else 0
    return result.attempt * _ATTEMPT + ended + 2 * min(len(result.samples), _SAMPLES) + (result.stop is not None)


def of_run(attempt: int, started: datetime, ended: bool) -> int:
    """A run's number; it fits 63 bits."""
    seconds = min(max(0, int(started.timestamp()) - FIRST), _SECONDS - 1)
    return 2 * (attempt * _SECONDS + seconds) + ended
