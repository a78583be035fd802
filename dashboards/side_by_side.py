"""Side by side: the latest results of the hub, device against CPU."""

from __future__ import annotations

from collections.abc import Sequence

from grafana_foundation_sdk.builders.dashboard import Dashboard, DashboardLink
from grafana_foundation_sdk.models.dashboard import DashboardLinkType

from dashboards.parts import CHOSEN, bars, board, listing, now, rows, stacked

INFO = "devbench_result_info"
NAMES = "workload, backend, loop, dtype, pool"
NAMED = f"group_left ({NAMES}, program) max by (key, {NAMES}, program) ({INFO}{{{CHOSEN}}})"
"""What a result's figures are joined with, once however many hubs are scraped."""

LEGEND = "{{workload}} on {{backend}} {{pool}} {{loop}} {{dtype}}"
SAME = "program, pool"
"""What a device and the CPU that it is set against have in common."""

START = ("interpreter", "import", "device_init", "data", "build", "prepare", "trace", "first_step")
"""The phases before the second step; the break-even's start."""

ALL_PHASES = (*START, "warm_up")


def one(metric: str, *labels: str, where: str = "") -> str:
    """A metric of each result, once however many hubs tell it."""
    return f"max by ({', '.join(('key', *labels))}) (devbench_result_{metric}{where})"


def of_phases(names: Sequence[str]) -> str:
    """A selector of these phases."""
    return f'{{phase=~"{"|".join(names)}"}}'


def each(metric: str, *labels: str) -> str:
    """A metric of each chosen result, with what it is."""
    return f"{one(metric, *labels)} * on (key) {NAMED}"


def of_cpu(value: str) -> str:
    """A value of the same program on the CPU of the same pool; none where that is several machines'."""
    cpus = f'max by (key, {SAME}) ({INFO}{{workload=~"$workload", pool=~"$pool", backend="cpu"}})'
    joined = f"({value}) * on (key) group_left ({SAME}) {cpus}"
    return f"(avg by ({SAME}) ({joined}) and count by ({SAME}) ({joined}) == 1)"


STEP = one("step_seconds")
SPREAD = f"({one('step_seconds_high')} - {one('step_seconds_low')})"
STARTED = f"sum by (key) ({one('phase_seconds', 'phase', where=of_phases(START))})"


def against_cpu(value: str, operator: str) -> str:
    """The CPU's value, an operator, and each chosen result's own."""
    return f"{of_cpu(value)} {operator} on ({SAME}) group_right () (({value}) * on (key) {NAMED})"


def own_less_cpus(value: str) -> str:
    """Each chosen result's own value less the CPU's."""
    return f"(({value}) * on (key) {NAMED}) - on ({SAME}) group_left () {of_cpu(value)}"


def dashboard() -> Dashboard:
    """Speed-up, steps, phases, break-even, cost and energy of the latest results."""
    saved = f"(-1 * ({own_less_cpus(STEP)}))"
    panels = [
        bars(
            "Speed-up over the CPU of the same pool",
            "How many times as fast a step is as the same program's on the CPU in the same pool; the CPU itself is 1. "
            "Empty where that pool has several machines of another CPU or limit: the hub compares them one by one.",
            "suffix: ×",
            now(against_cpu(STEP, "/"), LEGEND),
        ),
        bars(
            "Typical step",
            "Each process's median block, their geometric mean over processes. The link shows its history.",
            "s",
            now(each("step_seconds"), LEGEND),
        ),
        listing(
            "Interval of the typical step, relative",
            "Half the 95% interval over the step: how well it is known.",
            "percentunit",
            rows(f"({SPREAD} / 2 / {STEP}) * on (key) {NAMED}"),
            hidden=("key",),
        ),
        bars(
            "Break-even",
            "From which step on a device that started slower than its pool's CPU is ahead of it, from a cold start. "
            "0 where it is ahead from the first; absent where its steps are no faster.",
            "suffix: steps",
            now(f"clamp_min(({own_less_cpus(STARTED)}) / on (key) group_left () ({saved} > 0), 0)", LEGEND),
        ),
        stacked(
            "Phases of a cold start",
            "Mean seconds of each phase before the second step, and of the warm-up.",
            "s",
            "what",
            ("phase", ALL_PHASES),
            rows(
                f"label_join(({one('phase_seconds', 'phase', where=of_phases(ALL_PHASES))} * on (key) {NAMED}), "
                f'"what", " ", {", ".join(chr(34) + name + chr(34) for name in NAMES.split(", "))})'
            ),
        ),
        bars(
            "Whole training, projected",
            "Build and fit (article), and from a cold start (cold), at the mean step.",
            "s",
            now(each("projected_seconds", "bracket"), LEGEND + ", {{bracket}}"),
        ),
        "Latency, throughput, transfers",
        bars(
            "A step alone",
            "Median of single steps, each synchronised; longer than the typical step where steps overlap.",
            "s",
            now(each("p50_seconds"), LEGEND + ", p50"),
            now(each("p90_seconds"), LEGEND + ", p90"),
            now(each("p99_seconds"), LEGEND + ", p99"),
        ),
        bars(
            "Throughput",
            "Examples a second at the typical step.",
            "suffix: examples/s",
            now(each("examples_per_second"), LEGEND),
        ),
        bars(
            "Operations",
            "Floating point operations a second, by the workload's own number or TensorFlow's count.",
            "flops",
            now(each("flops_per_second"), LEGEND),
        ),
        bars(
            "Transfers",
            "The fastest copy to the device (h2d) and from it (d2h), of the workload transfer.",
            "Bps",
            now(each("transfer_bytes_per_second", "direction"), LEGEND + ", {{direction}}"),
        ),
        "Cost and energy",
        bars(
            "Cost of 1,000 steps",
            "At the pool's hourly price and the mean step; a currency a series.",
            "short",
            now(each("cost_per_1000_steps", "currency"), LEGEND + ", {{currency}}"),
        ),
        bars(
            "Energy of a step",
            "Of the GPU where there is one, else of the CPU packages; the two are not to be set against each other.",
            "joule",
            now(each("energy_joules_per_step"), LEGEND),
        ),
    ]
    history = DashboardLink("Step over versions").type(DashboardLinkType.LINK)
    panels[1].data_links([history.url("${hub}/history/${__field.labels.key}").target_blank(True)])
    about = "The latest result of each comparison key that the hub holds: devices against the CPU beside them."
    return board("side-by-side", "Side by side", about, INFO, panels)
