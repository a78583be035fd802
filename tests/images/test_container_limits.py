"""Limits of a container: threads follow its CPUs, throttling is recorded, and the OOM killer does not end it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.model.framework import ThreadPools
from images.engine import BRIEF, RESTRICTED, Container, run

pytestmark = [pytest.mark.once, pytest.mark.needs("container-engine"), pytest.mark.timeout(3600)]

SMALL = ("run", "matmul", "--param", "n=64", *BRIEF, "--json")

GROWING_PROGRAM = """import numpy as np

def as_written():
    import tensorflow as tf
    arrays = []
    while True:
        arrays.append(np.ones(2**21))
        yield tf.constant(1.0) + 1.0
"""


@pytest.mark.parametrize("option", ["--cpus=1", "--cpuset-cpus=0"])
def test_threads_follow_the_containers_cpus(cpu: str, option: str) -> None:
    completed = run(cpu, *SMALL, options=(*RESTRICTED, option))
    assert completed.code == 0, completed.err
    (result,) = completed.results
    assert (result.spec.threads.intra, result.spec.threads.inter) == (1, 1)
    assert result.environment.host.cpu.limit == 1.0
    assert result.environment.framework is not None
    assert result.environment.framework.threads == ThreadPools(intra=1, inter=1)


def test_throttling_is_recorded(cpu: str) -> None:
    completed = run(cpu, "run", "matmul", "--param", "n=300", *BRIEF, "--json", options=(*RESTRICTED, "--cpus=0.3"))
    assert completed.code == 0, completed.err
    (result,) = completed.results
    telemetry = result.samples[0].telemetry
    assert telemetry is not None
    assert telemetry.throttled_periods
    assert telemetry.throttled_seconds


def test_a_worker_close_to_the_memory_limit_is_ended_with_the_reason(cpu: str, tmp_path: Path) -> None:
    (tmp_path / "growing.py").write_text(GROWING_PROGRAM)
    tmp_path.chmod(0o755)
    options = (*RESTRICTED, "--memory=1400m", f"--volume={tmp_path / 'growing.py'}:/growing.py:ro")
    with Container(cpu, "run", "/growing.py", "--max-time", "10m", "--json", options=options) as container:
        completed = container.complete()
        assert container.state("OOMKilled") == "false"
    assert completed.code == 1, completed.err
    (result,) = completed.results
    assert result.failure is not None
    assert result.failure.kind == "memory"
    assert "of 1.37 GiB in use" in result.failure.message
    assert "--memory" in result.failure.hint
    assert result.failure.signal is None


def test_doctor_reports_the_memory_and_cpus_of_the_container(cpu: str) -> None:
    completed = run(cpu, "doctor", "--backend", "cpu", "--json", options=(*RESTRICTED, "--memory=3g", "--cpus=1"))
    checks = {check["name"]: check for check in completed.document["machine"]}
    assert "of a limit of 3.0 GiB" in checks["memory"]["detail"]
    assert "CPU quota of 1 on" in checks["CPUs"]["detail"]
    assert completed.code == 0, completed.out
