"""Every built-in workload on the CPU, as in its article, and all loops, which must compute the same losses."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from background_runs import ONE_PROCESS, SECONDS, Runs, start_runs
from devbench_process import ROOT, run_devbench
from warm_workers import WarmServer

from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair_groups
from bench.model.facts import Epoch
from bench.model.result import Result
from bench.model.spec import LOOPS
from bench.render.terminal import table
from bench.store import files

pytestmark = pytest.mark.timeout(SECONDS)

SMALL_CIFAR = ("cifar", "--data", "sample", "--param", "hidden1=64", "--param", "hidden2=32")
COMMANDS = {
    "tabular": ("tabular", "--case", "small", "--loop", ",".join(LOOPS)),
    "cifar": (*SMALL_CIFAR, "--loop", ",".join(LOOPS)),
    "articles": ("mnist", "matmul", "dense-inference", "model-init", "--data", "sample"),
    "pipelines": ("input-pipeline", "--case", "serial", "--param", "images=640"),
    "operations": ("op-granularity", "--case", "matmul,add-graph", "--param", "operations=200"),
    "large": ("tabular", "--case", "large", "--param", "rows=6400"),
    "mnist": ("mnist", "--data", "sample", "--loop", "fit,step,host-batches,resident,fused"),
    "matmul": ("matmul", "--param", "n=64", "--loop", "step,host-batches,resident,fused"),
    "inference": ("dense-inference", "--loop", "step,host-batches,resident,fused"),
    "sources": ("input-pipeline", "--case", "parallel,model,slept", "--param", "images=648,sleep_ms=0.2"),
    "pipeline-loops": (
        "input-pipeline", "--case", "serial", "--param", "images=648", "--loop", "fit,step,host-batches,resident,fused",
    ),
    "single": ("op-granularity", "--case", "add,matmul-graph", "--param", "operations=200"),
    "chained": (
        "op-granularity", "--case", "add-graph", "--param", "operations=200", "--loop", "host-batches,resident,fused",
    ),
}  # fmt: skip
RESULT_COUNTS = {
    "mnist": 5, "matmul": 4, "inference": 4, "sources": 3, "pipeline-loops": 5, "single": 2, "chained": 3,
}  # fmt: skip
"""Number of results of the runs of all other cases and loops."""
RUN_OF_TITLE = {
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
IN_ALL_LOOPS = pytest.mark.parametrize("name", ["tabular", "cifar"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, warm_server: WarmServer | None) -> Iterator[Runs]:
    def warm(name: str) -> WarmServer | None:
        if warm_server is None or name == "operations":
            return None
        return warm_server if name in RESULT_COUNTS else replace(warm_server, fresh=("as-written",))

    with start_runs(tmp_path_factory.mktemp("builtins"), COMMANDS, warm) as started:
        yield started


def result_as_written(runs: Runs, title: str) -> Result:
    """Return the result of a workload in its default loop."""
    run = runs[RUN_OF_TITLE[title]]
    loop = "step" if title.endswith("-graph") else "as-written"
    (result,) = [result for result in run.results if (result.spec.title, result.spec.loop) == (title, loop)]
    return result


def by_loop(runs: Runs, name: str) -> dict[str, Result]:
    """Return the results by loop, in the order of the command."""
    results = {result.spec.loop: result for result in runs[name].results}
    return {loop: results[loop] for loop in LOOPS}


@pytest.mark.parametrize("title", RUN_OF_TITLE)
def test_every_workload_is_measured_as_written(runs: Runs, title: str) -> None:
    result = result_as_written(runs, title)
    assert (result.status, result.failure) == ("complete", None)
    assert result.summary.step_seconds is not None
    assert result.summary.step_seconds.value > 0
    (sample,) = result.samples
    (series,) = sample.series
    assert len(series.blocks) >= 5
    assert all(block.seconds > 0 and block.steps >= 1 for block in series.blocks)
    assert series.warmup
    assert sample.latency
    assert (sample.facts.steps_run or 0) >= sum(block.steps for block in series.blocks)


@pytest.mark.parametrize("title", RUN_OF_TITLE)
def test_every_cold_start_is_divided_into_phases(runs: Runs, title: str) -> None:
    phases = result_as_written(runs, title).samples[0].phases
    always = {"interpreter", "import", "device_init", "trace", "first_step"}
    functions = {
        "tabular": {"data", "build"},
        "cifar": {"data", "build", "prepare"},
        "mnist": {"data", "build", "prepare"},
    }
    expected = always | functions.get(title.partition("/")[0], set())
    assert expected <= phases.keys()
    assert all(math.isfinite(seconds) and seconds >= 0 for seconds in phases.values())
    assert phases["import"] > 0.1
    assert phases["first_step"] > 0


@pytest.mark.parametrize("title", RUN_OF_TITLE)
def test_every_step_is_verified_to_have_run_on_the_cpu(runs: Runs, title: str) -> None:
    placement = result_as_written(runs, title).placement
    assert placement is not None
    assert (placement.requested_device, placement.verified, placement.misplaced) == ("CPU:0", True, [])
    assert placement.on_device > 0


@pytest.mark.parametrize("title", RUN_OF_TITLE)
def test_all_first_losses_are_finite(runs: Runs, title: str) -> None:
    losses = result_as_written(runs, title).samples[0].first_losses
    assert len(losses) == 5
    assert all(math.isfinite(loss) for loss in losses)


@pytest.mark.parametrize("title", RUN_OF_TITLE)
def test_every_result_describes_its_environment(runs: Runs, title: str) -> None:
    result = result_as_written(runs, title)
    assert result.environment.device is not None
    assert result.environment.framework is not None
    assert result.environment.framework.threads is not None
    assert result.environment.framework.threads.model_dump() == result.spec.threads.model_dump()
    telemetry = result.samples[0].telemetry
    assert telemetry is not None
    assert telemetry.wall_seconds > 0
    assert telemetry.cpu_seconds is not None
    assert telemetry.cpu_seconds > 0
    assert telemetry.peak_rss_bytes is not None
    assert telemetry.peak_rss_bytes > 50e6


def test_the_loop_as_written_records_whether_xla_was_on(runs: Runs) -> None:
    for title in ("cifar", "mnist", "input-pipeline/serial"):
        result = result_as_written(runs, title)
        assert result.spec.xla is None
        assert result.samples[0].facts.jit_compile is False  # TensorFlow sees no accelerator


def test_a_training_with_a_known_length_is_projected(runs: Runs) -> None:
    steps = {"cifar": 15_630, "mnist": 18_750, "tabular/small": 100, "tabular/large": 200, "input-pipeline/serial": 40}
    for title, total in steps.items():
        projection = result_as_written(runs, title).projection
        assert projection is not None
        assert projection.steps == total
        assert projection.total_seconds.value > projection.build_and_fit_seconds.value > 0


def test_the_partial_batch_is_a_phase_of_its_own(runs: Runs) -> None:
    results = by_loop(runs, "cifar")
    for loop in ("as-written", "fit"):
        sample = results[loop].samples[0]
        assert sample.facts.epoch == Epoch(batches=1562, remainder=16)
        assert sample.phases["partial_batch"] > 0


@pytest.mark.parametrize("name", RESULT_COUNTS)
def test_every_case_is_measured_and_verified_in_every_loop_that_it_supports(runs: Runs, name: str) -> None:
    results = runs[name].results
    assert (len(results), runs[name].code) == (RESULT_COUNTS[name], 0), runs[name].text()
    for result in results:
        assert (result.status, result.failure) == ("complete", None), result.spec.label
        assert result.placement is not None, result.spec.label
        assert result.placement.verified, result.spec.label
        assert result.summary.step_seconds is not None, result.spec.label


def test_an_image_that_takes_time_to_load_makes_the_step_wait(runs: Runs) -> None:
    results = {result.spec.case: result for result in runs["sources"].results}
    waits = {case: result.samples[0].phases["input_wait"] for case, result in results.items()}
    assert set(waits) == {"parallel", "model", "slept"}
    step = results["slept"].summary.step_seconds
    assert step is not None
    assert step.value > 32 * 0.0002  # a sleep is never shorter


@IN_ALL_LOOPS
def test_all_loops_are_measured(runs: Runs, name: str) -> None:
    assert {loop: result.status for loop, result in by_loop(runs, name).items()} == dict.fromkeys(LOOPS, "complete")
    assert runs[name].code == 0


@IN_ALL_LOOPS
def test_all_loops_but_as_written_compute_the_same_losses(runs: Runs, name: str) -> None:
    results = by_loop(runs, name)
    losses = results["step"].samples[0].first_losses
    assert len(set(losses)) == 5
    for loop in ("fit", "host-batches", "resident", "fused"):
        assert results[loop].samples[0].first_losses == pytest.approx(losses, rel=2e-3), loop


@IN_ALL_LOOPS
def test_xla_is_off_if_the_spec_says_so(runs: Runs, name: str) -> None:
    for loop in LOOPS[1:]:
        result = by_loop(runs, name)[loop]
        assert result.spec.xla is False
        assert result.samples[0].facts.jit_compile is False


@IN_ALL_LOOPS
def test_the_placement_of_each_loop_is_verified(runs: Runs, name: str) -> None:
    for loop, result in by_loop(runs, name).items():
        assert result.placement is not None, loop
        assert result.placement.verified, loop
        assert result.placement.on_device > 5, loop


@IN_ALL_LOOPS
def test_loops_are_interleaved_block_by_block_in_random_order(runs: Runs, name: str) -> None:
    results = by_loop(runs, name)
    if not all(result.interleaved for result in results.values()):
        assert name == "cifar", "six small programs did not fit into memory"
        return  # six times 2.5 GB may not fit. Then whole processes alternate, and the result says so.
    positions = {
        loop: [block.position for block in result.samples[0].series[0].blocks] for loop, result in results.items()
    }
    rounds = len(positions["step"])
    assert sorted(chain.from_iterable(positions.values())) == list(range(len(LOOPS) * rounds))
    for sequence in positions.values():
        assert [position // len(LOOPS) for position in sequence] == list(range(rounds))
    orders = [{position % len(LOOPS) for position in sequence} for sequence in positions.values()]
    assert any(len(order) > 1 for order in orders)


@IN_ALL_LOOPS
def test_the_latency_pass_runs_in_every_loop_with_single_steps(runs: Runs, name: str) -> None:
    for loop, result in by_loop(runs, name).items():
        latency = result.samples[0].latency
        assert bool(latency) is (loop != "fused"), loop
        assert len(latency) <= 100
        assert (result.summary.step_seconds_p99 is not None) is (loop != "fused")


def test_operations_of_a_step_are_counted_and_computed_by_formula(runs: Runs) -> None:
    for loop, result in by_loop(runs, "cifar").items():
        assert result.samples[0].facts.flops_formula == 2.0 * 32 * (3 * (64 * 32 + 32 * 10) + 2 * 3072 * 64), loop
        assert (result.samples[0].facts.flops_per_step or 0) > 0
        assert result.summary.flops_per_second is not None


def test_the_results_of_a_group_are_shown_side_by_side_in_80_columns(runs: Runs) -> None:
    shown = table.text(Outcome.of(pair_groups(list(by_loop(runs, "tabular").values()))), verbose=True)
    assert max(map(len, shown.splitlines())) <= 80
    assert all(loop in shown for loop in LOOPS)
    assert all(loop in runs["tabular"].out for loop in LOOPS)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("transfer",), "nothing to copy"),
        (("model-init", "--loop", "step"), ""),
        (("matmul", "--dtype", "mixed_bfloat16"), "no Keras layers"),
    ],
)
def test_a_combination_that_makes_no_sense_is_not_applicable(
    tmp_path: Path, arguments: tuple[str, ...], reason: str
) -> None:
    run = run_devbench(tmp_path, "run", *arguments, *ONE_PROCESS)
    assert run.code == 2
    assert "not applicable, because " in run.text()
    assert reason in run.text()
    assert run.results == []


@pytest.mark.once
def test_the_step_computes_the_same_losses_with_tensorflow_2_21_and_2_10(
    runs: Runs, directml_python: Path, tmp_path: Path
) -> None:
    arguments = (*SMALL_CIFAR, "--loop", "step", *ONE_PROCESS, "--output", str(tmp_path))
    command = [str(directml_python), "-m", "bench", "run", *arguments]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=800, check=False
    )
    assert process.returncode == 0, process.stderr
    (old,) = files.results(tmp_path)
    new = by_loop(runs, "cifar")["step"]
    assert (old.environment.tensorflow or "").startswith("2.10.")
    assert (new.environment.tensorflow or "").startswith("2.21.")
    assert old.key == new.key
    assert old.samples[0].first_losses == pytest.approx(new.samples[0].first_losses, rel=1e-3)
