"""The dashboard Side by side: the latest results of the hub, devices compared with the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders.dashboard import Dashboard, DashboardLink
from grafana_foundation_sdk.models.dashboard import DashboardLinkType, DynamicConfigValue

from bench.model.phase import START_PHASES
from dashboards.panels import BAD, GOOD, PLAIN, WHOLE, Cells, bars, listing, matrix, stacked, steps
from dashboards.parts import CHOSEN, Query, board, now, rows

INFO = "devbench_result_info"
NAMES = "workload, backend, loop, dtype, pool"
NAMED = f"group_left ({NAMES}, program) max by (key, {NAMES}, program) ({INFO}{{{CHOSEN}}})"
"""The labels that figures of a result are joined with, once even if several hubs are scraped."""

LEGEND = "{{workload}} on {{backend}} {{pool}} {{loop}} {{dtype}}"
WHAT = ("workload", "backend", "pool", "loop", "dtype")
"""Labels that name a result, in this order."""

SAME = "program, pool"
"""Labels that a device and its CPU have in common."""

CPU = 'workload=~"$workload", pool=~"$pool", backend="cpu"'
"""Selects the CPUs that devices are compared with."""

CURRENCIES = ("USD", "EUR", "GBP", "CHF", "JPY", "KRW", "INR")
"""Currencies that Grafana has units for. Others appear in the legend only."""

ALL_PHASES = (*START_PHASES, "warm_up")


def one(metric: str, *labels: str, where: str = "") -> str:
    """Return a metric of each result, once even if several hubs serve it."""
    return f"max by ({', '.join(('key', *labels))}) (devbench_result_{metric}{where})"


def of_phases(names: Sequence[str]) -> str:
    """Return a selector of phases."""
    return f'{{phase=~"{"|".join(names)}"}}'


def each(metric: str, *labels: str) -> str:
    """Return a metric of each selected result, with its labels."""
    return f"{one(metric, *labels)} * on (key) {NAMED}"


def newest(labels: str, where: str) -> str:
    """Return the newest result per set of labels. A pool that gets other CPUs leaves old keys behind.

    Args:
        labels: Labels of the info metric, separated by commas.
        where: Selects info metrics.
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
    """Combine the CPU's value with each selected result's own."""
    return f"{of_cpu(value)} {operator} on ({SAME}) group_right () {own(value)}"


def own_less_cpus(value: str) -> str:
    """Return each selected result's value minus the CPU's."""
    return f"{own(value)} - on ({SAME}) group_left () {of_cpu(value)}"


def highest(expression: str, legend: str = LEGEND) -> Query:
    """Return a query of the latest values, highest first."""
    return now(f"sort_desc({expression})", legend)


def history(key: str = "${__data.fields.key}") -> DashboardLink:
    """Where the hub shows a result's earlier ones.

    Args:
        key: how Grafana finds the result's key: in its table, which keeps it, or else in a series' labels.
    """
    to = DashboardLink("Step over versions").type(DashboardLinkType.LINK)
    return to.url("${hub}/history/" + key).target_blank(True)


def linked(title: str, description: str, unit: str, one: Query) -> Any:
    """Return a bar for each result, with a link to its history."""
    return bars(title, description, unit, one).data_links([history("${__field.labels.key}")])


def dashboard() -> Dashboard:
    """Return speed-up, steps, phases, break-even, cost and energy of the latest results."""
    saved = f"(-1 * ({own_less_cpus(STEP)}))"
    speed_up = against_cpu(STEP, "/")
    slower = steps(PLAIN, (0.001, BAD), (0.98, PLAIN), (1.02, GOOD))  # where there is none it is 0
    quantiles = (f'label_replace({each(f"p{n}_seconds")}, "of", "p{n}", "", "")' for n in (50, 90, 99))
    known = listing(
        "Typical step",
        "Typical step, its relative error (half the 95% interval), and its speed-up over the same program on the CPU "
        "of the same pool, from the newest result of each device. The link opens its history.",
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
        "At the hourly price of the pool and the mean step, in the currency of the pool.",
        "suffix: of its currency",
        highest(f"1000 * {each('cost_per_1000_steps', 'currency')}", "{{currency}} for " + LEGEND),
    )
    cost.decimals(2).no_value("No hourly price is set")
    for name in CURRENCIES:
        cost.override_by_regexp(f"/^{name} /", [DynamicConfigValue("unit", f"currency{name}")])
    phases = f"{one('phase_seconds', 'phase', where=of_phases(ALL_PHASES))} * on (key) {NAMED}"
    panels = [
        known,
        linked(
            "Speed-up over the CPU of the same pool",
            "Step time on the CPU of the same pool, divided by the step time on the device. If a pool has "
            "machines with different CPUs or limits, the newest result counts. The hub compares all of them.",
            "suffix:×",
            highest(f'({speed_up}) and on (key) {INFO}{{backend!="cpu"}}'),
        )
        .thresholds(slower)
        .no_value("No GPU result with a CPU result of the same pool"),
        linked(
            "Break-even",
            "Step from which a device is ahead of the CPU of its pool, from a cold start. 0 if it is ahead from the "
            "start, absent if its steps are not faster. If a pool has several machines, the newest result counts.",
            "suffix:steps",
            highest(f"clamp_min(({own_less_cpus(STARTED)}) / on (key) group_left () ({saved} > 0), 0)"),
        ).no_value("No GPU with faster steps than the CPU of its pool"),
        stacked(
            "Phases of a cold start",
            "Mean seconds of each phase up to the first step, and of the warm-up.",
            "s",
            Cells(phases, WHAT, "phase", ALL_PHASES),
        ).span(WHOLE),
        matrix(
            "Whole training (projected)",
            "Build and fit (article), and from a cold start (cold), projected with the mean step.",
            "s",
            Cells(each("projected_seconds", "scope"), WHAT, "scope", ("build_and_fit", "total")),
        ),
        matrix(
            "Latency of single steps",
            "Quantiles of single steps, each synchronized. They exceed the typical step if steps overlap.",
            "s",
            Cells(" or ".join(quantiles), WHAT, "of", ("p50", "p90", "p99")),
        ),
        "Throughput and transfers",
        linked(
            "Throughput",
            "Examples per second at the typical step.",
            "suffix:examples/s",
            highest(each("examples_per_second")),
        ),
        linked(
            "Operations",
            "Floating-point operations per second, by the workload's formula or TensorFlow's count.",
            "flops",
            highest(each("flops_per_second")),
        ),
        linked(
            "Transfers",
            "Fastest copy to the device (h2d) and from it (d2h), measured by the workload transfer.",
            "Bps",
            highest(each("transfer_bytes_per_second", "direction"), "{{direction}} of " + LEGEND),
        )
        .span(WHOLE)
        .no_value("No result of the workload transfer on a GPU"),
        "Cost and energy",
        cost,
        linked(
            "Energy per step",
            "Energy of the GPU, or of the CPU packages without one. The two are not comparable.",
            "joule",
            highest(each("energy_joules_per_step")),
        ).no_value("No machine reports its energy"),
    ]
    about = "The latest result of each comparison key in the hub: devices compared with the CPU of their pool."
    return board("side-by-side", "Side by side", about, INFO, panels)
