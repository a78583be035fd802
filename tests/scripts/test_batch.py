"""A run can change the batch of a script that passes arrays to `fit`."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from devbench_process import BRIEF, run_devbench
from scouting import recognition, scout

from bench.config.settings import RunSettings
from bench.model.plan import Group
from bench.publish.recorder import Recorder
from bench.session.design import Design
from bench.session.session import Session
from bench.study.plan import plan

PROGRAMS = Path(__file__).parent / "programs"
ROWS, EPOCHS = 790, 3
"""Of `fit_arrays.py`."""


@pytest.mark.timeout(300)
def test_a_run_with_another_batch_times_the_steps_that_the_script_then_has(tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "fit_arrays.py", tmp_path)
    run = run_devbench(tmp_path, "run", "fit_arrays.py", "--param", "batch=64", *BRIEF)
    assert run.code == 0, run.text()
    (result,) = run.results
    assert recognition(result).chosen.steps == EPOCHS * math.ceil(ROWS / 64)
    assert result.spec.params == {"batch": 64}
    rate, step = result.summary.examples_per_second, result.summary.step_seconds
    assert rate is not None
    assert step is not None
    assert rate * step.value == pytest.approx(64)


@pytest.mark.once
@pytest.mark.timeout(300)
def test_a_sweep_measures_a_module_at_several_batches(tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "fit_arrays.py", tmp_path)
    options = ("--param", "batch=64..128", "--max-processes", "1", "--point-time", "8s")
    run = run_devbench(tmp_path, "sweep", "-m", "fit_arrays", *options)
    assert run.code == 0, run.text()
    steps = {result.spec.params["batch"]: recognition(result).chosen.steps for result in run.results}
    assert steps == {batch: EPOCHS * math.ceil(ROWS / batch) for batch in (64, 128)}


@pytest.mark.once
@pytest.mark.timeout(300)
def test_a_script_that_makes_its_own_batches_refuses_another_batch_with_the_reason(tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "fit_dataset.py", tmp_path)
    run = run_devbench(tmp_path, "run", "fit_dataset.py", "--param", "batch=64", *BRIEF)
    assert run.code != 0
    assert "--param batch does not apply to this script" in run.text()


@pytest.mark.once
@pytest.mark.timeout(300)
def test_the_loops_of_an_explanation_take_another_batch_too(tmp_path: Path) -> None:
    scouted = scout(PROGRAMS / "fit_arrays.py", tmp_path)
    settings = RunSettings(output=tmp_path, max_processes=1, max_time="10s")
    (group,) = plan([PROGRAMS / "fit_arrays.py"], settings)
    program = group.planned[0]
    changed = replace(program, spec=program.spec.model_copy(update={"loop": "step", "params": {"batch": 128}}))
    session = Session(Group("script", (changed,)), settings, Design(), Recorder(settings))
    session.results[0].recognition = recognition(scouted)
    (result,) = session.run()
    assert result.failure is None, result.failure
    assert result.samples[0].facts.batch == 128
    assert result.samples[0].facts.epoch is not None
    assert result.samples[0].facts.epoch.batches == ROWS // 128
