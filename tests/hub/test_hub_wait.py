"""`devbench await` against a real hub, as `helm test` runs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hubs import TOKEN, RunningHub
from synthetic import measured

from bench.model.result import Stop
from bench.model.run_state import RunState, State
from bench.publish.hub.client import Client
from bench.publish.hub.errors import HubUnavailable
from bench.watcher.wait import wait

pytestmark = pytest.mark.once

STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


def put_run(hub: RunningHub, state: State = "finished", results: tuple[str, ...] = ("1",), reason: str = "") -> None:
    state_of_run = RunState(
        id="cpu.uid.0", state=state, title="cifar", started=STARTED, devbench="1", results=list(results), reason=reason
    )
    response = hub.put("/api/v1/runs/cpu.uid.0", state_of_run.model_dump_json().encode())
    assert response.status == 200, response.data


def await_(hub: RunningHub, *options: str) -> subprocess.CompletedProcess[str]:
    words = ["await", "cpu=cifar", "--hub", hub.url, *options]
    return subprocess.run([sys.executable, "-m", "bench", *words], capture_output=True, text=True, timeout=120)


def test_the_wait_ends_with_the_outcome_of_the_run(hub: RunningHub) -> None:
    hub.send(measured("1", [0.1], stop=Stop(reason="target", trials=1)))
    put_run(hub)
    ended = await_(hub)
    assert (ended.returncode, ended.stdout) == (0, "cpu cifar: 1 good result\n")
    assert ended.stderr == f"next:\n  {hub.url}/  # the results, in a browser\n"


def test_a_hub_that_only_known_readers_may_read_requires_the_token(
    serve: Callable[..., RunningHub], tmp_path: Path
) -> None:
    (tmp_path / "readers").write_text("someone:0123456789abcdef\n", encoding="utf-8")
    hub = serve(readers_file=tmp_path / "readers")
    put_run(hub, state="failed", results=(), reason="OOMKilled")
    refused = await_(hub)
    assert "reading requires a user and a password" in refused.stderr
    assert "--hub-token-file" in refused.stderr
    (tmp_path / "token").write_text(TOKEN, encoding="utf-8")
    ended = await_(hub, "--hub-token-file", str(tmp_path / "token"))
    assert (refused.returncode, ended.returncode) == (1, 1)
    assert "failed: OOMKilled" in ended.stderr


def test_the_wait_goes_on_while_the_hub_is_unavailable(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    def get(path: str) -> object:
        failures.append(path)
        if len(failures) == 1:
            raise HubUnavailable("the hub restarts")
        return client.get(path)

    monkeypatch.setattr("bench.watcher.wait.PAUSE", 0.0)
    failures: list[str] = []
    client = Client(hub.url, None)
    hub.send(measured("1", [0.1], stop=Stop(reason="target", trials=1)))
    put_run(hub)
    logged: list[str] = []
    wait({"cpu": ["cifar"]}, get, 60, logged.append)
    assert logged == ["cpu cifar: 1 good result"]
