"""The `fit` of a script is explained as that of a workload. Other loops say why they are not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from devbench_process import run_devbench

PROGRAMS = Path(__file__).parent / "programs"
BRIEF = ("--no-changes", "--max-processes", "1", "--max-time", "6m")
LEVELS = ("fit", "step", "host-batches", "resident", "fused")


def explained(name: str, folder: Path, *options: str) -> Any:
    """Return the explanation of a script."""
    shutil.copy(PROGRAMS / name, folder)
    run = run_devbench(folder, "explain", name, "--json", *options)
    assert run.code == 0, run.text()
    return json.loads(run.out)["explanation"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("fit_arrays.py", marks=pytest.mark.essential),
        pytest.param("fit_dataset.py", marks=pytest.mark.once),
        pytest.param("fit_sequence.py", marks=pytest.mark.once),
        pytest.param("fit_two_inputs.py", marks=pytest.mark.once),
        "fit_generator.py",
        pytest.param("fit_text.py", marks=pytest.mark.once),
    ],
)
def test_the_fit_of_a_script_has_every_level_of_a_workload(name: str, tmp_path: Path) -> None:
    explanation = explained(name, tmp_path, *BRIEF)
    missing = explanation["missing_levels"]  # on a busy machine
    assert all(reason.startswith("there was no time for it") for reason in missing.values()), missing
    measured = [part["lower"] for part in explanation["parts"]]
    assert measured == [loop for loop in LEVELS if loop not in missing]
    assert measured[-1] == "fused"
    assert all(finding["cause"] != "retracing" for finding in explanation["findings"])  # fit traces its own functions


@pytest.mark.once
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("loop_eager.py", "the step runs eagerly, not in a tf.function (Adam in loop_eager.py, line 15)"),
        ("fit_mirrored.py", "the model trains under a MirroredStrategy (fit in fit_mirrored.py, line 11)"),
    ],
)
def test_a_level_that_does_not_apply_to_a_script_has_the_reason(name: str, reason: str, tmp_path: Path) -> None:
    explanation = explained(name, tmp_path, *BRIEF)
    assert explanation["missing_levels"] == dict.fromkeys(LEVELS, f"not applicable, because {reason}")


@pytest.mark.timeout(900)
def test_the_function_of_a_custom_loop_runs_in_the_loops_of_devbench(tmp_path: Path) -> None:
    explanation = explained("loop_function.py", tmp_path, *BRIEF)
    missing = explanation["missing_levels"]
    assert missing.pop("fit").startswith("not applicable")
    assert missing.pop("step").startswith("not applicable")
    assert all(reason.startswith("there was no time for it") for reason in missing.values()), missing
    measured = [part["lower"] for part in explanation["parts"]]
    assert measured == [loop for loop in ("host-batches", "resident", "fused") if loop not in missing]
    assert measured[-1] == "fused"


@pytest.mark.essential
@pytest.mark.timeout(900)
def test_the_step_of_a_custom_loop_is_divided_by_what_its_lines_do(tmp_path: Path) -> None:
    explanation = explained("loop_wasteful.py", tmp_path, *BRIEF)
    lines = {part["kind"]: part["lines"] for part in explanation["own_step"]}
    shares = {part["kind"]: part["share"] for part in explanation["own_step"]}
    assert sum(shares.values()) == pytest.approx(1.0, abs=0.05)
    assert shares["input"] > 0.2
    assert "line 34" in lines["input"]
    assert shares["python"] > 0.1
    assert "29" in lines["python"]
    assert "loop_wasteful.py line 35" in lines["building"]
    assert "36" in lines["graph"]
    findings = {finding["cause"]: finding for finding in explanation["findings"]}
    assert "(loop_wasteful.py line 34)" in findings["slow input"]["sentence"]
    assert "(loop_wasteful.py line 36)" in findings["per-step synchronization"]["sentence"]
    assert "Python between calls of TensorFlow" in findings


@pytest.mark.once
@pytest.mark.timeout(600)
def test_a_function_takes_the_place_of_an_eager_step_only_where_there_is_one(tmp_path: Path) -> None:
    for name in ("loop_eager_gan.py", "loop_function.py"):
        shutil.copy(PROGRAMS / name, tmp_path)
    change = ("--change", "function", "--max-processes", "1")
    run = run_devbench(tmp_path, "run", "loop_eager_gan.py", *change)
    assert run.code == 0, run.text()
    assert run.results[0].samples[0].facts.traces  # an eager step traces nothing
    refused = run_devbench(tmp_path, "run", "loop_function.py", *change)
    assert refused.code != 0
    assert "--change function does not apply to this program and loop" in refused.text()
