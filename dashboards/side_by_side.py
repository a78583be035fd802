"""The dashboard Side by side: the latest results of the hub, devices compared with the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders.dashboard import Dashboard, DashboardLink
from grafana_foundation_sdk.models.dashboard import DashboardLinkType, DynamicConfigValue

from bench.backends import reference
from bench.model.comparison import THRESHOLD
from bench.model.phase import START_PHASES
from bench.model.spec import Workers
from dashboards.panels import BAD, FULL_WIDTH, GOOD, PLAIN, Cells, bars, curve, listing, matrix, stacked, steps
from dashboards.parts import SELECTED, Query, board, now, rows, with_workers

INFO = "devbench_result_info"
INFO_LABELS = "workload, backend, loop, dtype, pool"
NAMED = with_workers(f"{INFO}{{{SELECTED}}}")
WITH_LABELS = f"group_left ({INFO_LABELS}, program) max by (key, {INFO_LABELS}, program) ({NAMED})"
"""Joins a metric with the labels of its result, once even if several hubs are scraped."""

LEGEND = "{{workload}} on {{backend}} {{pool}} {{loop}} {{dtype}}"
RESULT_LABELS = ("workload", "backend", "pool", "loop", "dtype")
"""Labels that name a result, in order."""

PROGRAM_LABELS = "program, pool"
"""Labels that a device and the CPU of its pool have in common."""

CPU = f'workload=~"$workload", pool=~"$pool", backend="{reference()}"'
"""Selects the CPUs that devices are compared with."""

SIZES = tuple(Workers(count=n, strategy="multi-worker").label for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64))
"""Values of the label `workers` in the order of the table's columns. Others follow."""

CURRENCIES = ("USD", "EUR", "GBP", "CHF", "JPY", "KRW", "INR")
"""Currencies that Grafana has units for. Others appear in the legend only."""

ALL_PHASES = (*START_PHASES, "warm_up")


def per_result(metric: str, *labels: str, where: str = "") -> str:
    """Return a metric of each result, once even if several hubs serve it."""
    return f"max by ({', '.join(('key', *labels))}) (devbench_result_{metric}{where})"


def of_phases(names: Sequence[str]) -> str:
    """Return a selector of phases."""
    return f'{{phase=~"{"|".join(names)}"}}'


def selected(metric: str, *labels: str) -> str:
    """Return a metric of each selected result, with its labels."""
    return f"{per_result(metric, *labels)} * on (key) {WITH_LABELS}"


def newest(labels: str, where: str, more: str = "") -> str:
    """Return the newest result per set of labels. A pool that gets other CPUs leaves old keys behind.

    Args:
        labels: Labels of the info metric, separated by commas.
        where: Selects info metrics.
        more: Further labels that the result keeps, after a comma.
    """
    kept = labels + more
    joined = f"on (key) group_left ({kept}) max by (key, {kept}) ({INFO}{{{where}}})"
    return f"topk by ({labels}) (1, {per_result('timestamp_seconds')} * {joined})"


def cpu_value(value: str) -> str:
    """Return a value of the same program on the CPU of the same pool. If the pool had several, the newest counts."""
    newest_cpu = f"group by (key, {PROGRAM_LABELS}) ({newest(PROGRAM_LABELS, CPU)})"
    return f"max by ({PROGRAM_LABELS}) (({value}) * on (key) group_left ({PROGRAM_LABELS}) {newest_cpu})"


def device_value(value: str) -> str:
    """Return a value of the selected results to compare with the CPU: the newest result per pool and device."""
    return (
        f"((({value}) * on (key) {WITH_LABELS}) and on (key) {newest(f'{PROGRAM_LABELS}, backend, device', SELECTED)})"
    )


STEP = per_result("step_seconds")
SPREAD = f"({per_result('step_seconds_high')} - {per_result('step_seconds_low')})"
STARTED = f"sum by (key) ({per_result('phase_seconds', 'phase', where=of_phases(START_PHASES))})"


def against_cpu(value: str, operator: str) -> str:
    """Return a query that combines the value of the CPU with the value of each device to compare."""
    return f"{cpu_value(value)} {operator} on ({PROGRAM_LABELS}) group_right () {device_value(value)}"


def difference_from_cpu(value: str) -> str:
    """Return a query for the value of each device minus the value of the CPU."""
    return f"{device_value(value)} - on ({PROGRAM_LABELS}) group_left () {cpu_value(value)}"


def highest(expression: str, legend: str = LEGEND) -> Query:
    """Return a query of the latest values, highest first."""
    return now(f"sort_desc({expression})", legend)


def history(key: str = "${__data.fields.key}") -> DashboardLink:
    """Return a link to the history of a result on the hub.

    Args:
        key: Grafana's expression for the key of the result. Default: the field `key` of a table.
    """
    link = DashboardLink("Step over versions").type(DashboardLinkType.LINK)
    return link.url("${hub}/history/" + key).target_blank(True)


