"""The hub's pages as text. tests/browser tests them in a browser."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hubs import POOL, TOKEN, Process, Served
from synthetic import MOMENT, busy_machine, explanation, killed, ladder_results, measured, misplaced, sweep_results
from test_hub_runs import run, send

from bench.hub.db.tables import DOCUMENTS, EXPLANATIONS
from bench.hub.web.middleware import HEADERS
from bench.model.result import SCHEMA_VERSION, Interval, Summary

pytestmark = pytest.mark.once


def place(pool: str, **more: Any) -> dict[str, Any]:
    return {"host": {"deployment": {"pool": pool}, "cpu": {"model": "A CPU"}}, **more}


def page(hub: Served, path: str) -> str:
    answer = hub.ask("GET", path, accept="text/html")
    assert answer.status == 200, answer.data
    assert answer.headers["content-type"].startswith("text/html")
    return answer.data.decode()


def text(html: str) -> str:
    """Return the text of a page without its markup."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def links(html: str) -> list[str]:
    return [each.replace("&amp;", "&") for each in re.findall(r'href="([^"]+)"', html)]


def filled(hub: Served) -> None:
    """Fill a hub with documents of every kind."""
    cpu = measured("10", [0.1, 0.101, 0.099], group="a", environment=place("t4"), warnings=busy_machine())
    gpu = measured("11", [0.02, 0.0201, 0.0199], group="a", environment=place("t4"), backend="cuda")
    other = measured("12", [0.2, 0.201, 0.202], group="b", environment=place("arm"), workload="mnist")
    broken = measured(
        "13", [], group="c", environment=place("arm"), status="failed", failure=killed(), summary=Summary(), samples=[]
    )
    strayed = measured("14", [0.1, 0.1], group="d", loop="fit", environment=place("t4"), placement=misplaced())
    for each in (cpu, gpu, other, broken, strayed, *ladder_results(), *sweep_results()):
        hub.send(each)
    for n in range(12):
        step = 0.05 if n < 6 else 0.06
        hub.send(
            measured(
                f"h{n}", [step, step * 1.001], workload="along", environment=place("t4"),
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
    send(hub, run("going", progress=progress))
    send(hub, run("over", state="interrupted", reason="a signal", results=["10"]))


def test_the_overview_compares_each_backend_with_the_cpu_of_its_pool(hub: Served) -> None:
    hub.send(measured("1", [0.1, 0.101, 0.099], environment=place("t4"), group="1"))
    hub.send(measured("2", [0.02, 0.0201, 0.0199], environment=place("t4"), group="2", backend="cuda"))
    hub.send(measured("3", [0.5, 0.501, 0.499], environment=place("big"), group="3"))
    hub.send(measured("4", [0.9, 0.9, 0.9], environment=place("t4"), group="3", purpose="level"))
    shown = page(hub, "/")
    assert "/results/1" in links(shown)
    assert "/compare?baseline=1&other=2" in links(shown)
    assert re.search(r"faster: 5\.0\d* times \[[\d., ]+\] as fast", text(shown)), text(shown)
    (own,) = re.findall(r"<h2[^>]*>t4</h2>.*?</table>", shown, re.DOTALL)
    assert "/compare?baseline=3&other=2" not in links(own)
    assert "/results/4" not in links(shown)


def test_the_overview_has_one_table_of_all_pools_if_there_are_several(hub: Served) -> None:
    hub.send(measured("1", [0.1, 0.101, 0.099], environment=place("small"), group="1"))
    hub.send(measured("2", [0.1, 0.101, 0.099], environment=place("small"), group="2", workload="mnist"))
    assert "Side by side" not in page(hub, "/")
    hub.send(measured("3", [0.05, 0.0501, 0.0499], environment=place("large"), group="3"))
    hub.send(measured("4", [0.01, 0.0101, 0.0099], environment=place("large"), group="3", backend="cuda"))
    (across,) = re.findall(r"<h2[^>]*>Side by side</h2>.*?</table>", page(hub, "/"), re.DOTALL)
    said = text(across)
    assert (
        said.index("small, cpu") < said.index("large, cpu") < said.index("large, cuda")
    )  # most programs ran on the first
    assert {"/compare?baseline=1&other=3", "/compare?baseline=1&other=4", "/results/2"} <= set(links(across))
    assert "faster: 2.00 times [" in said
    assert "faster: 10.0 times [" in said


def test_the_overview_shows_a_new_result_immediately(hub: Served) -> None:
    hub.send(measured("1", [0.1, 0.1], environment=place("t4")))
    assert page(hub, "/") == page(hub, "/")
    hub.send(measured("2", [0.2, 0.2], environment=place("t4")))
    assert "/results/2" in links(page(hub, "/"))
    assert "/results/1" not in links(page(hub, "/"))


def test_a_baseline_of_the_same_group_is_preferred_to_a_newer_one(hub: Served) -> None:
    hub.send(measured("1", [0.1, 0.101], group="together"))
    hub.send(measured("2", [0.02, 0.0201], group="together", backend="cuda"))
    hub.send(measured("3", [0.1, 0.1], group="later"))
    assert "/compare?baseline=1&other=2" in links(page(hub, "/"))


def test_programs_with_the_same_name_have_different_labels(hub: Served) -> None:
    for n, batch in enumerate((16, 32)):
        hub.send(measured(str(n), [0.1], params={"batch": batch}))
    shown = text(page(hub, "/"))
    assert "batch 16" in shown
    assert "batch 32" in shown


KINDS = {"", "results", "compare", "history", "explanations", "runs", "static", "api", "sweeps"}


def followed(hub: Served, root: str = "", passed: str = "") -> set[str]:
    """Return the kinds of pages that one reaches by following the links of every page, some of each kind.

    Args:
        hub: the hub.
        root: path under which a proxy serves the hub. All links must be below it.
        passed: the part of it that the proxy passes on.
    """
    waiting, seen = [f"{root}/", f"{root}/results?purpose=sweep"], set()
    often = Counter[str]()
    while waiting:
        path = waiting.pop(0)
        if path.startswith(("#", "data:")):
            continue
        assert path.startswith(f"{root}/"), path
        own = path.removeprefix(root)
        steps = own.partition("?")[0].split("/")
        kind = "/".join([*steps[:-1], "*"]) if len(steps) > 2 else steps[-1]
        if path in seen or often[kind] >= 8 or own == "/runs/events":
            continue
        often[kind] += 1
        seen.add(path)
        answer = hub.ask("GET", passed + own)
        assert answer.status == 200, path
        if answer.headers["content-type"].startswith("text/html"):
            waiting += re.findall(
                r'(?:href|src|action|data-events)="([^"]+)"', answer.data.decode().replace("&amp;", "&")
            )
    return {path.removeprefix(root).split("?")[0].split("/")[1] for path in seen}


def test_every_link_of_every_page_works(hub: Served) -> None:
    filled(hub)
    assert followed(hub) >= KINDS


@pytest.mark.parametrize("passed", ["", "/bench/marks"])
def test_every_link_works_behind_a_proxy_that_serves_the_hub_under_a_path(
    serve: Callable[..., Served], passed: str
) -> None:
    hub = serve(root_path="/bench/marks/")
    filled(hub)
    assert followed(hub, "/bench/marks", passed) >= KINDS
    assert 'href="/bench/marks/results"' in page(hub, "/bench/marks")
    absent = hub.ask("GET", f"{passed}/none", accept="text/html")
    assert (absent.status, 'href="/bench/marks/runs"' in absent.data.decode()) == (404, True)
    assert hub.ask("GET", f"{passed}/api/v1/none", accept="text/html").headers["content-type"].endswith("problem+json")
    assert {hub.ask("GET", path).status for path in (f"{passed}/healthz", "/readyz", "/metrics")} == {200}
    assert hub.get(f"{passed}/openapi.json")["servers"] == [{"url": "/bench/marks"}]
    moved = Served(hub.url + "/bench/marks", hub.database)
    assert moved.send(measured("behind", [0.1])) == "created"
    assert 'href=\\"/bench/marks/runs/going\\"' in events(hub.url + passed).read1(65536).decode()


def test_the_page_of_a_result_shows_phases_steps_placement_environment_and_warnings(hub: Served) -> None:
    filled(hub)
    shown = page(hub, "/results/10")
    for title in ("Side by side", "Phases", "Steps", "Environments", "Failures, warnings and notes"):
        assert f"<h2>{title}</h2>" in shown
    assert "the machine was busy" in shown
    assert shown.count("<svg ") == 2
    assert "NOT on" in page(hub, "/results/14")
    assert "was killed by SIGKILL" in page(hub, "/results/13")


def test_the_page_of_a_run_shows_its_results_and_compares_interleaved_ones(hub: Served) -> None:
    filled(hub)
    send(hub, run("both", state="finished", results=["10", "11", "12", "not yet here"]))
    shown = page(hub, "/runs/both")
    assert {"/results/10", "/results/11", "/results/12", "/compare?baseline=10&other=11"} <= set(links(shown))
    assert "/compare?baseline=10&other=12" not in links(shown)
    assert "mnist on cpu" in text(shown)


def test_a_comparison_shows_the_verdict_and_the_break_even(hub: Served) -> None:
    filled(hub)
    shown = text(page(hub, "/compare?baseline=10&other=11"))
    assert "Verdicts, baseline cpu" in shown
    assert "faster" in shown
    assert "ahead from a cold start" in shown


def test_an_explanation_is_shown_without_its_results(hub: Served) -> None:
    hub.put("/api/v1/explanations/why", explanation(ladder_results()).model_dump_json().encode())
    assert "Where the time of a step goes" in page(hub, "/explanations/why").replace("&#39;", "'")


def test_a_history_shows_when_the_step_time_changed(hub: Served) -> None:
    filled(hub)
    series = hub.get("/api/v1/results?workload=along&limit=1")["results"][0]["series"]
    shown = page(hub, f"/history/{series}")
    assert "Step time since 2026-01-08 03:04 UTC: 60.0 ms, +20% compared with before." in text(shown)
    assert shown.count('class="differs"') == 1
    assert "/compare?baseline=h5&other=h6" in links(shown)


def test_a_truncated_history_says_so(hub: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(hub)
    series = hub.get("/api/v1/results?workload=along&limit=1")["results"][0]["series"]
    assert hub.get(f"/api/v1/history/{series}")["truncated"] is False
    monkeypatch.setattr("bench.hub.db.queries.HISTORY", 5)
    found = hub.get(f"/api/v1/history/{series}")
    assert (len(found["results"]), found["truncated"]) == (5, True)
    assert "The newest 5 runs" in text(page(hub, f"/history/{series}"))


def test_the_specs_of_a_sweep_omit_its_varied_parameter(hub: Served) -> None:
    for each in sweep_results():
        hub.send(each)
    shown = page(hub, "/sweeps/batches").partition("Specs</")[2]
    rows = re.findall(r'<th scope="row">([^<]+)', re.sub(r"<span.*?</span> ?", "", shown))
    assert {"workload", "dtype", "seed"} <= set(rows)
    assert "batch" not in rows


def test_a_truncated_sweep_says_so(hub: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in sweep_results():
        hub.send(each)
    assert "are shown" not in text(page(hub, "/sweeps/batches"))
    monkeypatch.setattr("bench.hub.pages.detail.MEMBERS", 4)
    assert "Only the first 4 results are shown" in text(page(hub, "/sweeps/batches"))


def test_explanations_and_runs_have_pages(hub: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"why{n}" for n in range(5)]
    for name in names:
        found = explanation(ladder_results()).model_copy(update={"id": name})
        hub.put(f"/api/v1/explanations/{name}", found.model_dump_json().encode())
        send(hub, run(name, state="finished"))
    monkeypatch.setattr("bench.hub.pages.lists.EXPLANATIONS", 2)
    monkeypatch.setattr("bench.hub.pages.runs.SHOWN", 2)
    for path in ("explanations", "runs"):
        seen, address, pages = list[str](), f"/{path}", 0
        while address:
            shown, pages = page(hub, address), pages + 1
            seen += [each.rsplit("/", 1)[1] for each in links(shown) if each.startswith(f"/{path}/why")]
            address = next(
                (each for each in links(shown) if each.startswith(f"/{path}?cursor=") and "Older" in shown), ""
            )
        assert (sorted(seen), pages) == (names, 3)
    first = hub.get("/api/v1/explanations?limit=3")
    rest = hub.get(f"/api/v1/explanations?limit=3&cursor={first['next']}")
    assert [each["id"] for each in (*first["explanations"], *rest["explanations"])] == names[::-1]
    assert rest["next"] is None
    assert hub.ask("GET", "/api/v1/explanations?cursor=x").status == 400


def test_a_history_without_change_points_says_so(hub: Served) -> None:
    for n in range(8):
        hub.send(measured(f"s{n}", [0.05, 0.0501], created=MOMENT + timedelta(days=n), group=f"s{n}"))
    series = hub.get("/api/v1/results?limit=1")["results"][0]["series"]
    assert hub.get(f"/api/v1/history/{series}")["change_points"] == []
    assert "The step time has not changed." in text(page(hub, f"/history/{series}"))


def test_the_page_of_runs_shows_their_progress(hub: Served) -> None:
    filled(hub)
    shown = text(page(hub, "/runs"))
    assert "cifar on cpu: steady state" in shown
    assert "interrupted" in shown
    assert '<noscript><meta http-equiv="refresh"' in page(hub, "/runs")


MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'"


def test_markup_in_documents_is_shown_as_text(hub: Served) -> None:
    series = []
    for n in range(3):
        sent = measured(
            str(n), [0.1, 0.2], workload=MARKUP, case=MARKUP, environment=place(MARKUP, device={"name": MARKUP}),
            params={MARKUP: MARKUP}, notes=[MARKUP], devbench=MARKUP, group=MARKUP,
        )  # fmt: skip
        hub.send(sent)
        series.append(hub.get(f"/api/v1/results?limit=1&workload={MARKUP}")["results"][0]["series"])
    said = explanation(ladder_results()).model_copy(update={"label": MARKUP})
    hub.put("/api/v1/explanations/why", said.model_dump_json().encode())
    send(hub, run("r", title=MARKUP, pool=MARKUP, progress={"title": MARKUP, "phase": MARKUP, "note": MARKUP}))
    paths = ["/", "/results", "/results/1", "/compare?baseline=0&other=1", f"/history/{series[0]}", "/explanations"]
    paths += ["/runs", "/explanations/why", "/runs/r", "/nowhere/<script>", f"/results?workload={MARKUP}"]
    for path in paths:
        answer = hub.ask("GET", path, accept="text/html")
        shown = answer.data.decode()
        assert "<script>alert" not in shown, path
        assert "<img" not in shown, path
        assert "alert(1)" in shown or path in ("/explanations", "/nowhere/<script>"), path


def test_impossible_figures_do_not_break_a_page(hub: Served) -> None:
    step = Interval(value=-1.0, low=0.0, high=-3.0, n=2)
    for n, value in enumerate((step, step.model_copy(update={"value": 0.0}))):
        odd = Summary(step_seconds=value, step_seconds_mean=value, phases={"import": value, "nonsense": value})
        hub.send(measured(str(n), [0.1, 0.2], summary=odd))
    hub.send(measured("5", [0.1], samples=[], group="x"))
    series = hub.get("/api/v1/results?limit=2")["results"][1]["series"]
    for path in (
        "/",
        "/results",
        "/results/0",
        "/results/1",
        "/compare?baseline=0&other=1",
        f"/history/{series}",
        "/metrics",
    ):
        assert hub.ask("GET", path).status == 200, path


def test_a_stored_document_of_an_older_version_is_shown_as_too_old(hub: Served) -> None:
    for id_, backend in (("1", "cpu"), ("2", "cuda")):
        hub.send(measured(id_, [0.1, 0.2], backend=backend, environment=place("t4")))
    hub.put("/api/v1/explanations/why", explanation(ladder_results()).model_dump_json().encode())
    version = SCHEMA_VERSION - 1
    old = f'{{"schema_version": {version}}}'
    with hub.database.write() as connection:
        connection.execute(DOCUMENTS.update().values(body=zlib.compress(old.encode())))
        connection.execute(EXPLANATIONS.update().values(document=old))
    for path in ("/results/1", "/compare?baseline=1&other=2", "/explanations/why"):
        answer = hub.ask("GET", path, accept="text/html")
        assert answer.status == 422
        assert f"too old: it has schema version {version}" in text(answer.data.decode()), path
    for path in ("/", "/results", "/explanations", "/metrics"):
        assert hub.ask("GET", path).status == 200, path
    assert hub.ask("GET", "/api/v1/results/1").data == old.encode()


def test_every_response_forbids_content_of_other_sites(hub: Served) -> None:
    filled(hub)
    for path in ("/", "/runs", "/results/10", "/api/v1/results", "/metrics", "/nowhere", "/healthz"):
        answer = hub.ask("GET", path)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy
    shown = "".join(page(hub, path) for path in ("/", "/runs", "/results/10", "/compare?baseline=10&other=11"))
    assert "style=" not in shown
    assert re.findall(r"<script(?! src=)", shown) == []


def test_a_browser_gets_a_missing_document_as_a_page(hub: Served) -> None:
    answer = hub.ask("GET", "/results/none", accept="text/html,*/*")
    assert (answer.status, "not found" in text(answer.data.decode())) == (404, True)


def test_style_and_script_may_be_cached_forever(hub: Served) -> None:
    for path in [each for each in links(page(hub, "/runs")) if each.startswith("/static/")]:
        assert "immutable" in hub.ask("GET", path).headers["cache-control"]
    assert hub.ask("GET", "/static/hub.css").status == 404


def test_readers_see_the_pages_and_events_of_a_restricted_hub(serve: Callable[..., Served], tmp_path: Path) -> None:
    readers = tmp_path / "readers"
    readers.write_text("grace:a good password\n", encoding="utf-8")
    hub = serve(readers_file=readers)
    for path in ("/", "/runs", "/runs/events", "/results"):
        answer = hub.ask("GET", path, accept="text/html")
        assert (answer.status, answer.headers["www-authenticate"].split()[0]) == (401, "Basic")
    assert hub.ask("GET", "/", authorization="Basic Z3JhY2U6YSBnb29kIHBhc3N3b3Jk").status == 200


def test_a_filter_value_with_several_spaces_finds_its_results(hub: Served) -> None:
    """A browser collapses spaces, and sends the collapsed text if an option has no value attribute."""
    hub.send(measured("1", [0.1], environment=place('a  "b"')))
    hub.send(measured("2", [0.1], environment=place("a")))
    values = [unescape(each) for each in re.findall(r'<option value="([^"]*)"', page(hub, "/results"))]
    assert 'a  "b"' in values
    shown = page(hub, f"/results?{urlencode({'pool': values[values.index('a') + 1]})}")
    assert [each for each in links(shown) if each.startswith("/results/")] == ["/results/1"]


def events(url: str) -> Any:
    return POOL.request("GET", f"{url}/runs/events", preload_content=False)


def heard(stream: Any, word: str) -> str:
    """Return what a stream sends until it contains a word."""
    received = ""
    while word not in received:
        received += stream.read1(65536).decode("utf-8", "replace")
    return received


def test_an_event_follows_each_change(hub: Served) -> None:
    stream = events(hub.url)
    assert "event: runs" in heard(stream, "No run is in progress")
    send(hub, run("r", title="a fresh run"))
    heard(stream, "a fresh run")
    assert "devbench_hub_streams 1.0" in hub.ask("GET", "/metrics").data.decode()
    stream.close()


def test_an_idle_stream_sends_keep_alive_comments(hub: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.hub.web.live.KEEP_ALIVE", 0.05)
    stream = events(hub.url)
    heard(stream, "No run is in progress")
    for _ in range(3):
        assert "event" not in heard(stream, "\n: ")
    stream.close()


@pytest.mark.needs("posix")
def test_open_streams_do_not_delay_the_shutdown(tmp_path: Path) -> None:
    hub = Process(str(tmp_path / "hub.db"))
    streams = [events(hub.url) for _ in range(5)]
    for each in streams:
        assert each.status == 200
        assert each.read(6) == b"event:"
    hub.process.terminate()
    assert hub.wait(30) in (0, -15)
    for each in streams:
        each.close()


@pytest.mark.needs("posix")
def test_a_hub_without_tokens_only_listens_on_loopback(tmp_path: Path) -> None:
    import subprocess
    import sys

    called = [sys.executable, "-m", "bench", "hub", "--database", str(tmp_path / "hub.db"), "--host", "0.0.0.0"]
    ran = subprocess.run([*called, "--port", "0"], capture_output=True, text=True, check=False)
    assert (ran.returncode, "--tokens-file" in ran.stderr) == (2, True)
    assert TOKEN not in ran.stderr
