"""The hub's pages of scaling studies, and of runs with several workers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hubs import RunningHub
from synthetic import killed, measured
from synthetic_scaling import BATCH, scaling_results
from test_hub_pages import environment_in, get_page, links, text
from test_hub_runs import run, send

from bench.model.result import Result, Summary
from bench.model.spec import Workers

pytestmark = pytest.mark.once


def fill(hub: RunningHub, *results: Result) -> None:
    for result in results:
        hub.send(result)


def job(parent: str, first: int, workers: int, step: float, pool: str = "big", **changes: Any) -> list[Result]:
    """Return the results of a Job of a cluster, which measures one worker and one other number of workers."""
    fields = {"environment": environment_in(pool), **changes}
    return scaling_results(parent, first, {1: 0.104, workers: step}, **fields)


def size_of(results: list[Result], workers: int) -> str:
    """Return the id of the run with so many workers."""
    (found,) = (
        result.id
        for result in results
        if result.purpose == "run" and result.spec.workers and result.spec.workers.count == workers
    )
    return found


def section(html: str, title: str) -> str:
    """Return a section of a page; empty if there is none."""
    return html.partition(f"<h2>{title}</h2>")[2].partition("<h2>")[0]


def test_the_page_of_a_run_shows_the_study_that_it_belongs_to(hub: RunningHub) -> None:
    results = scaling_results()
    fill(hub, *results)
    html = get_page(hub, f"/results/{size_of(results, 4)}")
    shown = section(html, "Scaling")
    assert shown.count("<svg ") == 1
    rows = re.findall(r'<th scope="row">(\w+)', shown)
    assert rows == ["bare", "1", "2", "4"]
    assert "2.50 [" in text(shown)
    assert "Where the step goes" in text(html)
    assert "/scaling/scaling" in links(html)
    assert "Scaling by the latest runs" not in html


def test_the_page_of_another_level_leads_to_the_study(hub: RunningHub) -> None:
    results = scaling_results()
    fill(hub, *results)
    (bare,) = (result.id for result in results if result.spec.workers and result.spec.workers.strategy == "none")
    html = get_page(hub, f"/results/{bare}")
    assert "/scaling/scaling" in links(html)
    assert section(html, "Scaling") == ""


def test_a_study_has_a_page(hub: RunningHub) -> None:
    fill(hub, *scaling_results())
    html = get_page(hub, "/scaling/scaling")
    assert "cifar on cpu with 1, 2 and 4 workers, strong scaling" in text(html)
    assert "4 workers are 2.50 times [" in text(html)
    assert "/results?parent=scaling" in links(html)
    assert hub.request("GET", "/scaling/none", accept="text/html").status == 404
    hub.send(measured("1", [0.1], purpose="level", parent="why"))
    assert hub.request("GET", "/scaling/why", accept="text/html").status == 404


def test_one_curve_shows_the_sizes_that_separate_jobs_measured(hub: RunningHub) -> None:
    two, four, eight = job("a", 100, 2, 0.06), job("b", 200, 4, 0.04), job("c", 300, 8, 0.025)
    fill(hub, *two, *four, *eight)
    html = get_page(hub, f"/results/{size_of(two, 2)}")
    shown = section(html, "Scaling by the latest runs")
    assert shown.count("<svg ") == 1
    assert re.findall(r'<th scope="row"><a[^>]*>(\w+)', shown) == ["1", "2", "4", "8"]
    assert {f"/results/{size_of(four, 4)}", f"/results/{size_of(eight, 8)}", "/scaling/b"} <= set(links(shown))
    assert re.findall(r'<th scope="row">(\w+)', section(html, "Scaling")) == ["bare", "1", "2"]
    speed_ups = re.findall(r"(\d\.\d+) \[", text(shown))
    assert [round(float(value), 2) for value in speed_ups] == [0.96, 1.67, 2.50, 4.00]


def test_the_curve_takes_the_latest_run_of_each_size(hub: RunningHub) -> None:
    old, new, four = job("old", 100, 2, 0.08), job("new", 200, 2, 0.06), job("four", 150, 4, 0.04)
    fill(hub, *old, *new, *four)
    shown = section(get_page(hub, f"/results/{size_of(old, 2)}"), "Scaling by the latest runs")
    assert f"/results/{size_of(new, 2)}" in links(shown)
    assert f"/results/{size_of(old, 2)}" not in links(shown)


@pytest.mark.parametrize(
    "other",
    [
        {"pool": "small"},
        {"params": {"batch": 2 * BATCH}},
        {"dtype": "mixed_float16"},
        {"workload": "mnist"},
        {"backend": "cuda"},
    ],
    ids=str,
)
def test_the_curve_has_only_results_of_the_same_program_and_pool(hub: RunningHub, other: dict[str, Any]) -> None:
    two = job("a", 100, 2, 0.06)
    fill(hub, *two, *job("b", 200, 4, 0.04, **other))
    assert "Scaling by the latest runs" not in get_page(hub, f"/results/{size_of(two, 2)}")


def test_weak_and_strong_scaling_share_no_curve_but_the_one_worker(hub: RunningHub) -> None:
    strong, weak, wider = job("a", 100, 2, 0.06), *(job(f"w{n}", n, n // 100, 0.11, scaling="weak") for n in (400, 800))
    fill(hub, *strong, *weak, *wider)
    for results, workers, sizes in ((weak, 4, ["1", "4", "8"]), (wider, 1, ["1", "4", "8"]), (strong, 2, ["1", "2"])):
        html = get_page(hub, f"/results/{size_of(results, workers)}")
        shown = section(html, "Scaling by the latest runs")
        assert re.findall(r'<th scope="row"><a[^>]*>(\w+)', shown) == sizes


def test_a_size_that_failed_is_in_the_table_but_not_in_the_curve(hub: RunningHub) -> None:
    two, four = job("a", 100, 2, 0.06), job("b", 200, 4, 0.04)
    (failed,) = (result for result in four if result.id == size_of(four, 4))
    failed.status, failed.failure, failed.summary, failed.samples = "failed", killed(), Summary(), []
    fill(hub, *two, *four)
    shown = section(get_page(hub, f"/results/{size_of(two, 2)}"), "Scaling by the latest runs")
    assert "failed" in text(shown)
    (label,) = re.findall(r'aria-label="(Speed-up[^"]*)"', shown)
    assert "2 workers" in label
    assert "4 workers" not in label


def test_each_size_is_a_row_of_the_overview_and_has_a_history(hub: RunningHub) -> None:
    first, second = job("a", 100, 2, 0.06), job("b", 200, 2, 0.061)
    usual = measured("1", [0.2, 0.2], loop="step", params={"batch": BATCH}, environment=environment_in("big"))
    fill(hub, usual, *first, *second)
    html = get_page(hub, "/")
    labels = re.findall(r'<th scope="row">(?:<a[^>]*>)?([^<]+)', html)
    assert sorted(labels) == ["cifar, step", "cifar, step, 1 worker", "cifar, step, 2 workers"]
    page = get_page(hub, f"/results/{size_of(second, 2)}")
    (history,) = (link for link in links(page) if link.startswith("/history/"))
    shown = get_page(hub, history)
    assert "History of cifar on cpu, step, 2 workers" in text(shown)
    assert {f"/results/{size_of(first, 2)}", f"/results/{size_of(second, 2)}"} <= set(links(shown))
    assert f"/results/{size_of(second, 1)}" not in links(shown)


def test_only_the_runs_of_a_study_count_as_latest_results(hub: RunningHub) -> None:
    results = scaling_results()
    fill(hub, *results)
    others = {f"/results/{result.id}" for result in results if result.purpose == "scale"}
    assert not others & set(links(get_page(hub, "/")))
    send(hub, run("study", state="finished", results=[result.id for result in results]))
    html = get_page(hub, "/runs/study")
    compared = [link for link in links(html) if link.startswith("/compare")]
    sizes = [size_of(results, workers) for workers in (1, 2, 4)]
    assert compared == [f"/compare?baseline={sizes[0]}&other={other}" for other in sizes[1:]]
    assert "cifar on cpu, step, 2 workers, no all-reduce (scale)" in text(html)


def test_a_label_tells_weak_scaling_apart(hub: RunningHub) -> None:
    weak = Workers(count=2, strategy="multi-worker", scaling="weak")
    hub.send(measured("1", [0.1], loop="step", workers=weak))
    assert "cifar on cpu, step, 2 workers (weak)" in text(get_page(hub, "/results"))
