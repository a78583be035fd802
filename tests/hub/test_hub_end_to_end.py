"""Real runs that send to a real hub. Both are started by their commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3
from hubs import TOKEN, HubProcess

pytestmark = [pytest.mark.once, pytest.mark.needs("posix")]

PROGRAM = '''
import os


def probes(p, ctx):
    """Time one operation, and check the environment of the worker."""
    from bench.workloads import Probe

    import tensorflow as tf

    assert not [name for name in os.environ if "TOKEN" in name]
    return {"sum": Probe(lambda: tf.reduce_sum(tf.ones(1000)))}
'''


def devbench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run devbench in a folder, with the hub's token in the environment."""
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=folder,
        env={**os.environ, "DEVBENCH_HUB_TOKEN": TOKEN, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubProcess]:
    """A hub in its own process."""
    server = HubProcess(str(tmp_path / "hub.db"))
    yield server
    server.process.terminate()
    server.wait()


@pytest.mark.needs("no-nvidia-gpu")
def test_a_run_without_its_device_sends_a_failed_result_with_cause_and_fix(tmp_path: Path, hub: HubProcess) -> None:
    words = ["run", "matmul", "--backend", "cpu,cuda", "--hub", hub.url, "--run-id", "job-0"]
    completed = devbench(tmp_path, *words)
    assert completed.returncode == 3, completed.stderr + completed.stdout
    (listed,) = urllib3.request("GET", f"{hub.url}/api/v1/results").json()["results"]
    assert (listed["backend"], listed["status"], listed["failure"]) == ("cuda", "failed", "device")
    result = urllib3.request("GET", f"{hub.url}/api/v1/results/{listed['id']}").json()
    assert "no CUDA device" in result["failure"]["message"]
    assert result["failure"]["hint"]
    status = urllib3.request("GET", f"{hub.url}/api/v1/runs/job-0").json()
    assert (status["state"], status["run"]["results"]) == ("failed", [listed["id"]])
    assert "no CUDA device" in status["run"]["reason"]
    page = urllib3.request("GET", f"{hub.url}/results/{listed['id']}").data.decode()
    assert "no CUDA device" in page


def test_a_run_whose_program_fails_is_reported_with_the_reason(tmp_path: Path, hub: HubProcess) -> None:
    (tmp_path / "mine.py").write_text("def as_written():\n    raise ValueError('no such luck')\n", encoding="utf-8")
    words = ["run", "./mine.py", "--hub", hub.url, "--run-id", "job-0"]
    completed = devbench(tmp_path, *words)
    assert completed.returncode == 1, completed.stderr + completed.stdout
    status = urllib3.request("GET", f"{hub.url}/api/v1/runs/job-0").json()
    assert status["state"] == "failed"
    assert status["run"]["reason"].startswith("1 of 1 failed; mine on cpu, as-written: ")
    assert "no such luck" in status["run"]["reason"]


def test_a_sweep_whose_points_fail_is_reported_as_failed(tmp_path: Path, hub: HubProcess) -> None:
    program = (
        "from pydantic import BaseModel\n\n\nclass Params(BaseModel):\n    size: int = 1\n\n\n"
        "def as_written(p):\n    raise ValueError('no such luck')\n"
    )
    (tmp_path / "mine.py").write_text(program, encoding="utf-8")
    words = ["sweep", "./mine.py", "--param", "size=1,2", "--hub", hub.url, "--run-id", "job-0"]
    completed = devbench(tmp_path, *words)
    assert completed.returncode == 1, completed.stderr + completed.stdout
    status = urllib3.request("GET", f"{hub.url}/api/v1/runs/job-0").json()
    assert status["state"] == "failed"
    assert "no such luck" in status["run"]["reason"]


@pytest.mark.essential
def test_a_run_sends_its_results_and_its_worker_sees_no_secret(tmp_path: Path, hub: HubProcess) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM, encoding="utf-8")
    words = ["run", "./mine.py", "--max-processes", "1", "--hub", hub.url, "--run-id", "job-0", "--json"]
    completed = devbench(tmp_path, *words)
    assert completed.returncode == 0, completed.stderr + completed.stdout
    (measured,) = json.loads(completed.stdout)["results"]
    (file,) = (tmp_path / "results").glob("*.json")
    assert measured["id"].startswith("job-0-")
    response = urllib3.request("GET", f"{hub.url}/api/v1/results/{measured['id']}")
    assert response.data == file.read_bytes()
    status = urllib3.request("GET", f"{hub.url}/api/v1/runs/job-0").json()
    assert (status["state"], status["run"]["results"]) == ("finished", [measured["id"]])
    assert list((tmp_path / "results" / "outbox").glob("*.note")) == []
