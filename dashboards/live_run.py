"""The dashboard Live run: what runs are doing now, from the metrics that they serve."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.other_metrics import other_metrics
from dashboards.panels import BAD, FULL_WIDTH, GOOD, PLAIN, WARNING, Cells, heat, over_time, stacked, states
from dashboards.parts import SELECTED, board, query, with_workers
from dashboards.side_by_side import ALL_PHASES

INFO = "devbench_run_info"
INFO_LABELS = "workload, backend, loop, pool"
WITH_LABELS_OF_ALL = f"on (run) group_left ({INFO_LABELS}) max by (run, {INFO_LABELS}) ({with_workers(INFO)})"
WITH_LABELS = WITH_LABELS_OF_ALL.replace(INFO, f"{INFO}{{{SELECTED}}}")
LEGEND = "{{workload}} on {{backend}} {{pool}} {{loop}}"
RUN_LABELS = ("run", "workload", "backend", "pool", "loop")
BUCKETS = "devbench_step_duration_seconds_bucket"
STATES = {"running": PLAIN, "complete": GOOD, "partial": WARNING, "failed": BAD}


def with_labels(metric: str, labels: str = WITH_LABELS) -> str:
    """Return a metric of each selected run (or of all), once even if a run is both scraped and pushed."""
    return f"max by (run) ({metric}) * {labels}"


def rate(counter: str) -> str:
    """Return the rate of a counter of each selected run."""
    return with_labels(f"rate({counter}[$__rate_interval])")


def quantile(share: float) -> str:
    """Return a quantile of the single steps of each selected run."""
    return f"histogram_quantile({share}, max by (run, le) ({BUCKETS}) * {WITH_LABELS})"


def dashboard() -> Dashboard:
    """Return state, rates, step times, and what the machine does."""
    state_numbers = " or ".join(
        f'{number} * (devbench_run_state{{state="{state}"}} == 1)' for number, state in enumerate(STATES, 1)
    )
    latest = with_workers(f"last_over_time({INFO}{{{SELECTED}}}[$__range])")
    phases = (
        "max by (run, phase) (last_over_time(devbench_phase_seconds[$__range])) * on (run) "
        f"group_left ({INFO_LABELS}) max by (run, {INFO_LABELS}) ({latest})"
    )
    panels = [
        states(
            "State",
            "State of each run: running, complete, partial or failed.",
            STATES,
            query(with_labels(state_numbers), LEGEND),
        ).span(FULL_WIDTH),
        over_time(
            "Steps",
            "Timed steps per second. If several specs are interleaved, this is less than 1 / step time.",
            "suffix:steps/s",
            query(rate("devbench_steps_total"), LEGEND),
        ),
        over_time(
            "Examples",
            "Examples per second in these steps.",
            "suffix:examples/s",
            query(rate("devbench_examples_total"), LEGEND),
        ),
        over_time(
            "Typical step so far",
            "Typical step, with its 95% interval once there are two processes.",
            "s",
            query(with_labels("devbench_step_seconds"), LEGEND),
            query(with_labels("devbench_step_seconds_low"), LEGEND + ", low"),
            query(with_labels("devbench_step_seconds_high"), LEGEND + ", high"),
            zero=False,
        ),
        over_time(
            "Quantiles of single steps",
            "Quantiles of the latency passes so far. They are accurate to a factor of two.",
            "s",
            query(quantile(0.5), LEGEND + ", p50"),
            query(quantile(0.9), LEGEND + ", p90"),
            query(quantile(0.99), LEGEND + ", p99"),
        ),
        heat(
            "Single steps",
            "Distribution of the steps of the latency passes, over all selected runs.",
            "s",
            query(f"sum by (le) (max by (run, le) (increase({BUCKETS}[$__rate_interval])) * {WITH_LABELS})", "{{le}}"),
        ).span(FULL_WIDTH),
        stacked(
            "Phases",
            "Mean seconds of each phase, over the runs in this time range.",
            "s",
            Cells(phases, RUN_LABELS, "phase", ALL_PHASES),
        ).span(FULL_WIDTH),
        "Machine",
        over_time(
            "Utilization",
            "Share of the steady state in which the GPU was busy. On a CPU: share of its threads' time.",
            "percentunit",
            query(with_labels("devbench_device_utilization_ratio"), LEGEND),
        ),
        over_time(
            "Memory",
            "Peak memory of the GPU. On a CPU: peak memory of the process.",
            "bytes",
            query(with_labels("devbench_device_memory_bytes"), LEGEND),
        ),
        over_time(
            "Power",
            "Mean power of the GPU, or of the CPU packages, in the steady state. Empty if unknown.",
            "watt",
            query(with_labels("devbench_device_power_watts"), LEGEND),
        ).no_value("No machine reports its power"),
        over_time(
            "Throttling",
            "Throttled seconds per second, summed over CPUs. Empty without a CPU quota.",
            "suffix:s/s",
            query(rate("devbench_cpu_throttled_seconds_total"), LEGEND),
        )
        .axis_soft_max(0.1)
        .no_value("No run has a CPU quota"),
    ]
    panels += other_metrics(panels, WITH_LABELS, LEGEND)
    return board(
        "live-run", "Live run", "What runs are doing now, from the metrics that they serve.", INFO, panels, "1h"
    )
