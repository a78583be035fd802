"""Documents and requests that are made to keep a hub busy."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from hubs import HubProcess, RunningHub
from synthetic import busy_machine, explanation, killed, ladder_results, measured
from test_hub_runs import run

from bench.hub.db import documents
from bench.hub.db.database import Database
from bench.hub.pages import detail, lists
from bench.hub.problems import Problem
from bench.hub.web import live, threads
from bench.hub.web.protocol import CONNECTIONS
from bench.hub.web.threads import BESIDE_WRITES, THREADS
from bench.render.charts.vega_process import VEGA

pytestmark = pytest.mark.once

READERS = 60


def texts(document: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the object or list and the key or index of each text in a document."""
    for key, value in list(document.items() if isinstance(document, dict) else enumerate(document)):
        if isinstance(value, str):
            yield document, key
        elif isinstance(value, dict | list):
            yield from texts(value)


DOCUMENTS: dict[str, tuple[Any, Any]] = {
    "result": (documents.result, measured("1", [0.1], status="failed", failure=killed(), warnings=busy_machine())),
    "run": (documents.run, run("r", results=["1"], reason="why")),
    "explanation": (documents.explanation, explanation(ladder_results())),
}


@pytest.mark.parametrize("kind", DOCUMENTS)
@pytest.mark.parametrize("letter", ["x", "é", '"', "\\", "\n"])
def test_every_text_of_a_document_has_a_maximum_length(kind: str, letter: str) -> None:
    parse, valid = DOCUMENTS[kind]
    document = json.loads(valid.model_dump_json())
    places = list(texts(document))
    assert len(places) > 5
    for parent, key in places:
        before = parent[key]
        parent[key] = letter * (documents.LONGEST + 1)
        with pytest.raises(Problem, match=r"more than 10,000 characters") as caught:
            parse(json.dumps(document, ensure_ascii=letter != "é").encode())
        assert caught.value.status == 422
        parent[key] = before
    parse(json.dumps(document).encode())


