"""Side by side: the latest results of the hub, device against CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders.dashboard import Dashboard, DashboardLink
from grafana_foundation_sdk.models.dashboard import DashboardLinkType, DynamicConfigValue

from bench.model.result import START_PHASES
from dashboards.panels import BAD, GOOD, PLAIN, WHOLE, Cells, bars, listing, matrix, stacked, steps
from dashboards.parts import CHOSEN, Query, board, now, rows

INFO = "devbench_result_info"
NAMES = "workload, backend, loop, dtype, pool"
NAMED = f"group_left ({NAMES}, program) max by (key, {NAMES}, program) ({INFO}{{{CHOSEN}}})"
"""What a result's figures are joined with, once however many hubs are scraped."""

LEGEND = "{{workload}} on {{backend}} {{pool}} {{loop}} {{dtype}}"
WHAT = ("workload", "backend", "pool", "loop", "dtype")
"""What names a result to a reader, in this order."""

SAME = "program, pool"
"""What a device and the CPU that it is set against have in common."""

CPU = 'workload=~"$workload", pool=~"$pool", backend="cpu"'
"""The CPUs that devices are set against, among the labels of an info."""

CURRENCIES = ("USD", "EUR", "GBP", "CHF", "JPY", "KRW", "INR")
"""Those that Grafana knows as units; others stand in the legend alone."""

ALL_PHASES = (*START_PHASES, "warm_up")


def one(metric: str, *labels: str, where: str = "") -> str:
    """A metric of each result, once however many hubs tell it."""
    return f"max by ({', '.join(('key', *labels))}) (devbench_result_{metric}{where})"


def of_phases(names: Sequence[str]) -> str:
    """A selector of these phases."""
    return f'{{phase=~"{"|".join(names)}"}}'


def each(metric: str, *labels: str) -> str:
    """A metric of each chosen result, with what it is."""
    return f"{one(metric, *labels)} * on (key) {NAMED}"


def newest(labels: str, where: str) -> str:
    """Which result of each of these labels was begun last: a pool that gets other CPUs leaves old keys behind.

    Args:
        labels: of an info, with commas.
        where: selects among the infos.
    """
    joined = f"on (key) group_left ({labels}) max by (key, {labels}) ({INFO}{{{where}}})"
    return f"topk by ({labels}) (1, {one('timestamp_seconds')} * {joined})"


def of_cpu(value: str) -> str:
    """A value of the same program on the CPU of the same pool; where that was several machines, on the last."""
    last = f"group by (key, {SAME}) ({newest(SAME, CPU)})"
    return f"max by ({SAME}) (({value}) * on (key) group_left ({SAME}) {last})"


def own(value: str) -> str:
    """A value of each chosen result that is set against the CPU: of one device of a pool the newest."""
    return f"((({value}) * on (key) {NAMED}) and on (key) {newest(f'{SAME}, backend, device', CHOSEN)})"


STEP = one("step_seconds")
SPREAD = f"({one('step_seconds_high')} - {one('step_seconds_low')})"
STARTED = f"sum by (key) ({one('phase_seconds', 'phase', where=of_phases(START_PHASES))})"


def against_cpu(value: str, operator: str) -> str:
    """The CPU's value, an operator, and each chosen result's own."""
    return f"{of_cpu(value)} {operator} on ({SAME}) group_right () {own(value)}"


def own_less_cpus(value: str) -> str:
    """Each chosen result's own value less the CPU's."""
    return f"{own(value)} - on ({SAME}) group_left () {of_cpu(value)}"


def highest(expression: str, legend: str = LEGEND) -> Query:
    """A query of the latest values, the highest first."""
    return now(f"sort_desc({expression})", legend)


def history(key: str = "${__data.fields.key}") -> DashboardLink:
    """Where the hub shows a result's earlier ones.

    Args:
        key: how Grafana finds the result's key: in its table, which keeps it, or else in a series' labels.
    """
    to = DashboardLink("Step over versions").type(DashboardLinkType.LINK)
    return to.url("${hub}/history/" + key).target_blank(True)


def linked(title: str, description: str, unit: str, one: Query) -> Any:
    """A bar for each result, which leads to its history."""
    return bars(title, description, unit, one).data_links([history("${__field.labels.key}")])