def linked(title: str, description: str, unit: str, query: Query) -> Any:
    """Return a bar for each result, with a link to its history."""
    return bars(title, description, unit, query).data_links([history("${__field.labels.key}")])


SAME_PROGRAM = "scaling_key, backend, device, pool"
"""Labels that the runs of a program with one worker and with several have in common."""

OF_STUDIES = f'{SELECTED}, scaling_key!=""'
"""Selects the runs of scaling studies. An older hub has no scaling key."""

RUN_LABELS = f"{INFO_LABELS}, device, workers, scaling_key"


def with_workers_labels() -> str:
    """Return what joins a metric with the labels of its result, if it is a run of the newest scaling study.

    A program that was changed, or runs on other machines of its pool, leaves old runs behind.
    """
    runs = f"max by (key, {RUN_LABELS}) ({INFO}{{{OF_STUDIES}}})"
    newest_runs = newest(f"{INFO_LABELS}, workers, scaling_key, device", OF_STUDIES)
    newest_programs = newest(INFO_LABELS, OF_STUDIES, ", scaling_key, device")
    same = f"{INFO_LABELS}, scaling_key, device"
    return f"group_left ({RUN_LABELS}) ({runs} and on (key) {newest_runs} and on ({same}) {newest_programs})"


def of_one_worker(value: str) -> str:
    """Return a value of the newest run with one worker, per program, backend, device and pool."""
    labels = f"group_left ({SAME_PROGRAM})"
    where = f'{OF_STUDIES}, workers=~"1 (worker|replica)"'
    newest_run = f"group by (key, {SAME_PROGRAM}) ({newest(SAME_PROGRAM, where)})"
    return f"max by ({SAME_PROGRAM}) (({value}) * on (key) {labels} {newest_run})"


def scaling_panels() -> list[Any]:
    """Return the throughput and the efficiency of the runs of scaling studies."""
    rate, step, labels = per_result("examples_per_second"), per_result("step_seconds"), with_workers_labels()
    low, high = (f"{rate} * {step} / {per_result(f'step_seconds_{bound}')}" for bound in ("high", "low"))
    named = (ending(value, suffix) for value, suffix in ((rate, ""), (low, ", low"), (high, ", high")))
    measured = f"({' or '.join(named)}) * on (key) {labels}"
    ideal = f"{per_result('workers')} * on (key) {labels} * on ({SAME_PROGRAM}) group_left () {of_one_worker(rate)}"
    # Strong and weak scaling have the same ideal.
    ideal_line = ending(f"max without (key, workers) ({numbered(ideal)})", ", ideal")
    efficiency = f"{rate} * on (key) {labels} / on (key) group_left () ({ideal})"
    return [
        curve(
            "Throughput by number of workers",
            "Examples per second of all workers together, at the typical step, with the bounds of its 95% interval. "
            "The ideal is the throughput of one worker, multiplied by the number of workers. A line of weak scaling "
            "begins at two workers.",
            "suffix:examples/s",
            f"{line(measured)} or {line(ideal_line)}",
            "count",
            "workers",
        ).no_value("No result with several workers"),
        matrix(
            "Efficiency by number of workers",
            "Throughput of all workers together, divided by the number of workers and by the throughput of one worker "
            "under the same strategy. The hub compares with one worker without a strategy.",
            "percentunit",
            Cells(efficiency, RESULT_LABELS, "workers", SIZES),
        )
        .decimals(0)
        .no_value("No result of one worker and of several"),
    ]


def ending(value: str, suffix: str) -> str:
    """Return a value with the label `suffix`, the end of the name of its line in a chart."""
    return f'label_replace({value}, "suffix", "{suffix}", "", "")'


def numbered(value: str) -> str:
    """Return a value of runs with workers, with their number of workers as the label `count`."""
    return f'label_replace({value}, "count", "$1", "workers", "([0-9]+) .*")'


def line(value: str) -> str:
    """Return a value of runs with workers, with the label `what`, which names its line in a chart.

    Args:
        value: Query with the labels of results, `workers` or `count`, and `suffix`.
    """
    names = ", ".join(f'"{name}"' for name in RESULT_LABELS)
    named = f'label_join({numbered(value)}, "what", " ", {names})'
    weak = f'label_replace({named}, "scaling", ", weak", "workers", ".*weak.*")'
    return f'label_join({weak}, "what", "", "what", "scaling", "suffix")'


