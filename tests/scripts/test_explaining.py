"""The `fit` of a script is explained as that of a workload. Other loops say why they are not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from devbench_process import run_devbench

PROGRAMS = Path(__file__).parent / "programs"
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
        "fit_dataset.py",
        "fit_sequence.py",
        "fit_two_inputs.py",
    ],
)
def test_the_fit_of_a_script_has_every_level_of_a_workload(name: str, tmp_path: Path) -> None:
    explanation = explained(name, tmp_path, "--no-changes", "--max-processes", "1", "--max-time", "6m")
    missing = explanation["missing_levels"]  # on a busy machine
    assert all(reason.startswith("there was no time for it") for reason in missing.values()), missing
    measured = [part["lower"] for part in explanation["parts"]]
    assert measured == [loop for loop in LEVELS if loop not in missing]
    assert measured[-1] == "fused"
    assert all(finding["cause"] != "retracing" for finding in explanation["findings"])  # fit traces its own functions


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("loop_function.py", "devbench can replay only Keras' fit, not the work between two updates"),
        ("fit_generator.py", "its data are a generator, which can be read only once"),
    ],
)
def test_a_level_that_does_not_apply_to_a_script_has_the_reason(name: str, reason: str, tmp_path: Path) -> None:
    explanation = explained(name, tmp_path, "--no-changes", "--max-processes", "1", "--max-time", "6m")
    assert set(explanation["missing_levels"]) == set(LEVELS)
    assert all(text.startswith(f"not applicable, because {reason}") for text in explanation["missing_levels"].values())
