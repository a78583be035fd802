"""The `fit` of a script is explained as that of a workload. Other loops say why they are not."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from devbench_process import run_devbench
from scouting import recognition, scout, servers_of_scripts

from bench.analyse.explain.antipatterns import retraced
from bench.analyse.samples import usable_samples
from bench.config.settings import RunSettings
from bench.model.plan import Group
from bench.model.spec import Loop
from bench.publish.recorder import Recorder
from bench.session.design import Design
from bench.session.process import spawn
from bench.session.session import Session
from bench.session.worker_servers import WorkerServers
from bench.study.plan import plan

PROGRAMS = Path(__file__).parent / "programs"
BRIEF = ("--no-changes", "--max-processes", "1", "--max-time", "6m")
LEVELS: tuple[Loop, ...] = ("fit", "step", "host-batches", "resident", "fused")


def explained(name: str, folder: Path) -> Any:
    """Return the explanation of a script without what-ifs."""
    shutil.copy(PROGRAMS / name, folder)
    run = run_devbench(folder, "explain", name, "--json", *BRIEF)
    assert run.code == 0, run.text()
    return json.loads(run.out)["explanation"]


@pytest.fixture(scope="module")
def servers() -> Iterator[WorkerServers | None]:
    """Return servers that fork the processes of scripts. None if this system has none."""
    with servers_of_scripts(PROGRAMS / "fit_arrays.py") as shared:
        yield shared


@pytest.mark.essential
@pytest.mark.timeout(900)
def test_the_fit_of_a_script_is_explained_by_the_levels_of_a_workload(tmp_path: Path) -> None:
    explanation = explained("fit_arrays.py", tmp_path)
    missing = explanation["missing_levels"]  # on a busy machine
    assert all(reason.startswith("there was no time for it") for reason in missing.values()), missing
    measured = [part["lower"] for part in explanation["parts"]]
    assert measured == [loop for loop in LEVELS if loop not in missing]
    assert measured[-1] == "fused"
    assert all(finding["cause"] != "retracing" for finding in explanation["findings"])  # fit traces its own functions
    results = [json.loads(path.read_text()) for path in (tmp_path / "results").glob("*.json")]
    samples = [sample for result in results if result["spec"]["loop"] == "fused" for sample in result["samples"]]
    assert {sample["forked"] for sample in samples} == {sys.platform == "linux"}


@pytest.mark.once
@pytest.mark.timeout(900)
def test_what_ifs_are_tried_on_the_fit_of_a_script(tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "fit_arrays.py", tmp_path)
    run = run_devbench(tmp_path, "explain", "fit_arrays.py", "--json", "--max-processes", "1", "--max-time", "4m")
    assert run.code == 0, run.text()
    explanation = json.loads(run.out)["explanation"]
    assert explanation["what_if_loop"] == "fit"
    assert explanation["gains"], explanation["caveats"]
    assert all(gain["verdict"] for gain in explanation["gains"])


@pytest.mark.needs("linux")
@pytest.mark.once
@pytest.mark.timeout(900)
def test_a_script_that_sets_a_variable_of_tensorflow_gets_fresh_workers(tmp_path: Path) -> None:
    source = (PROGRAMS / "fit_arrays.py").read_text()
    (tmp_path / "train.py").write_text(f'import os\n\nos.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"\n{source}')
    run = run_devbench(tmp_path, "explain", "train.py", *BRIEF)
    assert run.code == 0, run.text()
    assert not any(sample.forked for result in run.results for sample in result.samples)
    note = "Workers were not forked, because TF_ENABLE_ONEDNN_OPTS changes before TensorFlow is imported."
    assert note in run.results[0].notes


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("fit_dataset.py", marks=pytest.mark.once),
        pytest.param("fit_sequence.py", marks=pytest.mark.once),
        pytest.param("fit_two_inputs.py", marks=pytest.mark.once),
        "fit_generator.py",
        pytest.param("fit_text.py", marks=pytest.mark.once),
    ],
)
def test_each_form_of_fit_computes_the_same_losses_in_every_loop(
    name: str, tmp_path: Path, servers: WorkerServers | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.session.interleave.BLOCKS", 5)
    recognized = recognition(scout(PROGRAMS / name, tmp_path, start=servers.fork if servers else spawn))
    settings = RunSettings(output=tmp_path, max_processes=1, max_time="10m")
    (group,) = plan([PROGRAMS / name], settings)
    (program,) = group.planned
    loops: tuple[Loop, ...] = ("as-written", *LEVELS)
    planned = [replace(program, spec=program.spec.model_copy(update={"loop": loop})) for loop in loops]
    design = Design(cold_starts="none", separate_starts=0, inspect=True, full=False)
    session = Session(Group("script", tuple(planned)), settings, design, Recorder(settings), servers)
    for result in session.results:
        result.recognition = recognized
    for result in session.run():
        assert result.failure is None, result.failure
        assert result.samples[0].series[0].blocks, result.spec.loop
        assert not retraced(usable_samples(result)), result.spec.loop  # fit traces its own functions


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
    explanation = explained(name, tmp_path)
    assert explanation["missing_levels"] == dict.fromkeys(LEVELS, f"not applicable, because {reason}")


@pytest.mark.timeout(900)
def test_the_function_of_a_custom_loop_runs_in_the_loops_of_devbench(tmp_path: Path) -> None:
    explanation = explained("loop_function.py", tmp_path)
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
    explanation = explained("loop_wasteful.py", tmp_path)
    lines = {part["kind"]: part["lines"] for part in explanation["own_step"]}
    shares = {part["kind"]: part["share"] for part in explanation["own_step"]}
    assert sum(shares.values()) == pytest.approx(1.0, abs=0.05)
    assert shares["input"] > 0.2
    assert "line 36" in lines["input"]
    assert shares["python"] > 0.1
    assert "29" in lines["python"]
    assert "loop_wasteful.py line 37" in lines["building"]
    assert "38" in lines["graph"]
    findings = {finding["cause"]: finding for finding in explanation["findings"]}
    assert "(loop_wasteful.py line 36)" in findings["slow input"]["sentence"]
    assert "(loop_wasteful.py line 38)" in findings["per-step synchronization"]["sentence"]
    assert "Python between calls of TensorFlow" in findings


@pytest.mark.once
@pytest.mark.timeout(600)
def test_a_tape_is_made_not_persistent_only_where_there_is_a_persistent_one(tmp_path: Path) -> None:
    for name in ("loop_persistent_tape.py", "loop_eager.py"):
        shutil.copy(PROGRAMS / name, tmp_path)
    change = ("--change", "single-use-tapes", "--max-processes", "1")
    run = run_devbench(tmp_path, "run", "loop_persistent_tape.py", *change)
    assert run.code == 0, run.text()
    refused = run_devbench(tmp_path, "run", "loop_eager.py", *change)
    assert refused.code != 0
    assert "--change single-use-tapes does not apply to this program and loop" in refused.text()


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
