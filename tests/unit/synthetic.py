"""Synthetic results with every part that the outputs show."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from bench.analyse import stats
from bench.analyse.explain.gains import gains
from bench.analyse.explain.ladder import ladder
from bench.model.explanation import Explanation, Fastest, Finding, ProgramChange, WallTimePart
from bench.model.facts import Facts
from bench.model.failure import Failure
from bench.model.interval import Interval
from bench.model.placement import Operation, Placement
from bench.model.profile import OperationTime, Profile
from bench.model.result import Projection, Result, ResultWarning, Stop, Summary, SweepMembership
from bench.model.roofline import Roofline
from bench.model.sample import Block, FullTraining, ProcessSample, Series
from bench.model.spec import Data, Spec, Threads
from bench.store import files
from bench.whatif import WhatIf

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


def interval(value: float, share: float = 0.02, n: int = 7) -> Interval:
    return Interval(value=value, low=value * (1 - share), high=value * (1 + share), n=n)


def spec(**changes: Any) -> Spec:
    fields: dict[str, Any] = {
        "workload": "cifar",
        "backend": "cpu",
        "loop": "as-written",
        "params": {"batch": 32, "epochs": 10},
        "threads": Threads(intra=2, inter=2),
        "data": Data(kind="sample", name="cifar10"),
    }
    return Spec(**{**fields, **changes})


def result(name: str = "20260102T030405000-00000001", group: str = "g", **changes: Any) -> Result:
    """Return a complete result with the id `name`. Fields of a spec change its spec, other fields the result."""
    result_spec = spec(**{name: changes.pop(name) for name in list(changes) if name in Spec.model_fields})
    phases = {"import": interval(3.2), "device_init": interval(0.035), "first_step": interval(0.21)}
    block = Block(seconds=0.09, steps=5, cpu_seconds=0.17, position=0)
    fields: dict[str, Any] = {
        "id": name,
        "status": "complete",
        "created": MOMENT,
        "devbench": "0.1.0",
        "spec": result_spec,
        "key": result_spec.key,
        "group": group,
        "samples": [
            ProcessSample(
                trial=1,
                pid=4711,
                started=MOMENT,
                series=[Series(blocks=[block])],
                first_losses=[2.3, 2.2],
                facts=Facts(jit_compile=False),
            )
        ],
        "summary": Summary(
            step_seconds=interval(0.0184),
            step_seconds_mean=interval(0.0187),
            step_seconds_p50=0.0182,
            step_seconds_p90=0.0196,
            step_seconds_p99=0.0251,
            examples_per_second=1740,
            flops_per_step=2.4e9,
            flops_per_second=129e9,
            phases=phases,
            xla=False,
        ),
        "projection": Projection(
            steps=15630,
            build_and_fit_seconds=interval(288),
            total_seconds=interval(295),
            full_training=FullTraining(
                build_and_fit_seconds=291, total_seconds=299, steps=15630, metrics={"loss": 1.2345}
            ),
        ),
        "placement": Placement(requested_device="CPU:0", method="partition graphs", verified=True, on_device=37),
        "stop": Stop(reason="target", trials=7, needed_trials=7, error=0.021, target=0.03),
    }
    return Result(**{**fields, **changes})


def misplaced() -> Placement:
    operations = [
        Operation(name="x/MatMul", op="MatMul", device="CPU:1"),
        Operation(name="y", op="Add", device="CPU:1"),
    ]
    return Placement(
        requested_device="CPU:0", method="partition graphs", verified=False, on_device=35, misplaced=operations
    )


def killed() -> Failure:
    return Failure(
        kind="killed",
        message="the worker was killed by SIGKILL, as by the system when memory ends",
        hint="Give it more memory, or try a smaller batch.",
        signal="SIGKILL",
        phase="first_step",
        last_lines=["\x1b[31mabout to allocate\x1b[0m\r", "x" * 300],
    )


def busy_machine() -> list[ResultWarning]:
    return [ResultWarning(key="load", message="the machine was busy: load 1.7 on 2 CPUs", fix="Close what else runs.")]


def measured(name: str, steps: Sequence[float], **changes: Any) -> Result:
    """Return a result with blocks: one process per trial.

    Args:
        name: The id. If it is a number, the result was created so many seconds after `MOMENT`.
        steps: The typical step time of each trial in seconds.
        changes: Fields, as for `result`.
    """
    shares = (0.97, 0.99, 1.0, 1.0, 1.01, 1.06)
    phases = {"interpreter": 0.3, "import": 3.2, "build": 0.4, "trace": 0.5, "first_step": 0.2}
    samples = [
        ProcessSample(
            trial=trial,
            pid=4000 + trial,
            started=MOMENT,
            phases=phases,
            series=[
                Series(
                    warmup=[Block(seconds=0.12, steps=5, cpu_seconds=0.1)],
                    blocks=[
                        Block(seconds=5 * step * share, steps=5, cpu_seconds=0.1, position=turn)
                        for turn, share in enumerate(shares)
                    ],
                )
            ],
            latency=[step * 1.1, step * 1.2],
        )
        for trial, step in enumerate(steps, 1)
    ]
    typical = stats.interval(steps) if steps else None
    summary = Summary(
        step_seconds=typical,
        step_seconds_mean=typical,
        phases={
            phase: Interval(value=value, n=len(steps)) for phase, value in {**phases, "warm_up": 0.12}.items() if steps
        },
        cold_start_seconds=stats.arithmetic([sum(phases.values())] * len(steps)) if steps else None,
        warmed_up_seconds=stats.arithmetic([sum(phases.values()) + 0.12] * len(steps)) if steps else None,
    )
    created = MOMENT + timedelta(seconds=int(name)) if name.isdigit() else MOMENT
    fields = {"samples": samples, "summary": summary, "projection": None, "created": created}
    return result(name, **{**fields, **changes})


def folder(path: Path, *results: Result) -> Path:
    """Write results into a folder as a run does, and return the folder."""
    path.mkdir(exist_ok=True)
    for document in results:
        files.write(document, path)
    return path


def ladder_results(parent: str = "why") -> list[Result]:
    """Return the levels of an explanation, a what-if, and the machine's peaks."""
    steps = {"as-written": 0.010, "step": 0.006, "host-batches": 0.004, "resident": 0.0041, "fused": 0.002}
    trial_factors = (1.0, 1.6, 0.9, 1.3, 1.1)
    noise = (1.0, 1.004, 0.997, 1.002, 0.999)
    membership: dict[str, Any] = {"purpose": "level", "parent": parent, "group": "levels"}
    levels = [
        measured(
            str(60 + n),
            [step * factor * noise[(n + k) % 5] for k, factor in enumerate(trial_factors)],
            loop=loop,
            **membership,
        )
        for n, (loop, step) in enumerate(steps.items())
    ]
    membership = {"purpose": "what-if", "parent": parent, "group": "what-ifs"}
    base = measured("70", [0.01 * factor for factor in trial_factors], **membership)
    faster = measured(
        "71",
        [0.005 * factor * share for factor, share in zip(trial_factors, noise, strict=True)],
        xla=True,
        **membership,
    )
    peaks = measured("72", [], workload="peaks", purpose="peaks", parent=parent, group="peaks", summary=Summary())
    return [*levels, base, faster, peaks]