def test_a_text_of_the_maximum_length_and_long_numbers_are_accepted() -> None:
    longest = '"é' * (documents.LONGEST // 2)
    result = measured("1", [0.1], notes=[longest])
    assert documents.result(result.model_dump_json().encode()).notes == [longest]
    spaces = result.model_dump_json().encode().replace(b",", b"," + b" " * 20_000, 1)
    assert documents.result(spaces).notes == [longest]


def test_of_very_many_errors_only_their_number_is_named() -> None:
    document = json.loads(run("r").model_dump_json())
    with pytest.raises(Problem, match=r"at 'results\.0': Input should be a valid string"):
        documents.run(json.dumps({**document, "results": [0, 1]}).encode())
    with pytest.raises(Problem, match=r"it has 5,000 errors"):
        documents.run(json.dumps({**document, **{f"unknown {n}": 0 for n in range(5000)}}).encode())


def test_what_lists_read_of_documents_has_a_maximum_size(hub: RunningHub) -> None:
    state = run("r", results=[f"{number:0100d}" for number in range(3000)])
    assert hub.put("/api/v1/runs/r", state.model_dump_json().encode()).status == 413
    large = measured("1", [0.1], notes=["x" * 9000] * 60)
    assert hub.put("/api/v1/results/1", large.model_dump_json().encode()).status == 413
    large.samples[0].notes, large.notes = large.notes, []
    assert hub.put("/api/v1/results/1", large.model_dump_json().encode()).status == 200


def test_the_name_of_a_parameter_has_a_maximum_length() -> None:
    body = measured("1", [0.1], params={"x" * 10_001: 1}).model_dump_json().encode()
    with pytest.raises(Problem, match="a text has more than"):
        documents.result(body)


@pytest.mark.essential
def test_pages_that_wait_for_their_charts_delay_neither_probes_nor_lists_nor_writes(hub: RunningHub) -> None:
    hub.send(measured("1", [0.1, 0.11]))
    with ThreadPoolExecutor(READERS) as pool:
        with VEGA._lock:  # as if a chart took for ever
            pages = [pool.submit(hub.request, "GET", "/results/1") for _ in range(READERS)]
            while VEGA._waiting < THREADS["chart"]:
                pass
            for path in (
                "/healthz",
                "/readyz",
                "/metrics",
                "/api/v1/results",
                "/",
                "/results",
                "/runs",
                "/explanations",
            ):
                assert hub.request("GET", path).status == 200
            assert hub.send(measured("2", [0.1])) == "created"
            assert not any(page.done() for page in pages)
        assert {page.result().status for page in pages} == {200}


def test_requests_that_wait_leave_connections_to_probes_and_writes(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(threads.MOST_WAITING) == set(THREADS) - {"write"}  # a write needs a token
    held = sum(threads.MOST_WAITING.values()) + sum(THREADS.values()) + live.MAXIMUM
    assert held < CONNECTIONS - 50
    monkeypatch.setitem(threads.MOST_WAITING, "chart", 5)
    hub.send(measured("1", [0.1, 0.11]))
    with ThreadPoolExecutor(READERS) as pool:
        with VEGA._lock:  # as if a chart took for ever
            pages = [pool.submit(hub.request, "GET", "/results/1") for _ in range(READERS)]
            refused = READERS - 5 - THREADS["chart"]
            while sum(page.done() for page in pages) < refused:
                pass
            assert {page.result().status for page in pages if page.done()} == {503}
            assert hub.request("GET", "/healthz").status == 200
        statuses = [page.result().status for page in pages]
    assert statuses.count(503) == refused
    assert statuses.count(200) == READERS - refused


@pytest.mark.essential
def test_fewer_pages_are_made_at_a_time_while_a_document_is_written(hub: RunningHub) -> None:
    hub.send(measured("1", [0.1, 0.11]))
    with ThreadPoolExecutor(READERS) as pool, VEGA._lock:  # as if a chart took for ever
        with hub.database._committing:  # as if a commit did
            writing = pool.submit(hub.send, measured("2", [0.1]))
            while not hub.database._queue:
                pass
            pages = [pool.submit(hub.request, "GET", "/results/1") for _ in range(READERS // 2)]
            while not VEGA._waiting:
                pass
            for _ in range(20):
                assert hub.request("GET", "/results").status == 200
                assert VEGA._waiting == BESIDE_WRITES["chart"] < THREADS["chart"]
            assert not writing.done()
        assert writing.result() == "created"
        while VEGA._waiting < THREADS["chart"]:
            pass
    assert {page.result().status for page in pages} == {200}


@pytest.mark.essential
def test_pages_wait_while_many_documents_arrive(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "PAGE_PATIENCE", 60)
    monkeypatch.setattr(threads, "CROWD", THREADS["write"] - 1)
    with ThreadPoolExecutor(READERS) as pool:
        with hub.database._committing:  # as if a commit took for ever
            writing = [pool.submit(hub.send, measured(str(number), [0.1])) for number in range(THREADS["write"])]
            while len(hub.database._queue) < THREADS["write"]:
                pass
            pages = [pool.submit(hub.request, "GET", path) for path in ("/", "/results", "/api/v1/results")]
            for _ in range(20):
                assert hub.request("GET", "/healthz").status == 200
            assert not any(page.done() for page in pages)
        assert {write.result() for write in writing} == {"created"}
        assert {page.result().status for page in pages} == {200}


@contextmanager
def crowd(hub: RunningHub, monkeypatch: pytest.MonkeyPatch, pool: ThreadPoolExecutor) -> Iterator[None]:
    """Keep a crowd of documents waiting for their commit."""
    monkeypatch.setattr(threads, "CROWD", THREADS["write"] - 1)
    with hub.database._committing:  # as if a commit took for ever
        writing = [pool.submit(hub.send, measured(f"w{number}", [0.1])) for number in range(THREADS["write"])]
        while len(hub.database._queue) < THREADS["write"]:
            pass
        yield
    assert {write.result() for write in writing} == {"created"}


@pytest.mark.essential
def test_pages_that_arrived_before_many_documents_let_them_pass_too(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "PAGE_PATIENCE", 60)
    begun: list[None] = []
    go_on = threading.Event()
    make = lists.explanations

    def make_slowly(*arguments: Any) -> Any:
        begun.append(None)
        go_on.wait(60)
        return make(*arguments)

    monkeypatch.setattr(lists, "explanations", make_slowly)
    with ThreadPoolExecutor(READERS) as pool:
        pages = [pool.submit(hub.request, "GET", "/explanations") for _ in range(READERS // 2)]
        while len(begun) < THREADS["read"]:
            pass
        with crowd(hub, monkeypatch, pool):
            go_on.set()
            while sum(page.done() for page in pages) < THREADS["read"]:
                pass
            for _ in range(200):
                assert hub.request("GET", "/healthz").status == 200
            assert len(begun) == THREADS["read"]
        assert {page.result().status for page in pages} == {200}


@pytest.mark.essential
def test_a_page_with_charts_is_followed_by_a_pause_while_many_documents_wait(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "PAGE_PATIENCE", 0)
    monkeypatch.setitem(threads.PAUSES, "chart", 1e9)
    monkeypatch.setattr(threads, "LONGEST_PAUSE", 60)
    hub.send(measured("1", [0.1, 0.11]))
    begun: list[None] = []
    make = detail.result

    def count(*arguments: Any) -> Any:
        begun.append(None)
        return make(*arguments)

    monkeypatch.setattr(detail, "result", count)
    with ThreadPoolExecutor(READERS) as pool:
        with crowd(hub, monkeypatch, pool):
            pages = [pool.submit(hub.request, "GET", "/results/1") for _ in range(10)]
            while not any(page.done() for page in pages):
                pass
            for _ in range(100):
                assert hub.request("GET", "/healthz").status == 200
            assert len(begun) == 1
        assert {page.result().status for page in pages} == {200}


@pytest.mark.essential
def test_pages_go_on_while_many_documents_wait(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "PAGE_PATIENCE", 0)
    hub.send(measured("1", [0.1, 0.11]))
    with ThreadPoolExecutor(READERS) as pool, crowd(hub, monkeypatch, pool):
        pages = [pool.submit(hub.request, "GET", path) for path in ["/results", "/results/1"] * 3]
        assert {page.result().status for page in pages} == {200}


@pytest.mark.essential
def test_a_hub_draws_results_with_long_names_and_names_them_shortly(tmp_path: Any) -> None:
    """The time of a label grows with the square of its length: 100 s for 100,000 characters."""
    database = Database(str(tmp_path / "hub.db"))
    server = HubProcess(str(tmp_path / "hub.db"))
    hub = RunningHub(server.url, database)
    try:
        for number, letter in enumerate("ab"):
            names = [letter * documents.LONGEST] * 10
            hub.send(measured(str(number), [0.1, 0.11, 0.12], workload=names[0], what_ifs=names))
        page = hub.request("GET", "/compare?baseline=0&other=1").data.decode()
    finally:
        server.kill()
        database.close()
    assert page.count("<svg") >= 2
    assert "did not draw" not in page
    assert not any("chart not drawn" in line for line in server.log)
