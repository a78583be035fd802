"""Requests with odd values, methods and host names."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hubs import RunningHub
from synthetic import measured
from test_hub_runs import run, send

from bench.config.hub_settings import load
from bench.errors import SettingsError
from bench.hub.db.database import Database
from bench.hub.web import app

pytestmark = pytest.mark.once

LARGEST = 2**63 - 1


def cursor(*parts: Any) -> str:
    return base64.urlsafe_b64encode(" ".join(map(str, parts)).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "path",
    [
        *(f"/api/v1/results?{name}=a%00" for name in ("workload", "title", "series", "group", "parent", "cursor")),
        *(f"{page}?cursor={cursor(LARGEST, 'x')}" for page in ("/api/v1/results", "/api/v1/explanations", "/results")),
        *(f"{page}?cursor={cursor(LARGEST, LARGEST, 'x')}" for page in ("/api/v1/runs", "/runs")),
        *(f"/api/v1/runs?prefix={value}" for value in ("%00", "a%00b", "%FF", "%ED%A0%80")),
        *(f"{page}/a%00" for page in ("/results", "/runs", "/history", "/sweeps", "/explanations", "/static", "")),
        "/compare?baseline=%00&other=1",
    ],
)
def test_odd_values_are_the_requests_fault_on_every_database(hub: RunningHub, path: str) -> None:
    hub.send(measured("1", [0.1]))
    send(hub, run("r"))
    assert hub.request("GET", path).status < 500


def test_values_that_the_database_cannot_hold_give_status_400(hub: RunningHub) -> None:
    sqlite = hub.database.sqlite
    assert hub.request("GET", "/api/v1/runs?prefix=%00").status == (200 if sqlite else 400)
    assert hub.request("GET", f"/api/v1/runs?cursor={cursor(LARGEST, 1, 'x')}").status == (200 if sqlite else 400)


def test_a_title_of_a_run_has_a_maximum_length(hub: RunningHub) -> None:
    send(hub, run("r", title="x" * 500))
    document = run("r", title="x" * 500).model_dump_json().replace("x" * 500, "x" * 501)
    response = hub.put("/api/v1/runs/r", document.encode())
    assert (response.status, "title" in response.json()["detail"]) == (422, True)


@pytest.mark.essential
@pytest.mark.parametrize(
    "path", ["/", "/results/1", "/healthz", "/readyz", "/metrics", "/api/v1/results/1", "/openapi.json"]
)
def test_head_is_answered_like_get_without_the_body(hub: RunningHub, path: str) -> None:
    hub.send(measured("1", [0.1]))
    head, get = hub.request("HEAD", path), hub.request("GET", path)
    assert (head.status, head.data) == (200, b"")
    if path != "/metrics":
        assert head.headers["content-length"] == get.headers["content-length"]
    assert hub.request("HEAD", "/results/2").status == 404
    assert hub.request("HEAD", "/runs/events").status == 405


def test_browsers_do_not_store_pages_that_need_a_password(serve: Callable[..., RunningHub], tmp_path: Path) -> None:
    readers = tmp_path / "readers"
    readers.write_text("me:0123456789abcdef\n", encoding="utf-8")
    private, public = serve(readers_file=readers), serve()
    login = "Basic " + base64.b64encode(b"me:0123456789abcdef").decode()
    for path in ("/", "/runs", "/api/v1/results", "/metrics"):
        response = private.request("GET", path, authorization=login)
        assert (response.status, response.headers["cache-control"]) == (200, "no-store")
        assert private.request("GET", path).headers["cache-control"] == "no-store"
        assert public.request("GET", path).headers["cache-control"] == "no-cache"


def test_a_hub_with_allowed_hosts_answers_only_requests_that_name_one(serve: Callable[..., RunningHub]) -> None:
    hub = serve(allowed_hosts="hub.example.org,*.example.net")
    hosts = {
        "hub.example.org": 200,
        "hub.example.org:8080": 200,
        "a.example.net": 200,
        "evil.example.com": 400,
        "": 400,
        "10.1.2.3": 200,
        "10.1.2.3.evil.example.com": 400,
        "[::1]:8080": 200,
        "localhost:8080": 200,
    }
    assert {host: hub.request("GET", "/api/v1/results", host=host).status for host in hosts} == hosts
    paths = ("/healthz", "/readyz", "/")
    assert [hub.request("GET", path, host="evil.example.com").status for path in paths] == [200, 200, 400]


def test_an_invalid_pattern_of_a_host_is_refused(database: Database) -> None:
    for pattern in ("a*.example.org", "*example.org", "*"):
        with pytest.raises(SettingsError, match="--allowed-hosts"):
            app.create(load(allowed_hosts=pattern), database)