def dashboard() -> Dashboard:
    """Return speed-up, steps, phases, break-even, cost and energy of the latest results."""
    saved = f"(-1 * ({difference_from_cpu(STEP)}))"
    speed_up = against_cpu(STEP, "/")
    # 0 means that there is no speed-up to show.
    speed_up_colours = steps(PLAIN, (0.001, BAD), (1 - THRESHOLD, PLAIN), (1 + THRESHOLD, GOOD))
    quantiles = (f'label_replace({selected(f"p{n}_seconds")}, "of", "p{n}", "", "")' for n in (50, 90, 99))
    typical_step = listing(
        "Typical step",
        "Typical step, its relative error (half the 95% interval), and its speed-up over the same program on the CPU "
        "of the same pool, from the newest result of each device. The link opens its history.",
        "s",
        {name: name for name in RESULT_LABELS} | {"Value #A": "step", "Value #B": "±", "Value #C": "speed-up"},
        rows(selected("step_seconds")),
        rows(f"({SPREAD} / 2 / {STEP}) * on (key) {WITH_LABELS}"),
        rows(speed_up),
        sort=("workload", "pool", "backend"),
        hidden=("program",),
        link_columns=("key",),
    )
    typical_step.span(FULL_WIDTH)
    typical_step.override_by_name("step", [DynamicConfigValue("links", [history().build()])])
    typical_step.override_by_name("±", [DynamicConfigValue("unit", "percentunit"), DynamicConfigValue("decimals", 1)])
    colours = {"unit": "suffix:×", "thresholds": speed_up_colours.build(), "custom.cellOptions": {"type": "color-text"}}
    typical_step.override_by_name("speed-up", [DynamicConfigValue(*item) for item in colours.items()])
    cost = linked(
        "Cost of a million steps",
        "At the hourly price of the pool and the mean step, in the currency of the pool.",
        "suffix: of its currency",
        highest(f"1000 * {selected('cost_per_1000_steps', 'currency')}", "{{currency}} for " + LEGEND),
    )
    cost.decimals(2).no_value("No hourly price is set")
    for name in CURRENCIES:
        cost.override_by_regexp(f"/^{name} /", [DynamicConfigValue("unit", f"currency{name}")])
    phases = f"{per_result('phase_seconds', 'phase', where=of_phases(ALL_PHASES))} * on (key) {WITH_LABELS}"
    panels = [
        typical_step,
        linked(
            "Speed-up over the CPU of the same pool",
            "Step time on the CPU of the same pool, divided by the step time on the device. If a pool has "
            "machines with different CPUs or limits, the newest result counts. The hub compares all of them.",
            "suffix:×",
            highest(f'({speed_up}) and on (key) {INFO}{{backend!="{reference()}"}}'),
        )
        .thresholds(speed_up_colours)
        .no_value("No GPU result with a CPU result of the same pool"),
        linked(
            "Break-even",
            "Step from which a device is ahead of the CPU of its pool, from a cold start. 0 if it is ahead from the "
            "start, absent if its steps are not faster. If a pool has several machines, the newest result counts.",
            "suffix:steps",
            highest(f"clamp_min(({difference_from_cpu(STARTED)}) / on (key) group_left () ({saved} > 0), 0)"),
        ).no_value("No GPU with faster steps than the CPU of its pool"),
        stacked(
            "Phases of a cold start",
            "Mean seconds of each phase up to the first step, and of the warm-up.",
            "s",
            Cells(phases, RESULT_LABELS, "phase", ALL_PHASES),
        ).span(FULL_WIDTH),
        matrix(
            "Whole training (projected)",
            "Build and fit (article), and from a cold start (cold), projected with the mean step.",
            "s",
            Cells(selected("projected_seconds", "scope"), RESULT_LABELS, "scope", ("build_and_fit", "total")),
        ),
        matrix(
            "Latency of single steps",
            "Quantiles of single steps, each synchronized. They exceed the typical step if steps overlap.",
            "s",
            Cells(" or ".join(quantiles), RESULT_LABELS, "of", ("p50", "p90", "p99")),
        ),
        "Throughput and transfers",
        linked(
            "Throughput",
            "Examples per second at the typical step.",
            "suffix:examples/s",
            highest(selected("examples_per_second")),
        ),
        linked(
            "Operations",
            "Floating-point operations per second, by the workload's formula or TensorFlow's count.",
            "flops",
            highest(selected("flops_per_second")),
        ),
        linked(
            "Transfers",
            "Fastest copy to the device (h2d) and from it (d2h), measured by the workload transfer.",
            "Bps",
            highest(selected("transfer_bytes_per_second", "direction"), "{{direction}} of " + LEGEND),
        )
        .span(FULL_WIDTH)
        .no_value("No result of the workload transfer on a GPU"),
        "Scaling",
        *scaling_panels(),
        "Cost and energy",
        cost,
        linked(
            "Energy per step",
            "Energy of the GPU, or of the CPU packages without one. The two are not comparable.",
            "joule",
            highest(selected("energy_joules_per_step")),
        ).no_value("No machine reports its energy"),
    ]
    about = "The latest result of each comparison key in the hub: devices compared with the CPU of their pool."
    return board("side-by-side", "Side by side", about, INFO, panels)
