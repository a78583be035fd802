"""The GPU acceptance judges what devbench says, on documents of the kind that a GPU machine gives."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest
from synthetic import interval, result

from bench.model.failure import Failure
from bench.model.placement import Placement
from bench.model.result import Result, ResultWarning, Summary
from bench.model.telemetry import Telemetry
from benchmarks import gpu_acceptance
from benchmarks import gpu_conditions as conditions
from benchmarks.gpu_conditions import Judge, Output

ROOT = Path(__file__).resolve().parents[2]
CHECKS = {check.name: check for check in gpu_acceptance.CHECKS}


def on(backend: str, **changes: Any) -> Result:
    """Return a result of a GPU machine in which everything holds."""
    telemetry = Telemetry(wall_seconds=9.0, gpu_memory_bytes=10**9, gpu_sm_clock_hz=1.5e9, gpu_power_watts=60.0)
    measured = result(backend=backend, warnings=[], **changes)
    measured.placement = Placement(requested_device="GPU:0", method="partition graphs", verified=True, on_device=9)
    measured.summary.cold_start_seconds = interval(9.0)
    measured.samples[0].telemetry = telemetry
    return measured


def document(*results: Result, verdict: str = "faster") -> dict[str, Any]:
    """Return the document that `devbench run --json` prints."""
    comparisons = [{"verdict": verdict}] if len(results) == 2 else []
    return {"results": [json.loads(one.model_dump_json()) for one in results], "comparisons": comparisons}


def not_held(judge: Judge, output: dict[str, Any], code: int | None = 0) -> list[str]:
    """Return the conditions that do not hold."""
    return [condition.text for condition in judge(Output(code, output)) if not condition.held]


def pair(**of_gpu: Any) -> dict[str, Any]:
    return document(on("cpu"), on("cuda", **of_gpu))


def test_two_devices_that_were_measured_properly_pass() -> None:
    assert not_held(conditions.gpu_is_faster, pair()) == []
    assert not_held(conditions.compared, document(on("cpu"), on("cuda"), verdict="slower")) == []


@pytest.mark.parametrize(
    ("changes", "condition"),
    [
        ({"status": "failed", "failure": Failure(kind="error", message="planted")}, "cifar on cuda: complete"),
        ({"warnings": [ResultWarning(key="gpu-busy", message="busy")]}, "cifar on cuda: undisturbed"),
        ({"warnings": [ResultWarning(key="misplaced", message="moved")]}, "cifar on cuda: undisturbed"),
    ],
)
def test_a_result_of_the_gpu_that_is_not_in_order_fails(changes: dict[str, Any], condition: str) -> None:
    gpu = on("cuda").model_copy(update=changes)
    assert not_held(conditions.compared, document(on("cpu"), gpu)) == [condition]


def test_operations_on_another_device_and_a_gpu_that_was_not_read_fail() -> None:
    gpu = on("cuda")
    assert gpu.placement is not None
    gpu.placement.verified = False
    gpu.samples[0].telemetry = Telemetry(wall_seconds=9.0)
    failed = not_held(conditions.compared, document(on("cpu"), gpu))
    assert failed[0] == "cifar on cuda: placement is verified"
    assert len(failed) == 4


def test_a_slower_gpu_or_an_open_verdict_fails() -> None:
    assert not_held(conditions.gpu_is_faster, document(on("cpu"), on("cuda"), verdict="slower")) == [
        "the GPU is faster"
    ]
    assert "the verdict is settled" in not_held(conditions.compared, document(on("cpu"), on("cuda"), verdict="unclear"))


def test_a_projection_that_is_off_fails() -> None:
    good = on("cuda")
    assert good.projection is not None
    assert good.projection.full_training is not None
    good.projection.full_training.build_and_fit_seconds = good.projection.build_and_fit_seconds.value * 1.02
    assert not_held(conditions.projected, document(good)) == []
    good.projection.full_training.build_and_fit_seconds *= 0.8
    assert not_held(conditions.projected, document(good)) == ["the projection is within 5%"]
    good.projection.full_training = None
    assert not_held(conditions.projected, document(good)) == ["the whole training was measured"]


def test_peaks_need_both_products_and_a_plausible_bandwidth() -> None:
    def peaks(bandwidth: float, *names: str) -> list[str]:
        series = {name: interval(0.01) for name in (*names, "triad/memory")}
        measured = on("cuda")
        measured.summary = Summary(series=series, bytes_per_second={"triad/memory": bandwidth})
        return not_held(conditions.peaks, document(measured))

    products = ("matmul/float32", "matmul/float16")
    assert peaks(3e11, *products) == []
    assert peaks(3e9, *products) == ["the memory's bandwidth is plausible"]
    assert len(peaks(3e11, "matmul/float32")) == 1


def test_copies_must_reach_a_speed_in_both_directions() -> None:
    measured = on("cuda")
    measured.summary = Summary(bytes_per_second={"h2d/4": 1e6, "h2d/1024": 6e9, "d2h/1024": 5e8})
    assert not_held(conditions.copied, document(measured)) == ["d2h reaches 1 GB/s"]


def test_a_lack_of_memory_must_be_recognized_as_one() -> None:
    def failed(kind: Any) -> dict[str, Any]:
        return document(on("cuda", status="failed", failure=Failure(kind=kind, message="planted")))

    assert not_held(conditions.out_of_memory, failed("memory"), code=1) == []
    assert not_held(conditions.out_of_memory, failed("crashed"), code=1) == ["the failure is of the kind memory"]
    assert not_held(conditions.out_of_memory, document(on("cuda"))) != []


def explanation(device_share: float | None, rest: float = 0.4) -> dict[str, Any]:
    parts = [{"share": {"value": 0.5}}, {"share": {"value": 0.1}}]
    return {
        "explanation": {
            "parts": parts, "rest_share": {"value": rest}, "profile": {"device_share": device_share},
        }
    }  # fmt: skip


def test_an_explanation_adds_up_and_its_trace_shows_the_gpu() -> None:
    assert not_held(conditions.explained, explanation(0.8)) == []
    assert not_held(conditions.explained, explanation(None)) == ["the trace holds the device's kernels"]
    assert not_held(conditions.explained, explanation(0.8, 0.3)) == ["the parts add up to the step"]
    assert not_held(conditions.explained, {}, code=1) == ["the exit code is 0", "there is an explanation"]


def test_the_device_of_a_script_is_a_difference_only_where_the_run_asked_for_another() -> None:
    named = ResultWarning(key="script-settings", message="the script sets by itself: tf.device('/GPU:0') in line 9")
    cpu = on("cpu").model_copy(update={"warnings": [named]})
    assert not_held(conditions.unchanged_script, document(cpu, on("cuda"))) == []
    gpu = on("cuda").model_copy(update={"warnings": [named]})
    assert not_held(conditions.unchanged_script, document(on("cpu"), gpu)) == [
        "the script's device is a difference on cpu",
        "the script's device is not a difference on cuda",
    ]


def test_the_planted_slow_input_of_the_script_must_come_first() -> None:
    def answer(*names: str) -> dict[str, Any]:
        return {"explanation": {"answer": [{"name": name} for name in names]}}

    assert not_held(conditions.explained_input, answer("slow input", "partial last batch")) == []
    assert not_held(conditions.explained_input, answer("float64", "slow input")) == ["slow input comes first"]
    assert not_held(conditions.explained_input, {}) == ["slow input comes first"]


def test_a_sweep_measures_every_point_of_both_curves() -> None:
    def sweep(*steps: dict[str, Any] | None, incomplete: str | None = None) -> dict[str, Any]:
        points = [{"step_seconds": step, "failure": None if step else "planted"} for step in steps]
        return {"sweep": {"curves": [{"points": points}, {"points": points}], "incomplete_reason": incomplete}}

    assert not_held(conditions.swept, sweep({"value": 1.0})) == []
    assert not_held(conditions.swept, sweep({"value": 1.0}, None)) == ["every point was measured"]
    stopped = sweep({"value": 1.0}, incomplete="the time limit was reached")  # other points are not in it
    assert not_held(conditions.swept, stopped) == ["every point was measured"]


def test_a_failed_check_of_doctor_and_times_that_do_not_repeat_fail() -> None:
    checks = {"cuda": [{"name": "GPU", "status": "FAIL", "detail": "none"}]}
    assert not_held(conditions.doctor, checks, code=3) == ["the exit code is 0", "no check fails"]
    times = {"jit_compile=False": {"natural": [100.0, 130.0], "scope": [90.0, 90.0]}}
    assert not_held(conditions.device_scope, times) == ["jit_compile=False: natural times agree within 10%"]


def test_a_start_that_compiles_again_fails() -> None:
    slow = on("cuda")
    slow.summary.cold_start_seconds = interval(300.0)
    assert not_held(conditions.started_warm, document(slow)) == ["a start takes at most 60 s"]


@pytest.mark.parametrize("name", CHECKS)
def test_a_command_that_printed_nothing_or_ran_out_of_time_fails(name: str, tmp_path: Path) -> None:
    (tmp_path / "output.json").write_text("", encoding="utf-8")
    (tmp_path / "exit.json").write_text('{"code": null, "cpu": false}', encoding="utf-8")
    assert not all(condition.held for condition in gpu_acceptance.judge(CHECKS[name], tmp_path))


def test_recorded_outputs_are_judged_again_reported_and_packed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, output in {"cifar": pair(), "mnist": document(on("cpu"))}.items():
        folder = tmp_path / "out" / name
        folder.mkdir(parents=True)
        (folder / "output.json").write_text(json.dumps(output), encoding="utf-8")
        (folder / "exit.json").write_text('{"code": 0, "cpu": false}', encoding="utf-8")
    options = ["--judge", "--output", str(tmp_path / "out"), "--only"]
    assert gpu_acceptance.main([*options, "cifar"]) == 0
    assert gpu_acceptance.main([*options, "cifar,mnist,peaks"]) == 1
    text = capsys.readouterr().out
    assert "NOT HELD: there is one comparison (0)" in text
    assert "NOT HELD: it ran" in text
    assert "1 of 3 checks passed" in text
    with tarfile.open(tmp_path / "out.tar.gz") as archive:
        assert {"out/report.txt", "out/cifar/output.json", "out/mnist/exit.json"} <= set(archive.getnames())


def test_a_command_is_run_and_its_output_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stale = tmp_path / "out" / "doctor" / "old.json"
    stale.parent.mkdir(parents=True)
    stale.touch()
    gpu_acceptance.main(["--cpu", "--only", "doctor", "--output", str(tmp_path / "out")])
    assert not stale.exists()
    assert {"machine", "cpu"} <= json.loads((stale.parent / "output.json").read_text(encoding="utf-8")).keys()
    assert "the exit code is 0" in capsys.readouterr().out


def test_the_commands_are_at_most_as_long_as_the_whole() -> None:
    seconds = sum(check.seconds or gpu_acceptance.GRACE_SECONDS for check in gpu_acceptance.CHECKS)
    assert seconds <= gpu_acceptance.TOTAL_SECONDS


def test_the_page_lists_every_command_in_the_same_order() -> None:
    page = (ROOT / "docs" / "gpu-acceptance.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([\w-]+)` \| `([^`]+)` \|", page, re.MULTILINE)
    words = {"devices": "cpu,cuda", "gpu": "cuda", "n": 8192, "root": "ROOT"}
    commands = [(check.name, check.command.format(**words)) for check in gpu_acceptance.CHECKS]
    assert listed == [
        (
            name,
            command.replace("-m bench ", "devbench ")
            .replace("ROOT/", "")
            .replace("-m benchmarks", "python -m benchmarks"),
        )
        for name, command in commands
    ]


def test_a_name_that_is_no_check_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        gpu_acceptance.main(["--only", "cifr"])
    assert "there is no check 'cifr'" in capsys.readouterr().err
