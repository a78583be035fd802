"""The whole training and the profile, which come after the trials, with stand-ins for their workers."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from synthetic import MOMENT, measured

from bench.cli.run import exit_code
from bench.errors import Interrupted
from bench.model.failure import Failure
from bench.model.result import Result, Stop
from bench.model.sample import ProcessSample
from bench.session import one_off
from bench.session.results import conclude
from bench.session.worker_process import WorkerEnded


def raising(error: Exception) -> Any:
    """Return a launcher whose workers raise an error instead of training or warming up."""

    def work() -> None:
        raise error

    def start(result: Result, full: bool = False) -> Any:
        worker = SimpleNamespace(sample=ProcessSample(trial=3, pid=1, started=MOMENT), train=work, set_up=work)
        worker.fail = lambda failure: setattr(worker.sample, "failure", failure)
        result.samples.append(worker.sample)
        return worker

    return SimpleNamespace(start=start)


def test_a_whole_training_that_fails_is_a_failure_that_keeps_what_the_trials_measured() -> None:
    result = measured("1", [0.01, 0.011])
    one_off.train(raising(WorkerEnded(Failure(kind="nan", message="the loss is NaN"))), result)
    conclude([result], Stop(reason="target", trials=2))
    assert result.failure is not None
    assert (result.status, result.failure.kind) == ("failed", "nan")
    assert result.failure.message == "the whole training (--full) failed: the loss is NaN"
    assert (len(result.samples), exit_code([result])) == (2, 1)
    assert result.summary.step_seconds is not None


@pytest.mark.parametrize(
    "work", [one_off.train, lambda launcher, result: one_off.profile(launcher, result, Path("profile"))]
)
def test_a_worker_that_is_interrupted_after_the_trials_is_not_one_of_them(work: Callable[..., None]) -> None:
    result = measured("1", [0.01, 0.011])
    with pytest.raises(Interrupted):
        work(raising(Interrupted(signal.SIGINT)), result)
    assert [sample.trial for sample in result.samples] == [1, 2]
