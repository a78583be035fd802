"""Which state of a result or a run counts, where several of one id arrive, in whatever order.

A sender may be killed after it sent and before it heard the answer, so everything may come twice, late and out of
order. Each state has a number, and a state replaces another of a smaller number only; so it does not matter when it
comes.

- A complete result is final: the first one stays, whatever comes.
- Of others that of a later attempt counts; within an attempt one that ended (failed) before one that goes on, and of
  those the one with more processes.
- A run's state is replaced by a later attempt's, and until it ended by any of the same attempt.
"""

from __future__ import annotations

from bench.result import Result

COMPLETE = 2**60
_ATTEMPT, _FAILED, _SAMPLES = 2**28, 2**26, 2**26 - 1


def of_result(result: Result) -> int:
    """A result's number; it fits 63 bits."""
    if result.status == "complete":
        return COMPLETE
    ended = _FAILED if result.status == "failed" else 0
    return result.attempt * _ATTEMPT + ended + min(len(result.samples), _SAMPLES)


def of_run(attempt: int, ended: bool) -> int:
    """A run's number."""
    return 2 * attempt + ended
