"""Live run: what runs are doing now, and did a moment ago, from the runs' own metrics."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards.panels import BAD, DOUBTFUL, GOOD, PLAIN, WHOLE, Cells, heat, over_time, stacked, states
from dashboards.parts import CHOSEN, board, query
from dashboards.side_by_side import ALL_PHASES

INFO = "devbench_run_info"
NAMES = "workload, backend, loop, pool"
EVERY = f"on (run) group_left ({NAMES}) max by (run, {NAMES}) ({INFO})"
NAMED = EVERY.replace(INFO, f"{INFO}{{{CHOSEN}}}")
LEGEND = "{{workload}} on {{backend}} {{pool}} {{loop}}"
WHAT = ("run", "workload", "backend", "pool", "loop")
BUCKETS = "devbench_step_duration_seconds_bucket"
STATES = {"running": PLAIN, "complete": GOOD, "partial": DOUBTFUL, "failed": BAD}


def named(metric: str, whose: str = NAMED) -> str:
    """A metric of each chosen run (or of every one), once where a run is scraped and pushed as well."""
    return f"max by (run) ({metric}) * {whose}"


def rate(counter: str) -> str:
    """How fast a counter of each chosen run grows."""
    return named(f"rate({counter}[$__rate_interval])")


def quantile(share: float) -> str:
    """A quantile of each chosen run's single steps so far."""
    return f"histogram_quantile({share}, max by (run, le) ({BUCKETS}) * {NAMED})"


def dashboard() -> Dashboard:
    """State, pace, step, single steps, and what the machine does meanwhile."""
    numbered = " or ".join(
        f'{number} * (devbench_run_state{{state="{state}"}} == 1)' for number, state in enumerate(STATES, 1)
    )
    phases = (
        "max by (run, phase) (last_over_time(devbench_phase_seconds[$__range])) * on (run) "
        f"group_left ({NAMES}) max by (run, {NAMES}) (last_over_time({INFO}{{{CHOSEN}}}[$__range]))"
    )
    panels = [
        states(
            "State",
            "Which state each run is in: running, complete, partial or failed.",
            STATES,
            query(named(numbered), LEGEND),
        ).span(WHOLE),
        over_time(
            "Steps",
            "Timed steps a second. Where several specs take turns it is less than one over the step.",
            "suffix:steps/s",
            query(rate("devbench_steps_total"), LEGEND),
        ),
        over_time(
            "Examples",
            "Examples a second in these steps.",
            "suffix:examples/s",
            query(rate("devbench_examples_total"), LEGEND),
        ),
        over_time(
            "Typical step so far",
            "With its 95% interval from the second process on.",
            "s",
            query(named("devbench_step_seconds"), LEGEND),
            query(named("devbench_step_seconds_low"), LEGEND + ", low"),
            query(named("devbench_step_seconds_high"), LEGEND + ", high"),
            zero=False,
        ),
        over_time(
            "Quantiles of single steps",
            "Of the latency passes so far, right to within a factor of two.",
            "s",
            query(quantile(0.5), LEGEND + ", p50"),
            query(quantile(0.9), LEGEND + ", p90"),
            query(quantile(0.99), LEGEND + ", p99"),
        ),
        heat(
            "Single steps",
            "How many steps of the latency passes took how long, all chosen runs together.",
            "s",
            query(f"sum by (le) (max by (run, le) (increase({BUCKETS}[$__rate_interval])) * {NAMED})", "{{le}}"),
        ).span(WHOLE),
        stacked(
            "Phases",
            "Mean seconds of each phase so far, of the runs of this time.",
            "s",
            Cells(phases, WHAT, "phase", ALL_PHASES),
        ).span(WHOLE),
        "The machine",
        over_time(
            "Utilisation",
            "Share of the latest process's steady state in which its GPU was busy, or of a CPU run's threads' time.",
            "percentunit",
            query(named("devbench_device_utilization_ratio"), LEGEND),
        ),
        over_time(
            "Memory",
            "Most memory in use on the GPU, or that a CPU run's latest process ever held.",
            "bytes",
            query(named("devbench_device_memory_bytes"), LEGEND),
        ),
        over_time(
            "Power",
            "Mean power over the latest process's steady state, of the GPU or the CPU packages. Empty "
            "where the machine does not tell.",
            "watt",
            query(named("devbench_device_power_watts"), LEGEND),
        ).no_value("No machine tells its power"),
        over_time(
            "Throttling",
            "Seconds a second for which a CPU quota held the run back, all CPUs together. Empty "
            "where there is no quota.",
            "suffix:s/s",
            query(rate("devbench_cpu_throttled_seconds_total"), LEGEND),
        )
        .axis_soft_max(0.1)
        .no_value("No run has a CPU quota"),
    ]
    return board(
        "live-run", "Live run", "What runs are doing now, from the metrics that they serve.", INFO, panels, "1h"
    )
