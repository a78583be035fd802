"""What must hold for the output of each command of the GPU acceptance (`benchmarks/gpu_acceptance.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

LARGEST_PROJECTION_ERROR = 0.05
LARGEST_SPREAD = 0.1
SLOWEST_COPY = 1e9
SLOWEST_MEMORY, FASTEST_MEMORY = 5e10, 2e13
LONGEST_START = 60.0
DISTURBANCES = ("misplaced", "gpu-busy", "load", "throttled")


@dataclass(frozen=True)
class Output:
    """What a command left.

    Args:
        code: its exit code; None if it ran out of time.
        document: the JSON document that it printed; empty if it printed none.
        gpu: whether it ran on a GPU. On a CPU, conditions about GPUs are left out.
    """

    code: int | None
    document: dict[str, Any]
    gpu: bool = True

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results, one for each spec."""
        return list(self.document.get("results", ()))


@dataclass(frozen=True)
class Condition:
    """Something that must hold.

    Args:
        text: what must hold.
        held: whether it does.
        seen: what was seen instead, or the figure.
    """

    text: str
    held: bool
    seen: str = ""


Judge = Callable[[Output], Iterator[Condition]]


def ended_with(output: Output, code: int = 0) -> Condition:
    """Return the condition that the command ended with an exit code."""
    seen = "it ran out of time" if output.code is None else str(output.code)
    return Condition(f"the exit code is {code}", output.code == code, seen)


def doctor(output: Output) -> Iterator[Condition]:
    """Doctor finds nothing that stops a run."""
    yield ended_with(output)
    checks = [check for section in output.document.values() for check in section]
    failed = [f"{check['name']}: {check['detail']}" for check in checks if check["status"] == "FAIL"]
    yield Condition("no check fails", bool(checks) and not failed, "; ".join(failed) or f"{len(checks)} checks")


def device_scope(output: Output) -> Iterator[Condition]:
    """The times of `fit` repeat. The effect of a scope is only shown."""
    yield ended_with(output)
    for name, times in output.document.items():
        natural, scope = times["natural"], times["scope"]
        spread = max(natural) / min(natural) - 1
        seen = f"{min(natural):.0f} µs, spread {spread:.0%}; in a scope {min(scope) / min(natural):.2f} times as long"
        yield Condition(f"{name}: natural times agree within {LARGEST_SPREAD:.0%}", spread <= LARGEST_SPREAD, seen)


def measured(output: Output) -> Iterator[Condition]:
    """Every spec was measured, where it was to run, and undisturbed."""
    yield ended_with(output)
    yield Condition("there are results", bool(output.results), str(len(output.results)))
    for result in output.results:
        name = f"{result['spec']['workload']} on {result['spec']['backend']}"
        failure = (result.get("failure") or {}).get("message", "")
        yield Condition(f"{name}: complete", result["status"] == "complete", failure or result["status"])
        placement = result.get("placement") or {}
        reason = str(placement.get("reason") or f"{placement.get('on_device')} operations on the device")
        yield Condition(f"{name}: placement is verified", bool(placement.get("verified")), reason)
        keys = [warning["key"] for warning in result["warnings"] if warning["key"] in DISTURBANCES]
        yield Condition(f"{name}: undisturbed", not (keys and output.gpu), ", ".join(keys))
        if result["spec"]["backend"] == "cuda":
            yield from _telemetry(name, result)


def _telemetry(name: str, result: dict[str, Any]) -> Iterator[Condition]:
    """The GPU was read while the steps were timed."""
    telemetry = [sample["telemetry"] for sample in result["samples"] if sample.get("telemetry")]
    for field in ("gpu_memory_bytes", "gpu_sm_clock_hz", "gpu_power_watts"):
        values = [t[field] for t in telemetry if t.get(field)]
        yield Condition(f"{name}: {field} is known", bool(values), str(values[:1]))


def compared(output: Output) -> Iterator[Condition]:
    """Both devices were measured, and which one is faster is known."""
    yield from measured(output)
    if output.gpu:
        comparisons = output.document.get("comparisons", [])
        yield Condition("there is one comparison", len(comparisons) == 1, str(len(comparisons)))
        for comparison in comparisons:
            verdict = comparison["verdict"]
            yield Condition("the verdict is settled", verdict in ("faster", "slower", "same"), verdict)


def gpu_is_faster(output: Output) -> Iterator[Condition]:
    """As `compared`, and the GPU is faster."""
    yield from compared(output)
    for comparison in output.document.get("comparisons", []):
        yield Condition("the GPU is faster", comparison["verdict"] == "faster", comparison["verdict"])


