"""Results of one script share what its steps are, but not the failure of one environment or backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest
from synthetic import result

from bench.model.facts import Facts
from bench.model.failure import Failure
from bench.model.recognition import Recognition, StepSource
from bench.model.result import Result
from bench.model.sample import ProcessSample
from bench.model.spec import Env, Script
from bench.session.launch import Launcher
from bench.session.recognize import _too_few, recognize

STEPS = StepSource(
    kind="updates", name="train", file="train.py", line=3, steps=100, calls=100, token="updates train.py:3 train"
)
RECOGNITION = Recognition(chosen=STEPS, ended=True, seconds=1.0)


class StandInLauncher:
    """Starts no process. The environment `old` fails, with a failure of a kind.

    Args:
        kind: the kind.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.started: list[str] = []

    def start(self, result: Result, **_: Any) -> Any:
        """Return a worker."""
        assert result.spec.env is not None
        self.started.append(result.spec.env.name)
        sample = ProcessSample(trial=1, pid=1, started=result.created, facts=Facts())
        result.samples.append(sample)

        class Worker:
            def recognize(self) -> Recognition:
                return RECOGNITION

        worker: Any = Worker()
        worker.sample = sample
        return worker

    @contextmanager
    def guard(self, result: Result, worker: Any) -> Iterator[None]:
        """Let the environment `old` fail."""
        yield
        if result.spec.env is not None and result.spec.env.name == "old":
            result.recognition = None
            result.failure = Failure(kind=self.kind, message="it fails", phase="import")


@pytest.mark.parametrize(("kind", "started"), [("error", ["old", "new"]), ("workload", ["old"])])
def test_a_broken_environment_does_not_fail_the_others(kind: str, started: list[str]) -> None:
    envs = [Env(name=name, python=name, version="3.12", sha256=name) for name in ("old", "new")]
    results = [result(env.name, env=env, script=Script(), failure=None, samples=[]) for env in envs]
    launcher = StandInLauncher(kind)
    recognize(cast("Launcher", launcher), results)
    assert launcher.started == started
    assert results[0].failure is not None
    assert (results[1].failure is None) == (kind == "error")


@pytest.mark.parametrize(
    ("steps", "calls", "found", "needed"),
    [
        (0, 0, "no complete step", "7 steps"),
        (1, 1, "only one step", "7 steps"),
        (6, 6, "6 steps", "7 steps"),
        (64, 1, "64 steps in one call", "7 calls"),
        (60, 6, "60 steps in 6 calls", "7 calls"),
    ],
)
def test_too_few_steps_are_counted_and_so_are_those_that_are_needed(
    steps: int, calls: int, found: str, needed: str
) -> None:
    chosen = STEPS.model_copy(update={"steps": steps, "calls": calls})
    failure = _too_few(RECOGNITION.model_copy(update={"chosen": chosen}))
    assert failure is not None
    assert f"the script has {found} (train in train.py, line 3)" in failure.message
    assert f"devbench needs at least {needed}." in failure.hint


def test_seven_steps_are_enough() -> None:
    chosen = STEPS.model_copy(update={"steps": 7, "calls": 7})
    assert _too_few(RECOGNITION.model_copy(update={"chosen": chosen})) is None