def dashboard() -> Dashboard:
    """Speed-up, steps, phases, break-even, cost and energy of the latest results."""
    saved = f"(-1 * ({own_less_cpus(STEP)}))"
    speed_up = against_cpu(STEP, "/")
    slower = steps(PLAIN, (0.001, BAD), (0.98, PLAIN), (1.02, GOOD))  # where there is none it is 0
    quantiles = (f'label_replace({each(f"p{n}_seconds")}, "of", "p{n}", "", "")' for n in (50, 90, 99))
    known = listing(
        "Typical step",
        "Each process's median block, their geometric mean over processes; half its 95% interval over it; and how many "
        "times as fast it is as the same program's on the CPU in the same pool, by the newest result of each device. "
        "The link shows its history.",
        "s",
        {name: name for name in WHAT} | {"Value #A": "step", "Value #B": "±", "Value #C": "speed-up"},
        rows(each("step_seconds")),
        rows(f"({SPREAD} / 2 / {STEP}) * on (key) {NAMED}"),
        rows(speed_up),
        sort=("workload", "pool", "backend"),
        hidden=("program",),
        kept=("key",),
    )
    known.span(WHOLE)
    known.override_by_name("step", [DynamicConfigValue("links", [history().build()])])
    known.override_by_name("±", [DynamicConfigValue("unit", "percentunit"), DynamicConfigValue("decimals", 1)])
    colours = {"unit": "suffix:×", "thresholds": slower.build(), "custom.cellOptions": {"type": "color-text"}}
    known.override_by_name("speed-up", [DynamicConfigValue(*of) for of in colours.items()])
    cost = linked(
        "Cost of a million steps",
        "At the pool's hourly price and the mean step; each in its own currency, which are not to be added.",
        "suffix: of its currency",
        highest(f"1000 * {each('cost_per_1000_steps', 'currency')}", "{{currency}} for " + LEGEND),
    )
    cost.decimals(2).no_value("No hourly price was given")
    for name in CURRENCIES:
        cost.override_by_regexp(f"/^{name} /", [DynamicConfigValue("unit", f"currency{name}")])
    phases = f"{one('phase_seconds', 'phase', where=of_phases(ALL_PHASES))} * on (key) {NAMED}"
    panels = [
        known,
        linked(
            "Speed-up over the CPU of the same pool",
            "How many times as fast a step is as the same program's on the CPU in the same pool. "
            "Where that pool has several machines of another CPU or limit, or had others before, those measured last; "
            "the hub compares them one by one.",
            "suffix:×",
            highest(f'({speed_up}) and on (key) {INFO}{{backend!="cpu"}}'),
        )
        .thresholds(slower)
        .no_value("No GPU's result with one of the CPU beside it"),
        linked(
            "Break-even",
            "From which step on a device that started slower than its pool's CPU is ahead of it, from a cold start. "
            "0 where it is ahead from the first; absent where its steps are no faster. Of several machines in a pool "
            "those measured last.",
            "suffix:steps",
            highest(f"clamp_min(({own_less_cpus(STARTED)}) / on (key) group_left () ({saved} > 0), 0)"),
        ).no_value("No GPU whose steps are faster than the CPU's beside it"),
        stacked(
            "Phases of a cold start",
            "Mean seconds of each phase before the second step, and of the warm-up.",
            "s",
            Cells(phases, WHAT, "phase", ALL_PHASES),
        ).span(WHOLE),
        matrix(
            "Whole training, projected",
            "Build and fit (article), and from a cold start (cold), at the mean step.",
            "s",
            Cells(each("projected_seconds", "scope"), WHAT, "scope", ("build_and_fit", "total")),
        ),
        matrix(
            "A step alone",
            "Quantiles of single steps, each synchronised; longer than the typical step where steps overlap.",
            "s",
            Cells(" or ".join(quantiles), WHAT, "of", ("p50", "p90", "p99")),
        ),
        "Throughput and transfers",
        linked(
            "Throughput",
            "Examples a second at the typical step.",
            "suffix:examples/s",
            highest(each("examples_per_second")),
        ),
        linked(
            "Operations",
            "Floating point operations a second, by the workload's own number or TensorFlow's count.",
            "flops",
            highest(each("flops_per_second")),
        ),
        linked(
            "Transfers",
            "The fastest copy to the device (h2d) and from it (d2h), of the workload transfer.",
            "Bps",
            highest(each("transfer_bytes_per_second", "direction"), "{{direction}} of " + LEGEND),
        )
        .span(WHOLE)
        .no_value("No result of the workload transfer on a GPU"),
        "Cost and energy",
        cost,
        linked(
            "Energy of a step",
            "Of the GPU where there is one, else of the CPU packages; the two are not to be set against each other.",
            "joule",
            highest(each("energy_joules_per_step")),
        ).no_value("No machine told its energy"),
    ]
    about = "The latest result of each comparison key that the hub holds: devices against the CPU beside them."
    return board("side-by-side", "Side by side", about, INFO, panels)
