"""The hub's pages as text. `tests/browser` opens them in a browser."""

from __future__ import annotations

import re
import socket
import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import urllib3
from hubs import POOL, TOKEN, HubProcess, RunningHub
from sqlalchemy.exc import OperationalError
from synthetic import MOMENT, busy_machine, explanation, killed, ladder_results, measured, misplaced, sweep_results
from synthetic_scaling import scaling_results
from test_hub_runs import run, send

from bench.hub.db import comparisons
from bench.hub.db.tables import DOCUMENTS, EXPLANATIONS
from bench.hub.web import live
from bench.hub.web.middleware import HEADERS
from bench.model.interval import Interval
from bench.model.result import SCHEMA_VERSION, Summary

pytestmark = pytest.mark.once


def environment_in(pool: str, **environment: Any) -> dict[str, Any]:
    return {"host": {"deployment": {"pool": pool}, "cpu": {"model": "A CPU"}}, **environment}


def get_page(hub: RunningHub, path: str) -> str:
    response = hub.request("GET", path, accept="text/html")
    assert response.status == 200, response.data
    assert response.headers["content-type"].startswith("text/html")
    return response.data.decode()


def text(html: str) -> str:
    """Return the text of a page without its markup."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def links(html: str) -> list[str]:
    return [link.replace("&amp;", "&") for link in re.findall(r'href="([^"]+)"', html)]


def fill(hub: RunningHub) -> None:
    """Fill a hub with documents of every kind."""
    cpu = measured("10", [0.1, 0.101, 0.099], group="a", environment=environment_in("t4"), warnings=busy_machine())
    gpu = measured("11", [0.02, 0.0201, 0.0199], group="a", environment=environment_in("t4"), backend="cuda")
    other = measured("12", [0.2, 0.201, 0.202], group="b", environment=environment_in("arm"), workload="mnist")
    failed = measured(
        "13",
        [],
        group="c",
        environment=environment_in("arm"),
        status="failed",
        failure=killed(),
        summary=Summary(),
        samples=[],
    )
    misplaced_result = measured(
        "14", [0.1, 0.1], group="d", loop="fit", environment=environment_in("t4"), placement=misplaced()
    )
    for result in (cpu, gpu, other, failed, misplaced_result, *ladder_results(), *sweep_results()):
        hub.send(result)
    for result in (*scaling_results(), *scaling_results("eight", 300, {1: 0.104, 8: 0.025})):
        hub.send(result)
    for n in range(12):
        step = 0.05 if n < 6 else 0.06
        hub.send(
            measured(
                f"h{n}", [step, step * 1.001], workload="slower", environment=environment_in("t4"),
                created=MOMENT + timedelta(days=n), group=f"h{n}",
            )
        )  # fmt: skip
    hub.put("/api/v1/explanations/why", explanation(ladder_results()).model_dump_json().encode())
    progress = {
        "title": "cifar on cpu",
        "phase": "steady_state",
        "trial": 3,
        "estimates": [{"title": "x", "step_seconds": 0.1}],
    }
    send(hub, run("active", progress=progress))
    send(hub, run("ended", state="interrupted", reason="a signal", results=["10"]))


def test_the_overview_compares_each_backend_with_the_cpu_of_its_pool(hub: RunningHub) -> None:
    hub.send(measured("1", [0.1, 0.101, 0.099], environment=environment_in("t4"), group="1"))
    hub.send(measured("2", [0.02, 0.0201, 0.0199], environment=environment_in("t4"), group="2", backend="cuda"))
    hub.send(measured("3", [0.5, 0.501, 0.499], environment=environment_in("big"), group="3"))
    hub.send(measured("4", [0.9, 0.9, 0.9], environment=environment_in("t4"), group="3", purpose="level"))
    html = get_page(hub, "/")
    assert "/results/1" in links(html)
    assert "/compare?baseline=1&other=2" in links(html)
    assert re.search(r"faster: 5\.0\d* times \[[\d., ]+\] as fast", text(html)), text(html)
    (table,) = re.findall(r"<h2[^>]*>t4</h2>.*?</table>", html, re.DOTALL)
    assert "/compare?baseline=3&other=2" not in links(table)
    assert "/results/4" not in links(html)


def test_the_overview_has_one_table_of_all_pools_if_there_are_several(hub: RunningHub) -> None:
    hub.send(measured("1", [0.1, 0.101, 0.099], environment=environment_in("small"), group="1"))
    hub.send(measured("2", [0.1, 0.101, 0.099], environment=environment_in("small"), group="2", workload="mnist"))
    assert "Side by side" not in get_page(hub, "/")
    hub.send(measured("3", [0.05, 0.0501, 0.0499], environment=environment_in("large"), group="3"))
    hub.send(measured("4", [0.01, 0.0101, 0.0099], environment=environment_in("large"), group="3", backend="cuda"))
    (table,) = re.findall(r"<h2[^>]*>Side by side</h2>.*?</table>", get_page(hub, "/"), re.DOTALL)
    table_text = text(table)
    assert (
        table_text.index("small, cpu") < table_text.index("large, cpu") < table_text.index("large, cuda")
    )  # the pool with the most programs comes first
    assert {"/compare?baseline=1&other=3", "/compare?baseline=1&other=4", "/results/2"} <= set(links(table))
    assert "faster: 2.00 times [" in table_text
    assert "faster: 10.0 times [" in table_text


def test_the_overview_shows_a_new_result_immediately(hub: RunningHub) -> None:
    hub.send(measured("1", [0.1, 0.1], environment=environment_in("t4")))
    assert get_page(hub, "/") == get_page(hub, "/")
    hub.send(measured("2", [0.2, 0.2], environment=environment_in("t4")))
    assert "/results/2" in links(get_page(hub, "/"))
    assert "/results/1" not in links(get_page(hub, "/"))


def test_a_baseline_of_the_same_group_is_preferred_to_a_newer_one(hub: RunningHub) -> None:
    hub.send(measured("1", [0.1, 0.101], group="together"))
    hub.send(measured("2", [0.02, 0.0201], group="together", backend="cuda"))
    hub.send(measured("3", [0.1, 0.1], group="later"))
    assert "/compare?baseline=1&other=2" in links(get_page(hub, "/"))


def test_programs_with_the_same_name_have_different_labels(hub: RunningHub) -> None:
    for n, batch in enumerate((16, 32)):
        hub.send(measured(str(n), [0.1], params={"batch": batch}))
    html = text(get_page(hub, "/"))
    assert "batch 16" in html
    assert "batch 32" in html


def test_lists_and_titles_name_what_was_varied(hub: RunningHub) -> None:
    for n, batch in enumerate((16, 32)):
        hub.send(measured(str(n), [0.1], params={"batch": batch}, group="together", environment=environment_in("t4")))
    hub.send(measured("2", [0.1], params={"batch": 16}, dtype="float64", purpose="what-if", group="apart"))
    send(hub, run("ended", state="finished", results=["0", "1"]))
    label = "cifar on cpu, as-written"
    listed = text(get_page(hub, "/results"))
    assert f"{label}, batch 16 " in listed
    assert f"{label}, batch 32 " in listed
    assert f"{label} (what-if) " in listed
    assert f"{label}, batch 16 " in text(get_page(hub, "/runs/ended"))
    page = get_page(hub, "/results/0")
    assert f"<h1>{label}, batch 16</h1>" in page
    assert f">Compare with {label}, batch 32</a>" in page
    key = hub.get("/api/v1/results/0")["key"]
    (result,) = hub.get(f"/api/v1/results?key={key}")["results"]
    assert f"<h1>History of {label}, batch 16</h1>" in get_page(hub, f"/history/{result['comparison_key']}")


def test_results_of_pools_with_different_threads_have_the_same_name(hub: RunningHub) -> None:
    for n, pool in enumerate(("small", "large")):
        threads = {"intra": n + 1, "inter": 2}
        hub.send(measured(str(n), [0.1], threads=threads, environment=environment_in(pool)))
    assert "threads" not in text(get_page(hub, "/results"))
    hub.send(measured("2", [0.1], threads={"intra": 4, "inter": 2}, environment=environment_in("large")))
    assert "4+2 threads" in text(get_page(hub, "/results"))


def test_an_explanation_is_listed_with_what_was_varied(hub: RunningHub) -> None:
    for n, batch in enumerate((16, 32)):
        parent = f"why-{n}"
        hub.send(measured(str(n), [0.1], params={"batch": batch}, purpose="level", parent=parent))
        document = explanation(ladder_results(parent)).model_dump_json().encode()
        assert hub.put(f"/api/v1/explanations/{parent}", document).status == 200
    assert "cifar on cpu, as-written, batch 32" in text(get_page(hub, "/explanations"))


def test_a_page_of_a_failure_begins_with_the_cause(hub: RunningHub) -> None:
    fill(hub)
    send(hub, run("broken", state="failed", reason="a worker failed", results=["13"]))
    page = get_page(hub, "/results/13")
    assert re.findall(r"<h2>(.*?)</h2>", page)[0] == "Failures"
    assert page.index("about to allocate") < page.index("Side by side")
    of_run = get_page(hub, "/runs/broken")
    assert of_run.index("a worker failed") < of_run.index("about to allocate") < of_run.index("Status")


def test_a_finished_run_is_listed_with_a_link_to_its_results(hub: RunningHub) -> None:
    fill(hub)
    send(hub, run("two", state="finished", results=["10", "11"]))
    page = get_page(hub, "/runs")
    assert '<a href="/runs/two">2</a>' in page


KINDS = {"", "results", "compare", "history", "explanations", "runs", "scaling", "static", "api", "sweeps"}


def crawl(hub: RunningHub, root: str = "", passed: str = "") -> set[str]:
    """Follow the links of every page, at most eight of each kind, and return the kinds of pages reached.

    Args:
        hub: the hub.
        root: path under which a proxy serves the hub. All links must be below it.
        passed: the prefix that the proxy does not strip.
    """
    queue, visited = [f"{root}/results?purpose=sweep&limit=2", f"{root}/"], set()
    visits = Counter[str]()
    while queue:
        path = queue.pop(0)
        if path.startswith(("#", "data:")):
            continue
        assert path.startswith(f"{root}/"), path
        relative = path.removeprefix(root)
        steps = relative.partition("?")[0].split("/")
        kind = "/".join([*steps[:-1], "*"]) if len(steps) > 2 else steps[-1]
        if path in visited or visits[kind] >= 8 or relative == "/runs/events":
            continue
        visits[kind] += 1
        visited.add(path)
        response = hub.request("GET", passed + relative)
        assert response.status == 200, path
        if response.headers["content-type"].startswith("text/html"):
            queue += re.findall(
                r'(?:href|src|action|data-events)="([^"]+)"', response.data.decode().replace("&amp;", "&")
            )
    return {path.removeprefix(root).split("?")[0].split("/")[1] for path in visited}


def test_every_link_of_every_page_works(hub: RunningHub) -> None:
    fill(hub)
    assert crawl(hub) >= KINDS


@pytest.mark.parametrize("passed", ["", "/bench/marks"])
def test_every_link_works_behind_a_proxy_that_adds_a_path(serve: Callable[..., RunningHub], passed: str) -> None:
    hub = serve(root_path="/bench/marks/")
    fill(hub)
    assert crawl(hub, "/bench/marks", passed) >= KINDS
    assert 'href="/bench/marks/results"' in get_page(hub, "/bench/marks")
    response = hub.request("GET", f"{passed}/none", accept="text/html")
    assert (response.status, 'href="/bench/marks/runs"' in response.data.decode()) == (404, True)
    assert (
        hub.request("GET", f"{passed}/api/v1/none", accept="text/html").headers["content-type"].endswith("problem+json")
    )
    assert {hub.request("GET", path).status for path in (f"{passed}/healthz", "/readyz", "/metrics")} == {200}
    assert hub.get(f"{passed}/openapi.json")["servers"] == [{"url": "/bench/marks"}]
    moved = RunningHub(hub.url + "/bench/marks", hub.database)
    assert moved.send(measured("behind", [0.1])) == "created"
    assert 'href=\\"/bench/marks/runs/active\\"' in events(hub.url + passed).read1(65536).decode()


def test_the_page_of_a_result_shows_phases_steps_placement_environment_and_warnings(hub: RunningHub) -> None:
    fill(hub)
    html = get_page(hub, "/results/10")
    for title in ("Side by side", "Phases", "Steps", "Environments", "Warnings and notes"):
        assert f"<h2>{title}</h2>" in html
    assert "the machine was busy" in html
    assert html.count("<svg ") == 2
    assert "NOT on" in get_page(hub, "/results/14")
    assert "was killed by SIGKILL" in get_page(hub, "/results/13")


def test_the_page_of_a_run_shows_its_results_and_compares_interleaved_ones(hub: RunningHub) -> None:
    fill(hub)
    send(hub, run("both", state="finished", results=["10", "11", "12", "not yet here"]))
    html = get_page(hub, "/runs/both")
    assert {"/results/10", "/results/11", "/results/12", "/compare?baseline=10&other=11"} <= set(links(html))
    assert "/compare?baseline=10&other=12" not in links(html)
    assert "mnist on cpu" in text(html)


def test_a_comparison_shows_the_verdict_and_the_break_even(hub: RunningHub) -> None:
    fill(hub)
    html = text(get_page(hub, "/compare?baseline=10&other=11"))
    assert "Verdicts, baseline cpu" in html
    assert "faster" in html
    assert "ahead from a cold start" in html


def test_an_explanation_is_shown_without_its_results(hub: RunningHub) -> None:
    hub.put("/api/v1/explanations/why", explanation(ladder_results()).model_dump_json().encode())
    assert "Where the time of a step goes" in get_page(hub, "/explanations/why").replace("&#39;", "'")


def test_a_history_shows_when_the_step_time_changed(hub: RunningHub) -> None:
    fill(hub)
    key = hub.get("/api/v1/results?workload=slower&limit=1")["results"][0]["comparison_key"]
    html = get_page(hub, f"/history/{key}")
    assert "Step time since 2026-01-08 03:04 UTC: 60.0 ms, +20% compared with before." in text(html)
    assert html.count('class="differs"') == 1
    assert "/compare?baseline=h5&other=h6" in links(html)


def test_a_history_of_several_nodes_tells_a_slow_node_from_the_others(hub: RunningHub) -> None:
    for number in range(6):
        node, slower = ("b", 1.5) if number % 2 else ("a", 1.0)
        where = {"host": {"deployment": {"pool": "cpu", "node": node}}}
        hub.send(measured(f"{number:02}", [0.1 * slower, 0.101 * slower, 0.099 * slower], environment=where))
    (first, *_) = hub.get("/api/v1/results")["results"]
    assert first["node"] == "b"
    page = text(get_page(hub, f"/history/{first['comparison_key']}"))
    assert "Step time by node, the fastest first" in page
    assert re.search(r" a 100 ms 100 ms to 100 ms – 3 b 150 ms 150 ms to 150 ms \+50% 3 ", page), page
    assert "05 b" in page
    assert page.count("+50%") == 1, "each run is compared with the previous one on its node"


def test_a_truncated_history_says_so(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(hub)
    key = hub.get("/api/v1/results?workload=slower&limit=1")["results"][0]["comparison_key"]
    assert hub.get(f"/api/v1/history/{key}")["truncated"] is False
    monkeypatch.setattr("bench.hub.db.comparison_keys.HISTORY", 5)
    history = hub.get(f"/api/v1/history/{key}")
    assert (len(history["results"]), history["truncated"]) == (5, True)
    assert "The newest 5 runs" in text(get_page(hub, f"/history/{key}"))


def test_the_specs_of_a_sweep_omit_its_varied_parameter(hub: RunningHub) -> None:
    for result in sweep_results():
        hub.send(result)
    html = get_page(hub, "/sweeps/batches").partition("Specs</")[2]
    rows = re.findall(r'<th scope="row">([^<]+)', re.sub(r"<span.*?</span> ?", "", html))
    assert {"workload", "dtype", "seed"} <= set(rows)
    assert "batch" not in rows


def test_a_truncated_sweep_says_so(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    for result in sweep_results():
        hub.send(result)
    assert "are shown" not in text(get_page(hub, "/sweeps/batches"))
    monkeypatch.setattr("bench.hub.pages.detail.MEMBERS", 4)
    assert "Only the first 4 results are shown" in text(get_page(hub, "/sweeps/batches"))


def test_explanations_and_runs_have_pages(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"why{n}" for n in range(5)]
    for name in names:
        document = explanation(ladder_results()).model_copy(update={"id": name})
        hub.put(f"/api/v1/explanations/{name}", document.model_dump_json().encode())
        send(hub, run(name, state="finished"))
    monkeypatch.setattr("bench.hub.pages.lists.EXPLANATIONS", 2)
    monkeypatch.setattr("bench.hub.pages.runs.SHOWN", 2)
    for path in ("explanations", "runs"):
        listed, address, pages = list[str](), f"/{path}", 0
        while address:
            html, pages = get_page(hub, address), pages + 1
            listed += [link.rsplit("/", 1)[1] for link in links(html) if link.startswith(f"/{path}/why")]
            address = next(
                (link for link in links(html) if link.startswith(f"/{path}?cursor=") and "Older" in html), ""
            )
        assert (sorted(listed), pages) == (names, 3)
    first = hub.get("/api/v1/explanations?limit=3")
    rest = hub.get(f"/api/v1/explanations?limit=3&cursor={first['next']}")
    assert [item["id"] for item in (*first["explanations"], *rest["explanations"])] == names[::-1]
    assert rest["next"] is None
    assert hub.request("GET", "/api/v1/explanations?cursor=x").status == 400


def test_a_history_without_change_points_says_so(hub: RunningHub) -> None:
    for n in range(8):
        hub.send(measured(f"s{n}", [0.05, 0.0501], created=MOMENT + timedelta(days=n), group=f"s{n}"))
    key = hub.get("/api/v1/results?limit=1")["results"][0]["comparison_key"]
    assert hub.get(f"/api/v1/history/{key}")["change_points"] == []
    assert "The step time has not changed." in text(get_page(hub, f"/history/{key}"))


def test_the_page_of_runs_shows_their_progress(hub: RunningHub) -> None:
    fill(hub)
    html = text(get_page(hub, "/runs"))
    assert "cifar on cpu: steady state" in html
    assert "interrupted" in html
    assert '<noscript><meta http-equiv="refresh"' in get_page(hub, "/runs")


MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'"


def test_markup_in_documents_is_shown_as_text(hub: RunningHub) -> None:
    keys = []
    for n in range(3):
        result = measured(
            str(n), [0.1, 0.2], workload=MARKUP, case=MARKUP,
            environment=environment_in(MARKUP, device={"name": MARKUP}), params={MARKUP: MARKUP}, notes=[MARKUP],
            devbench=MARKUP, group=MARKUP,
        )  # fmt: skip
        hub.send(result)
        keys.append(hub.get(f"/api/v1/results?limit=1&workload={MARKUP}")["results"][0]["comparison_key"])
    document = explanation(ladder_results()).model_copy(update={"label": MARKUP})
    hub.put("/api/v1/explanations/why", document.model_dump_json().encode())
    send(hub, run("r", title=MARKUP, pool=MARKUP, progress={"title": MARKUP, "phase": MARKUP, "note": MARKUP}))
    paths = ["/", "/results", "/results/1", "/compare?baseline=0&other=1", f"/history/{keys[0]}", "/explanations"]
    paths += ["/runs", "/explanations/why", "/runs/r", "/nowhere/<script>", f"/results?workload={MARKUP}"]
    for path in paths:
        response = hub.request("GET", path, accept="text/html")
        html = response.data.decode()
        assert "<script>alert" not in html, path
        assert "<img" not in html, path
        assert "alert(1)" in html or path in ("/explanations", "/nowhere/<script>"), path


def test_impossible_figures_do_not_break_a_page(hub: RunningHub) -> None:
    step = Interval(value=-1.0, low=0.0, high=-3.0, n=2)
    for n, value in enumerate((step, step.model_copy(update={"value": 0.0}))):
        summary = Summary(step_seconds=value, step_seconds_mean=value, phases={"import": value, "first_step": value})
        hub.send(measured(str(n), [0.1, 0.2], summary=summary))
    hub.send(measured("5", [0.1], samples=[], group="x"))
    key = hub.get("/api/v1/results?limit=2")["results"][1]["comparison_key"]
    for path in (
        "/",
        "/results",
        "/results/0",
        "/results/1",
        "/compare?baseline=0&other=1",
        f"/history/{key}",
        "/metrics",
    ):
        assert hub.request("GET", path).status == 200, path


def test_a_stored_document_of_an_older_version_is_shown_as_too_old(hub: RunningHub) -> None:
    for id_, backend in (("1", "cpu"), ("2", "cuda")):
        hub.send(measured(id_, [0.1, 0.2], backend=backend, environment=environment_in("t4")))
    hub.put("/api/v1/explanations/why", explanation(ladder_results()).model_dump_json().encode())
    version = SCHEMA_VERSION - 1
    old = f'{{"schema_version": {version}}}'
    with hub.database.write() as connection:
        connection.execute(DOCUMENTS.update().values(body=zlib.compress(old.encode())))
        connection.execute(EXPLANATIONS.update().values(document=old))
    for path in ("/results/1", "/compare?baseline=1&other=2", "/explanations/why"):
        response = hub.request("GET", path, accept="text/html")
        assert response.status == 422
        assert f"too old: it has schema version {version}" in text(response.data.decode()), path
    for path in ("/", "/results", "/explanations", "/metrics"):
        assert hub.request("GET", path).status == 200, path
    assert hub.request("GET", "/api/v1/results/1").data == old.encode()


def test_every_response_forbids_content_of_other_sites(hub: RunningHub) -> None:
    fill(hub)
    for path in ("/", "/runs", "/results/10", "/api/v1/results", "/metrics", "/nowhere", "/healthz"):
        response = hub.request("GET", path)
        assert {name: response.headers[name] for name in HEADERS} == HEADERS
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy
    html = "".join(get_page(hub, path) for path in ("/", "/runs", "/results/10", "/compare?baseline=10&other=11"))
    assert "style=" not in html
    assert re.findall(r"<script(?! src=)", html) == []


def test_a_browser_gets_a_page_that_says_that_a_document_is_missing(hub: RunningHub) -> None:
    response = hub.request("GET", "/results/none", accept="text/html,*/*")
    assert (response.status, "not found" in text(response.data.decode())) == (404, True)


def test_style_and_script_may_be_cached_forever(hub: RunningHub) -> None:
    for path in [link for link in links(get_page(hub, "/runs")) if link.startswith("/static/")]:
        assert "immutable" in hub.request("GET", path).headers["cache-control"]
    assert hub.request("GET", "/static/hub.css").status == 404


def test_readers_see_the_pages_and_events_of_a_restricted_hub(serve: Callable[..., RunningHub], tmp_path: Path) -> None:
    readers = tmp_path / "readers"
    readers.write_text("grace:a good password\n", encoding="utf-8")
    hub = serve(readers_file=readers)
    for path in ("/", "/runs", "/runs/events", "/results"):
        response = hub.request("GET", path, accept="text/html")
        assert (response.status, response.headers["www-authenticate"].split()[0]) == (401, "Basic")
    assert hub.request("GET", "/", authorization="Basic Z3JhY2U6YSBnb29kIHBhc3N3b3Jk").status == 200


def test_a_filter_value_with_several_spaces_finds_its_results(hub: RunningHub) -> None:
    """A browser collapses spaces, and sends the collapsed text if an option has no value attribute."""
    hub.send(measured("1", [0.1], environment=environment_in('a  "b"')))
    hub.send(measured("2", [0.1], environment=environment_in("a")))
    values = [unescape(value) for value in re.findall(r'<option value="([^"]*)"', get_page(hub, "/results"))]
    assert 'a  "b"' in values
    html = get_page(hub, f"/results?{urlencode({'pool': values[values.index('a') + 1]})}")
    assert [link for link in links(html) if link.startswith("/results/")] == ["/results/1"]


def events(url: str) -> Any:
    return POOL.request("GET", f"{url}/runs/events", preload_content=False)


def read_until(stream: Any, word: str) -> str:
    """Return what a stream sends until it contains a word."""
    received = ""
    while word not in received:
        received += stream.read1(65536).decode("utf-8", "replace")
    return received


def test_each_change_of_a_run_sends_an_event(hub: RunningHub) -> None:
    stream = events(hub.url)
    assert "event: runs" in read_until(stream, "No run is in progress")
    send(hub, run("r", title="a fresh run"))
    read_until(stream, "a fresh run")
    assert "devbench_hub_streams 1.0" in hub.request("GET", "/metrics").data.decode()
    stream.close()


def test_an_idle_stream_sends_keep_alive_comments(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.hub.web.live.KEEP_ALIVE", 0.05)
    stream = events(hub.url)
    read_until(stream, "No run is in progress")
    for _ in range(3):
        assert "event" not in read_until(stream, "\n: ")
    stream.close()


def test_streams_that_begin_at_the_same_time_have_a_maximum_number(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MAXIMUM", 3)
    with ThreadPoolExecutor(30) as pool:
        streams = list(pool.map(lambda _: events(hub.url), range(30)))
    lines = hub.request("GET", "/metrics").data.decode()
    for stream in streams:
        stream.close()
    assert "devbench_hub_streams 3.0" in lines


def test_the_overview_is_shown_if_comparisons_cannot_be_stored(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    for backend in ("cpu", "cuda"):
        hub.send(measured(backend, [0.1, 0.11], backend=backend, group="g"))

    def full(*_: object) -> None:
        raise OperationalError("", {}, sqlite3.OperationalError("database or disk is full"))

    monkeypatch.setattr(comparisons, "_store", full)
    assert hub.request("GET", "/").status == 200


@pytest.mark.needs("posix")
def test_open_streams_do_not_delay_the_shutdown(tmp_path: Path) -> None:
    hub = HubProcess(str(tmp_path / "hub.db"))
    streams = [events(hub.url) for _ in range(5)]
    for stream in streams:
        assert stream.status == 200
        assert stream.read(6) == b"event:"
    hub.process.terminate()
    assert hub.wait(30) == 0
    for stream in streams:
        stream.close()


@pytest.mark.needs("posix")
def test_a_hub_without_tokens_only_listens_on_loopback(tmp_path: Path) -> None:
    import subprocess
    import sys

    command = [sys.executable, "-m", "bench", "hub", "--database", str(tmp_path / "hub.db"), "--host", "0.0.0.0"]
    completed = subprocess.run([*command, "--port", "0"], capture_output=True, text=True, check=False)
    assert (completed.returncode, "--tokens-file" in completed.stderr) == (2, True)
    assert TOKEN not in completed.stderr


@pytest.mark.needs("posix")
def test_a_hub_on_all_interfaces_is_reached_by_ipv4_and_by_ipv6(tmp_path: Path) -> None:
    hub = HubProcess(str(tmp_path / "hub.db"), "--host", "::")
    port = hub.url.rpartition(":")[2]
    for address in ("127.0.0.1", *(["[::1]"] if socket.has_dualstack_ipv6() else [])):
        assert urllib3.request("GET", f"http://{address}:{port}/healthz").status == 200
    hub.process.terminate()
    hub.wait(30)
