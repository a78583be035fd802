"""A container's limits are the truth: threads follow its CPUs, throttling is told, and memory does not end it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.model.framework import ThreadPools
from images.engine import BRIEF, RESTRICTED, Container, run

pytestmark = [pytest.mark.once, pytest.mark.needs("container-engine"), pytest.mark.timeout(3600)]

SMALL = ("run", "matmul", "--param", "n=64", *BRIEF, "--json")

GROWS = """import numpy as np

def as_written():
    import tensorflow as tf
    held = []
    while True:
        held.append(np.ones(2**21))
        yield tf.constant(1.0) + 1.0
"""


@pytest.mark.parametrize("option", ["--cpus=1", "--cpuset-cpus=0"])
def test_threads_follow_the_containers_cpus(cpu: str, option: str) -> None:
    ended = run(cpu, *SMALL, options=(*RESTRICTED, option))
    assert ended.code == 0, ended.err
    (result,) = ended.results
    assert (result.spec.threads.intra, result.spec.threads.inter) == (1, 1)
    assert result.environment.host.cpu.limit == 1.0
    assert result.environment.framework is not None
    assert result.environment.framework.threads == ThreadPools(intra=1, inter=1)


def test_throttling_is_told(cpu: str) -> None:
    ended = run(cpu, "run", "matmul", "--param", "n=300", *BRIEF, "--json", options=(*RESTRICTED, "--cpus=0.3"))
    assert ended.code == 0, ended.err
    (result,) = ended.results
    telemetry = result.samples[0].telemetry
    assert telemetry is not None
    assert telemetry.throttled_periods
    assert telemetry.throttled_seconds


def test_a_worker_that_is_about_to_reach_the_memory_limit_is_ended_with_the_reason(cpu: str, tmp_path: Path) -> None:
    (tmp_path / "grows.py").write_text(GROWS)
    tmp_path.chmod(0o755)
    options = (*RESTRICTED, "--memory=1400m", f"--volume={tmp_path / 'grows.py'}:/grows.py:ro")
    with Container(cpu, "run", "/grows.py", "--max-time", "10m", "--json", options=options) as container:
        ended = container.ended()
        assert container.state("OOMKilled") == "false"
    assert ended.code == 1, ended.err
    (result,) = ended.results
    assert result.failure is not None
    assert result.failure.kind == "memory"
    assert "of 1.37 GiB in use" in result.failure.message
    assert "--memory" in result.failure.hint
    assert result.failure.signal is None


def test_doctor_tells_the_containers_memory_and_cpus(cpu: str) -> None:
    ended = run(cpu, "doctor", "--backend", "cpu", "--json", options=(*RESTRICTED, "--memory=3g", "--cpus=1"))
    checks = {each["name"]: each for each in ended.document["machine"]}
    assert "of a limit of 3.0 GiB" in checks["memory"]["detail"]
    assert "CPU quota of 1 on" in checks["CPUs"]["detail"]
    assert ended.code == 0, ended.out