def projected(output: Output) -> Iterator[Condition]:
    """The projected training takes as long as the measured one."""
    yield from measured(output)
    for result in output.results:
        projection = result.get("projection") or {}
        full = projection.get("full_training")
        yield Condition("the whole training was measured", bool(full))
        if full:
            error = projection["build_and_fit_seconds"]["value"] / full["build_and_fit_seconds"] - 1
            text = f"the projection is within {LARGEST_PROJECTION_ERROR:.0%}"
            yield Condition(text, abs(error) <= LARGEST_PROJECTION_ERROR, f"{error:+.1%}")


def explained(output: Output) -> Iterator[Condition]:
    """The explanation is whole, and its profile shows the device."""
    yield ended_with(output)
    explanation = output.document.get("explanation") or {}
    yield Condition("there is an explanation", bool(explanation))
    if not explanation:
        return
    shares = [part["share"]["value"] for part in explanation["parts"]] + [explanation["rest_share"]["value"]]
    yield Condition("the parts add up to the step", abs(sum(shares) - 1) < 0.02, f"{sum(shares):.3f}")
    if output.gpu:
        share = (explanation.get("profile") or {}).get("device_share")
        yield Condition("the trace holds the device's kernels", share is not None, str(share))


def unchanged_script(output: Output) -> Iterator[Condition]:
    """A script that names the GPU was measured. Its device counts as a difference on other devices only."""
    yield from measured(output)
    for result in output.results:
        chosen = [warning["message"] for warning in result["warnings"] if warning["key"] == "script-settings"]
        on_gpu = result["spec"]["backend"] == "cuda"
        held = not chosen if on_gpu else "/GPU:0" in "".join(chosen)
        text = "is not a difference" if on_gpu else "is a difference"
        yield Condition(f"the script's device {text} on {result['spec']['backend']}", held, "; ".join(chosen))


def explained_input(output: Output) -> Iterator[Condition]:
    """The planted slow input of the script comes first."""
    yield ended_with(output)
    answer = (output.document.get("explanation") or {}).get("answer", [])
    named = [change["name"] for change in answer]
    yield Condition("slow input comes first", named[:1] == ["slow input"], ", ".join(named))


def peaks(output: Output) -> Iterator[Condition]:
    """The peaks are known and plausible."""
    yield from measured(output)
    for result in output.results:
        series, bandwidth = result["summary"]["series"], result["summary"]["bytes_per_second"]
        needed = {"matmul/float32", "triad/memory"} | ({"matmul/float16"} if output.gpu else set())
        yield Condition(f"{', '.join(sorted(needed))} are known", needed <= series.keys(), ", ".join(series))
        if output.gpu and needed <= series.keys():
            memory = bandwidth["triad/memory"]
            plausible = SLOWEST_MEMORY < memory < FASTEST_MEMORY
            yield Condition("the memory's bandwidth is plausible", plausible, f"{memory / 1e9:.0f} GB/s")


def copied(output: Output) -> Iterator[Condition]:
    """Large copies reach the speed of a bus."""
    yield ended_with(output)
    for result in output.results:
        for direction in ("h2d", "d2h"):
            rates = [rate for name, rate in result["summary"]["bytes_per_second"].items() if name.startswith(direction)]
            fastest = max(rates, default=0.0)
            text = f"{direction} reaches {SLOWEST_COPY / 1e9:.0f} GB/s"
            yield Condition(text, fastest >= SLOWEST_COPY, f"{fastest / 1e9:.1f} GB/s")
    yield Condition("there are results", bool(output.results))


def swept(output: Output) -> Iterator[Condition]:
    """Every point of every curve was measured, and the time did not end before the last one."""
    yield ended_with(output)
    sweep = output.document.get("sweep") or {}
    curves = sweep.get("curves", [])
    unfinished = sweep.get("incomplete_reason")
    yield Condition("there is a curve for each backend", len(curves) == (2 if output.gpu else 1), str(len(curves)))
    failed = [point["failure"] or "" for curve in curves for point in curve["points"] if not point["step_seconds"]]
    yield Condition("every point was measured", not failed and not unfinished, unfinished or "; ".join(failed))


def out_of_memory(output: Output) -> Iterator[Condition]:
    """The failure is recognized as a lack of memory."""
    yield ended_with(output, 1)
    kinds = [(result.get("failure") or {}).get("kind") for result in output.results]
    yield Condition("the failure is of the kind memory", kinds == ["memory"], str(kinds))


def started_warm(output: Output) -> Iterator[Condition]:
    """Once the driver has compiled what it needs, a start takes seconds."""
    yield from measured(output)
    for result in output.results:
        start = result["summary"]["cold_start_seconds"]["value"]
        yield Condition(f"a start takes at most {LONGEST_START:g} s", start <= LONGEST_START, f"{start:.1f} s")
