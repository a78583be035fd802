"""A real run that sends to a real hub, each as its command starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3
from hubs import TOKEN, Process

pytestmark = [pytest.mark.once, pytest.mark.needs("posix")]

PROGRAM = '''
import os


def probes(p, ctx):
    """One thing to time, and what it can see."""
    from bench.workloads import Probe

    import tensorflow as tf

    assert not [name for name in os.environ if "TOKEN" in name]
    return {"sum": Probe(lambda: tf.reduce_sum(tf.ones(1000)))}
'''


def devbench(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in a folder as somebody who has the hub's token."""
    return subprocess.run(
        [sys.executable, "-m", "bench", *words],
        cwd=folder,
        env={**os.environ, "DEVBENCH_HUB_TOKEN": TOKEN, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def standing(tmp_path: Path) -> Iterator[Process]:
    """A hub in a process of its own."""
    started = Process(str(tmp_path / "hub.db"))
    yield started
    started.started.terminate()
    started.wait()


@pytest.mark.needs("no-nvidia-gpu")
def test_a_run_whose_device_is_not_there_is_a_failed_result_with_the_cause_and_the_fix(
    tmp_path: Path, standing: Process
) -> None:
    words = ["run", "matmul", "--backend", "cpu,cuda", "--hub", standing.url, "--run-id", "job-0"]
    ran = devbench(tmp_path, *words)
    assert ran.returncode == 3, ran.stderr + ran.stdout
    (listed,) = urllib3.request("GET", f"{standing.url}/api/v1/results").json()["results"]
    assert (listed["backend"], listed["status"], listed["failure"]) == ("cuda", "failed", "device")
    found = urllib3.request("GET", f"{standing.url}/api/v1/results/{listed['id']}").json()
    assert "no CUDA device" in found["failure"]["message"]
    assert found["failure"]["hint"]
    told = urllib3.request("GET", f"{standing.url}/api/v1/runs/job-0").json()
    assert (told["state"], told["run"]["results"]) == ("failed", [listed["id"]])
    assert "no CUDA device" in told["run"]["reason"]
    page = urllib3.request("GET", f"{standing.url}/results/{listed['id']}").data.decode()
    assert "no CUDA device" in page


def test_a_run_whose_program_fails_is_told_as_failed_with_the_reason(tmp_path: Path, standing: Process) -> None:
    (tmp_path / "mine.py").write_text("def as_written():\n    raise ValueError('no such luck')\n", encoding="utf-8")
    words = ["run", "./mine.py", "--hub", standing.url, "--run-id", "job-0"]
    ran = devbench(tmp_path, *words)
    assert ran.returncode == 1, ran.stderr + ran.stdout
    told = urllib3.request("GET", f"{standing.url}/api/v1/runs/job-0").json()
    assert told["state"] == "failed"
    assert told["run"]["reason"].startswith("1 of 1 failed; mine on cpu, as-written: ")
    assert "no such luck" in told["run"]["reason"]


def test_a_sweep_whose_points_fail_is_told_as_failed(tmp_path: Path, standing: Process) -> None:
    program = (
        "from pydantic import BaseModel\n\n\nclass Params(BaseModel):\n    size: int = 1\n\n\n"
        "def as_written(p):\n    raise ValueError('no such luck')\n"
    )
    (tmp_path / "mine.py").write_text(program, encoding="utf-8")
    words = ["sweep", "./mine.py", "--param", "size=1,2", "--hub", standing.url, "--run-id", "job-0"]
    ran = devbench(tmp_path, *words)
    assert ran.returncode == 1, ran.stderr + ran.stdout
    told = urllib3.request("GET", f"{standing.url}/api/v1/runs/job-0").json()
    assert told["state"] == "failed"
    assert "no such luck" in told["run"]["reason"]


@pytest.mark.essential
def test_a_run_sends_what_it_measures_and_its_worker_sees_no_secret(tmp_path: Path, standing: Process) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM, encoding="utf-8")
    words = ["run", "./mine.py", "--max-processes", "1", "--hub", standing.url, "--run-id", "job-0", "--json"]
    ran = devbench(tmp_path, *words)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    (measured,) = json.loads(ran.stdout)["results"]
    (file,) = (tmp_path / "results").glob("*.json")
    assert measured["id"].startswith("job-0-")
    there = urllib3.request("GET", f"{standing.url}/api/v1/results/{measured['id']}")
    assert there.data == file.read_bytes()
    told = urllib3.request("GET", f"{standing.url}/api/v1/runs/job-0").json()
    assert (told["state"], told["run"]["results"]) == ("finished", [measured["id"]])
    assert list((tmp_path / "results" / "outbox").glob("*.note")) == []