def explanation(results: Sequence[Result]) -> Explanation:
    """Return the explanation of these results, with everything that an explanation can contain."""
    parts, rest_share, trials = ladder(results[:5])
    all_gains = gains(results[5], {WhatIf("with XLA", "--xla on", "missing fusion"): results[6]}, 0.02)
    return Explanation(
        id=results[0].parent or "", label="cifar on cpu, as-written", step_seconds=0.01, trials=trials, parts=parts,
        wall_time=[
            WallTimePart(name="steps", seconds=60.0, share=0.75),
            WallTimePart(name="TextCheckpoint", seconds=20.0, share=0.25),
        ],
        rest_seconds=0.002, rest_share=rest_share, lowest_level="fused", gains=all_gains, combined=all_gains[0],
        findings=[
            Finding(cause="slow input", sentence="Input takes 20% of the step. Slowest stage: <map> (mine.py line 12).",
                    evidence="time per batch by stage: map 12 ms", fix="Give map num_parallel_calls."),
        ],
        roofline=Roofline(
            flops=2.4e9, flops_method="counted", bytes=5e7, intensity=48, flops_per_second=60e9, dtype="float32",
            compute_peak=110e9, memory_peak=48 * 12e9, cache_peak=48 * 90e9, bound="compute", share=0.55,
            exceeds_memory_peak=False,
        ),
        profile=profile(),
        disagreements=[
            "In the trace operations run for 30% of the step, but the lowest level of the ladder takes 20%."
        ],
        what_if_loop="as-written",
        fastest=Fastest(
            words="with XLA", unit="step", speedup=interval(2.0), command="devbench run cifar --xla on",
        ),
        missing_levels={"fit": "the program brings its own step"},
        answer=[
            ProgramChange(
                kind="finding", name="slow input", cause="Slow input: <map> (mine.py line 12).", share=0.2,
                gains=all_gains, fix="Call cache().",
            ),
        ],
    )  # fmt: skip


def profile(**changes: Any) -> Profile:
    """Return the profile of a program that mostly works on the host."""
    fields: dict[str, Any] = {
        "folder": "/traces/cifar", "steps": 50, "step_seconds": 0.011, "device_share": 0.3, "input_share": 0.2,
        "host_share": 0.4, "idle_share": 0.1,
        "operations": [
            OperationTime(name="MatMul", seconds=0.002, calls=6), OperationTime(name="Relu", seconds=0.001, calls=2),
        ],
    }  # fmt: skip
    return Profile(**{**fields, **changes})


def sweep_results(parent: str = "batches") -> list[Result]:
    """Return a sweep over the batch on two backends. The second overtakes the first a little above 16."""
    results: list[Result] = []
    for n, batch in enumerate((1, 4, 16, 64, 256)):
        for backend, step in (("cpu", 0.001 + 0.0002 * batch), ("cuda", 0.004 + 0.00002 * batch)):
            results.append(
                measured(
                    str(100 + len(results)), [step, 1.01 * step, 0.99 * step], params={"batch": batch}, backend=backend,
                    workload="dense-inference", purpose="sweep", parent=parent, group=f"point {n}",
                    sweep=SweepMembership(axes=["batch"]),
                )
            )  # fmt: skip
    return results
