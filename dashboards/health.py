"""The dashboard Health: whether the latest results are complete and current, and whether the hub works."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards import live_run
from dashboards.panels import BAD, GOOD, WARNING, bars, counts, figures, listing, over_time, steps
from dashboards.parts import SELECTED, board, now, query, rows
from dashboards.side_by_side import (
    INFO,
    PROGRAM_LABELS,
    RESULT_LABELS,
    WITH_LABELS,
    highest,
    history,
    newest,
    per_result,
    selected,
)

DAY = 24 * 3600
WEEK = 7 * DAY
REQUESTS = "devbench_hub_request_duration_seconds_bucket"


def dashboard() -> Dashboard:
    """Return status, age and placement of each latest result, throttling, and the hub."""
    latest = newest(f"{PROGRAM_LABELS}, backend", SELECTED)
    panels = [
        figures(
            "Latest results by status",
            "Number of latest results that are complete, partial or failed.",
            "none",
            {"complete": GOOD, "partial": WARNING, "failed": BAD},
            now(f"sum by (status) ({selected('status', 'status')})", "{{status}}"),
        ),
        listing(
            "Incomplete results",
            "Latest results that failed or were interrupted. The link opens the history of a result.",
            "none",
            {name: name for name in ("status", *RESULT_LABELS)},
            rows(f"""({per_result("status", "status", where='{status!="complete"}')} == 1) * on (key) {WITH_LABELS}"""),
            sort=("status", "workload"),
            hidden=("program", "Value"),
            link_columns=("key",),
        )
        .data_links([history()])
        .no_value("Every latest result is complete"),
        bars(
            "Age of results",
            "Time since the newest result of each program, backend and pool. The chart's alert fires after 8 days.",
            "s",
            highest(f"(time() - {per_result('timestamp_seconds')} and on (key) {latest}) * on (key) {WITH_LABELS}"),
        ).thresholds(steps(GOOD, (WEEK, WARNING), (WEEK + DAY, BAD))),
        bars(
            "Misplaced operations",
            "Operations of a step that ran on another device than the one asked for. It should be 0.",
            "suffix:operations",
            highest(selected("misplaced_operations")),
        ).thresholds(steps(GOOD, (1, BAD))),
        over_time(
            "Throttling of runs",
            "Throttled seconds per second, summed over CPUs. Empty without a CPU quota.",
            "suffix:s/s",
            query(
                live_run.with_labels(
                    "rate(devbench_cpu_throttled_seconds_total[$__rate_interval])", live_run.WITH_LABELS_OF_ALL
                ),
                live_run.LEGEND,
            ),
        )
        .axis_soft_max(0.1)
        .no_value("No run has a CPU quota"),
        counts(
            "Failed runs",
            "Runs that failed and still serve metrics.",
            "suffix:runs",
            query('sum(max by (run) (devbench_run_state{state="failed"}))', "failed"),
        ),
        "Hub",
        over_time(
            "Requests",
            "Requests per second that the hub answered, by status.",
            "reqps",
            query("sum by (status) (rate(devbench_hub_requests_total[$__rate_interval]))", "{{status}}"),
        ),
        over_time(
            "Response time",
            "90th percentile of the time until a response started, by route.",
            "s",
            query(
                f"histogram_quantile(0.9, sum by (le, route) (rate({REQUESTS}[$__rate_interval]))) >= 0", "{{route}}"
            ),
        ),
        counts(
            "Rows",
            "Number of rows in the tables of the hub.",
            "suffix:rows",
            query("max by (table) (devbench_hub_rows)", "{{table}}"),
        ),
        counts(
            "Runs",
            "Number of runs that the hub knows, by state. A run without heartbeats is lost.",
            "suffix:runs",
            query("max by (state) (devbench_hub_runs)", "{{state}}"),
        ),
    ]
    about = "Whether the latest results are complete and current, and whether the hub works."
    return board("health", "Health", about, INFO, panels)
