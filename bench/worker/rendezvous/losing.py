"""How the loss of a worker is described and recognized."""

from __future__ import annotations

import contextlib
import signal

from bench.model.failure import Failure


def lost(message: str) -> Failure:
    """Return the failure of a worker that is gone."""
    return Failure(kind="lost-worker", message=message, hint="The other workers were ended. Start the run again.")


def of_cluster(failure: Failure) -> bool:
    """Return whether a worker failed because another worker did not arrive, does not fit or is gone."""
    return failure.kind in ("rendezvous", "lost-worker")


def ending(code: int) -> str:
    """Return how a process ended, in words, such as "was killed by SIGKILL"."""
    if code >= 0:
        return f"ended with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"
