"""Errors of the system in the middle of a session: what was measured before is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_analyse_compare import sample

from bench import api
from bench.cli.run import exit_code
from bench.config.settings import load
from bench.errors import DevbenchError, OutputError, WorkloadError
from bench.session.session import Session
from bench.store import files

pytestmark = pytest.mark.once

NO_ROOM = DevbenchError("cannot start a worker: Resource temporarily unavailable", "Raise the limit of processes.")


def fail_in_the_second_trial(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def trial(session: Session) -> None:
        number = session._progress.trial
        if number == 2:
            raise error
        for result in session.results:
            result.samples.append(sample(number, 0.01 * (1 + 0.1 * number)))

    monkeypatch.setattr(Session, "_run_trial", trial)


def settings_of(folder: Path) -> Any:
    return load(case="small", loop="step,resident", backend="cpu", data="sample", output=folder)


@pytest.mark.parametrize(
    ("error", "kind", "code"), [(NO_ROOM, "error", 1), (WorkloadError("mine.ipynb cannot be read"), "workload", 2)]
)
def test_a_worker_that_cannot_start_fails_the_results_and_keeps_their_earlier_trial(
    error: DevbenchError, kind: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_in_the_second_trial(monkeypatch, error)
    outcome = api.run(["tabular"], settings_of(tmp_path))
    for result in (*outcome.results, *files.results(tmp_path)):
        assert (result.status, len(result.samples)) == ("failed", 1)
        assert result.failure is not None
        assert (result.failure.kind, result.failure.message) == (kind, error.message)
        assert result.summary.step_seconds is not None
    assert exit_code(outcome.results) == code


def test_a_full_disk_ends_the_run_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_in_the_second_trial(monkeypatch, OutputError("cannot write the results: No space left on device"))
    with pytest.raises(OutputError, match="No space left on device"):
        api.run(["tabular"], settings_of(tmp_path))
    assert all(len(result.samples) == 1 for result in files.results(tmp_path))
