"""Tokens that may only write the documents of one run."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hubs import OTHER_TOKEN, TOKEN, RunningHub
from synthetic import explanation, ladder_results, measured
from test_hub_runs import run

from bench.publish.hub import run_token

pytestmark = pytest.mark.once

RUN = "job.8d3f.0"


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """SQLite only: the database makes no difference here."""
    return str(tmp_path / "hub.db")


@pytest.fixture
def own(hub: RunningHub) -> RunningHub:
    """The hub, used with the token of a run."""
    return RunningHub(hub.url, hub.database, run_token.make(TOKEN, RUN))


def status(hub: RunningHub, name: str, group: str = f"{RUN}-001", parent: str | None = None) -> int:
    """Return the status of the response to a result."""
    result = measured(name, [0.1], group=group, parent=parent)
    response = hub.put(f"/api/v1/results/{name}", result.model_dump_json().encode())
    if response.status == 403:
        problem = response.json()
        assert problem["type"] == "urn:devbench:problem:forbidden"
        assert f"this token may only write the run '{RUN}', and not '" in problem["detail"]
        assert problem["hint"] == f"Use it with --run-id {RUN}, or use another token."
    return response.status


def test_the_token_of_a_run_writes_its_state_results_and_explanations(own: RunningHub) -> None:
    assert own.put(f"/api/v1/runs/{RUN}", run(RUN).model_dump_json().encode()).status == 200
    assert status(own, f"{RUN}-002") == 200
    assert status(own, f"{RUN}-1003", parent=f"{RUN}-004") == 200
    document = explanation(ladder_results()).model_copy(update={"id": f"{RUN}-004"})
    assert own.put(f"/api/v1/explanations/{RUN}-004", document.model_dump_json().encode()).status == 200


def test_the_token_of_a_run_writes_no_result_of_another_run(own: RunningHub) -> None:
    for name in ("1", "job.8d3f.1-001", f"{RUN}0-001", f"{RUN}-a-001", f"{RUN}-001-001", RUN):
        assert status(own, name) == 403
        assert own.put(f"/api/v1/explanations/{name}", {}).status == 403


def test_the_token_of_a_run_adds_no_result_to_the_group_or_sweep_of_another_run(own: RunningHub) -> None:
    assert status(own, f"{RUN}-002", group="job.8d3f.1-001") == 403
    assert status(own, f"{RUN}-002", parent="job.8d3f.1-001") == 403


def test_the_token_of_a_run_writes_no_state_of_another_run(own: RunningHub) -> None:
    for name in ("job.8d3f.1", f"{RUN}-001", "job.8d3f"):
        assert own.put(f"/api/v1/runs/{name}", run(name).model_dump_json().encode()).status == 403


def test_the_token_of_a_run_does_not_read_where_reading_needs_a_password(
    serve: Callable[..., RunningHub], tmp_path: Path
) -> None:
    readers = tmp_path / "readers"
    readers.write_text("me:0123456789abcdef\n", encoding="utf-8")
    private = serve(readers_file=readers)
    login = "Basic " + base64.b64encode(b"me:0123456789abcdef").decode()
    for path in ("/", "/metrics", "/api/v1/results", "/openapi.json"):
        response = private.request("GET", path, authorization=f"Bearer {run_token.make(TOKEN, RUN)}", accept="*/*")
        assert response.status == 403
        assert response.json()["detail"] == f"this token may only write the run '{RUN}'"
        assert private.request("GET", path, authorization=f"Bearer {TOKEN}").status == 200
        assert private.request("GET", path, authorization=login).status == 200


def test_a_token_of_a_run_is_valid_as_long_as_the_token_that_it_was_made_from(
    serve: Callable[..., RunningHub], tmp_path: Path
) -> None:
    tokens = tmp_path / "rotated"
    tokens.write_text(f"{OTHER_TOKEN}\n{TOKEN}\n", encoding="utf-8")
    hub = serve(tokens_file=tokens)
    hub.token = run_token.make(TOKEN, RUN)
    assert status(hub, f"{RUN}-001") == 200
    tokens.write_text(f"{OTHER_TOKEN}\n", encoding="utf-8")
    assert status(hub, f"{RUN}-001") == 401


def test_a_forged_token_of_a_run_is_not_valid(hub: RunningHub) -> None:
    for token in (
        run_token.make("another-token-of-16", RUN),
        run_token.make(TOKEN, "job.8d3f.1").replace("job.8d3f.1", RUN),
        run_token.make(TOKEN, RUN)[:-1],
        f"{RUN}~",
        "~" + run_token.make(TOKEN, "").rpartition("~")[2],
        f"{RUN}~\xff",
    ):
        hub.token = token
        assert status(hub, f"{RUN}-001") == 401


def test_the_command_makes_a_token_that_only_its_owner_can_read(hub: RunningHub, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"{TOKEN}\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "bench",
        "run-token",
        "--run-id",
        RUN,
        "--hub-token-file",
        str(tmp_path / "tokens"),
    ]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    subprocess.run([*command, str(tmp_path / "own")], check=True)
    assert (tmp_path / "own").read_text(encoding="utf-8") == printed
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o600
    hub.token = printed.strip()
    assert status(hub, f"{RUN}-001") == 200
