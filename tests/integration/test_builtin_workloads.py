"""Every built-in workload, measured on the CPU as its article has it, and all loops, which must compute the same."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from background_runs import ONCE, SECONDS, Runs, under_way
from devbench_process import ROOT, devbench

from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair_groups
from bench.model.facts import Epoch
from bench.model.result import Result
from bench.model.spec import LOOPS
from bench.render.terminal import table
from bench.store import files

pytestmark = pytest.mark.timeout(SECONDS)

SMALL_CIFAR = ("cifar", "--data", "sample", "--param", "hidden1=64", "--param", "hidden2=32")
ASKED = {
    "tabular": ("tabular", "--case", "small", "--loop", ",".join(LOOPS)),
    "cifar": (*SMALL_CIFAR, "--loop", ",".join(LOOPS)),
    "articles": ("mnist", "matmul", "dense-inference", "model-init", "--data", "sample"),
    "pipelines": ("input-pipeline", "--case", "serial", "--param", "images=640"),
    "operations": ("op-granularity", "--case", "matmul,add-graph", "--param", "operations=200"),
    "large": ("tabular", "--case", "large", "--param", "rows=6400"),
    "mnist": ("mnist", "--data", "sample", "--loop", "fit,step,host-batches,resident,fused"),
    "matmul": ("matmul", "--param", "n=64", "--loop", "step,host-batches,resident,fused"),
    "inference": ("dense-inference", "--loop", "step,host-batches,resident,fused"),
    "places": ("input-pipeline", "--case", "parallel,model,slept", "--param", "images=648,sleep_ms=0.2"),
    "driven": (
        "input-pipeline", "--case", "serial", "--param", "images=648", "--loop", "fit,step,host-batches,resident,fused",
    ),
    "single": ("op-granularity", "--case", "add,matmul-graph", "--param", "operations=200"),
    "chained": (
        "op-granularity", "--case", "add-graph", "--param", "operations=200", "--loop", "host-batches,resident,fused",
    ),
}  # fmt: skip
EVERY = {
    "mnist": 5, "matmul": 4, "inference": 4, "places": 3, "driven": 5, "single": 2, "chained": 3,
}  # fmt: skip
"""Runs of all other cases and loops."""
WRITTEN = {
    "tabular/small": "tabular",
    "cifar": "cifar",
    "mnist": "articles",
    "matmul": "articles",
    "dense-inference": "articles",
    "model-init/build": "articles",
    "model-init/clone": "articles",
    "input-pipeline/serial": "pipelines",
    "op-granularity/matmul": "operations",
    "op-granularity/add-graph": "operations",
    "tabular/large": "large",
}
LOOPED = pytest.mark.parametrize("name", ["tabular", "cifar"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    with under_way(tmp_path_factory.mktemp("builtins"), ASKED) as found:
        yield found


def written(runs: Runs, title: str) -> Result:
    """Return the result of a workload in its default loop."""
    ended = runs[WRITTEN[title]]
    own_loop = "step" if title.endswith("-graph") else "as-written"
    (found,) = [each for each in ended.every if (each.spec.title, each.spec.loop) == (title, own_loop)]
    return found


def by_loop(runs: Runs, name: str) -> dict[str, Result]:
    """Return loop: result, in the order of the command."""
    found = {each.spec.loop: each for each in runs[name].every}
    return {loop: found[loop] for loop in LOOPS}


@pytest.mark.parametrize("title", WRITTEN)
def test_every_workload_is_measured_as_written(runs: Runs, title: str) -> None:
    found = written(runs, title)
    assert (found.status, found.failure) == ("complete", None)
    assert found.summary.step_seconds is not None
    assert found.summary.step_seconds.value > 0
    (sample,) = found.samples
    (series,) = sample.series
    assert len(series.blocks) >= 5
    assert all(block.seconds > 0 and block.steps >= 1 for block in series.blocks)
    assert series.warmup
    assert sample.latency
    assert (sample.facts.steps_run or 0) >= sum(block.steps for block in series.blocks)


@pytest.mark.parametrize("title", WRITTEN)
def test_every_cold_start_is_divided_into_phases(runs: Runs, title: str) -> None:
    phases = written(runs, title).samples[0].phases
    always = {"interpreter", "import", "device_init", "trace", "first_step"}
    offered = {
        "tabular": {"data", "build"},
        "cifar": {"data", "build", "prepare"},
        "mnist": {"data", "build", "prepare"},
    }
    wanted = always | offered.get(title.partition("/")[0], set())
    assert wanted <= phases.keys()
    assert all(math.isfinite(seconds) and seconds >= 0 for seconds in phases.values())
    assert phases["import"] > 0.1
    assert phases["first_step"] > 0


@pytest.mark.parametrize("title", WRITTEN)
def test_every_step_is_verified_to_have_run_on_the_cpu(runs: Runs, title: str) -> None:
    placement = written(runs, title).placement
    assert placement is not None
    assert (placement.requested_device, placement.verified, placement.misplaced) == ("CPU:0", True, [])
    assert placement.on_device > 0


@pytest.mark.parametrize("title", WRITTEN)
def test_all_first_losses_are_finite(runs: Runs, title: str) -> None:
    answer = written(runs, title).samples[0].first_losses
    assert len(answer) == 5
    assert all(math.isfinite(each) for each in answer)


@pytest.mark.parametrize("title", WRITTEN)
def test_every_result_describes_its_environment(runs: Runs, title: str) -> None:
    found = written(runs, title)
    assert found.environment.device is not None
    assert found.environment.framework is not None
    assert found.environment.framework.threads is not None
    assert found.environment.framework.threads.model_dump() == found.spec.threads.model_dump()
    telemetry = found.samples[0].telemetry
    assert telemetry is not None
    assert telemetry.wall_seconds > 0
    assert telemetry.cpu_seconds is not None
    assert telemetry.cpu_seconds > 0
    assert telemetry.peak_rss_bytes is not None
    assert telemetry.peak_rss_bytes > 50e6


def test_the_loop_as_written_records_whether_xla_was_on(runs: Runs) -> None:
    for title in ("cifar", "mnist", "input-pipeline/serial"):
        found = written(runs, title)
        assert found.spec.xla is None
        assert found.samples[0].facts.jit_compile is False  # no accelerator is in sight


def test_a_training_with_a_known_length_is_projected(runs: Runs) -> None:
    steps = {"cifar": 15_630, "mnist": 18_750, "tabular/small": 100, "tabular/large": 200, "input-pipeline/serial": 40}
    for title, total in steps.items():
        projection = written(runs, title).projection
        assert projection is not None
        assert projection.steps == total
        assert projection.total_seconds.value > projection.build_and_fit_seconds.value > 0


def test_the_partial_batch_is_a_phase_of_its_own(runs: Runs) -> None:
    found = by_loop(runs, "cifar")
    for loop in ("as-written", "fit"):
        sample = found[loop].samples[0]
        assert sample.facts.epoch == Epoch(batches=1562, remainder=16)
        assert sample.phases["partial_batch"] > 0


@pytest.mark.parametrize("name", EVERY)
def test_every_case_is_measured_and_verified_in_every_loop_that_it_supports(runs: Runs, name: str) -> None:
    found = runs[name].every
    assert (len(found), runs[name].code) == (EVERY[name], 0), runs[name].said()
    for each in found:
        assert (each.status, each.failure) == ("complete", None), each.spec.label
        assert each.placement is not None, each.spec.label
        assert each.placement.verified, each.spec.label
        assert each.summary.step_seconds is not None, each.spec.label


def test_an_image_that_takes_time_to_load_makes_the_step_wait(runs: Runs) -> None:
    found = {each.spec.case: each for each in runs["places"].every}
    waits = {case: each.samples[0].phases["input_wait"] for case, each in found.items()}
    assert set(waits) == {"parallel", "model", "slept"}
    step = found["slept"].summary.step_seconds
    assert step is not None
    assert step.value > 32 * 0.0002  # sleeps can't be shorter


@LOOPED
def test_all_loops_are_measured(runs: Runs, name: str) -> None:
    assert {loop: each.status for loop, each in by_loop(runs, name).items()} == dict.fromkeys(LOOPS, "complete")
    assert runs[name].code == 0


@LOOPED
def test_all_loops_but_as_written_compute_the_same(runs: Runs, name: str) -> None:
    found = by_loop(runs, name)
    base = found["step"].samples[0].first_losses
    assert len(set(base)) == 5
    for loop in ("fit", "host-batches", "resident", "fused"):
        assert found[loop].samples[0].first_losses == pytest.approx(base, rel=2e-3), loop


@LOOPED
def test_xla_is_off_if_the_spec_says_so(runs: Runs, name: str) -> None:
    for loop in LOOPS[1:]:
        found = by_loop(runs, name)[loop]
        assert found.spec.xla is False
        assert found.samples[0].facts.jit_compile is False


@LOOPED
def test_the_placement_of_each_loop_is_verified(runs: Runs, name: str) -> None:
    for loop, each in by_loop(runs, name).items():
        assert each.placement is not None, loop
        assert each.placement.verified, loop
        assert each.placement.on_device > 5, loop


@LOOPED
def test_loops_are_interleaved_block_by_block_in_random_order(runs: Runs, name: str) -> None:
    found = by_loop(runs, name)
    if not all(each.interleaved for each in found.values()):
        assert name == "cifar", "six small programs did not fit into memory"
        return  # six times 2.5 GB may not fit: then whole processes take turns, and the result says so
    turns = {loop: [block.position for block in each.samples[0].series[0].blocks] for loop, each in found.items()}
    rounds = len(turns["step"])
    assert sorted(turn for each in turns.values() for turn in each) == list(range(len(LOOPS) * rounds))
    for each in turns.values():
        assert [turn // len(LOOPS) for turn in each] == list(range(rounds))
    places = {loop: [turn % len(LOOPS) for turn in each] for loop, each in turns.items()}
    assert any(len(set(each)) > 1 for each in places.values())


@LOOPED
def test_the_latency_pass_runs_in_every_loop_with_single_steps(runs: Runs, name: str) -> None:
    for loop, each in by_loop(runs, name).items():
        latency = each.samples[0].latency
        assert bool(latency) is (loop != "fused"), loop
        assert len(latency) <= 100
        assert (each.summary.step_seconds_p99 is not None) is (loop != "fused")


def test_operations_of_a_step_are_counted_and_computed_by_formula(runs: Runs) -> None:
    for loop, each in by_loop(runs, "cifar").items():
        assert each.samples[0].facts.flops_formula == 2.0 * 32 * (3 * (64 * 32 + 32 * 10) + 2 * 3072 * 64), loop
        assert (each.samples[0].facts.flops_per_step or 0) > 0
        assert each.summary.flops_per_second is not None


def test_the_results_of_a_group_are_shown_side_by_side_in_80_columns(runs: Runs) -> None:
    shown = table.text(Outcome.of(pair_groups(list(by_loop(runs, "tabular").values()))), verbose=True)
    assert max(map(len, shown.splitlines())) <= 80
    assert all(loop in shown for loop in LOOPS)
    assert all(loop in runs["tabular"].out for loop in LOOPS)


@pytest.mark.parametrize(
    ("words", "because"),
    [
        (("transfer",), "nothing to copy"),
        (("model-init", "--loop", "step"), ""),
        (("matmul", "--dtype", "mixed_bfloat16"), "no Keras layers"),
    ],
)
def test_a_combination_that_makes_no_sense_is_not_applicable(
    tmp_path: Path, words: tuple[str, ...], because: str
) -> None:
    ended = devbench(tmp_path, "run", *words, *ONCE)
    assert ended.code == 2
    assert "not applicable, because " in ended.said()
    assert because in ended.said()
    assert ended.every == []


@pytest.mark.once
def test_the_step_computes_the_same_losses_with_tensorflow_2_21_and_2_10(
    runs: Runs, directml_python: Path, tmp_path: Path
) -> None:
    words = (*SMALL_CIFAR, "--loop", "step", *ONCE, "--output", str(tmp_path))
    there = [str(directml_python), "-m", "bench", "run", *words]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(there, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr
    (old,) = files.results(tmp_path)
    new = by_loop(runs, "cifar")["step"]
    assert (old.environment.tensorflow or "").startswith("2.10.")
    assert (new.environment.tensorflow or "").startswith("2.21.")
    assert old.key == new.key
    assert old.samples[0].first_losses == pytest.approx(new.samples[0].first_losses, rel=1e-3)
