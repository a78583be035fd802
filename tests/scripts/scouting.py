"""Run only the process that finds out what the steps of a script are, and fork the processes of scripts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from bench.config.settings import RunSettings
from bench.model.failure import Failure
from bench.model.recognition import Recognition
from bench.model.result import Result
from bench.publish.recorder import Recorder
from bench.session.design import Design
from bench.session.process import StartProcess, spawn
from bench.session.recognize import recognize
from bench.session.session import Session
from bench.session.starting import variables_of
from bench.session.worker_servers import WorkerServers
from bench.study.plan import plan

SCOUT = "bench.session.recognize.SCOUT_SECONDS"
SECONDS = 120.0
"""Seconds after the first step in which a script may end. Under load, tracing alone takes many seconds."""


@contextmanager
def patient(start: StartProcess) -> Iterator[None]:
    """Start the process that recognizes with a given function, and let it wait for longer."""
    with patch("bench.session.launch.spawn_in", lambda env: start), patch(SCOUT, SECONDS):
        yield


@contextmanager
def servers_of_scripts(program: Path) -> Iterator[WorkerServers | None]:
    """Yield servers that have imported TensorFlow for scripts such as this one. None if this system has none."""
    if sys.platform != "linux":
        yield None
        return
    (group,) = plan([program], RunSettings())
    variables = variables_of(group.planned[0].spec)
    with WorkerServers() as servers:
        assert servers.wait(variables, 300), servers.problem
        yield servers


def scout(
    program: Path,
    output: Path,
    arguments: tuple[str, ...] = (),
    watch: int | None = None,
    start: StartProcess = spawn,
) -> Result:
    """Return a result that has been recognized, or the reason why not, and nothing else.

    Args:
        program: a script.
        output: folder for results.
        arguments: of the script.
        watch: number of the loop to time.
        start: starts the process.
    """
    settings = RunSettings(args=arguments, watch=watch, output=output)
    (group,) = plan([program], settings)
    session = Session(group, settings, Design(), Recorder(settings))
    try:
        with patient(start):
            recognize(session.launcher, session.results)
    finally:
        session.launcher.abandon()
    return session.results[0]


def trial(
    program: Path, output: Path, arguments: tuple[str, ...], start: StartProcess, servers: WorkerServers | None
) -> Result:
    """Recognize the steps of a script, look into them, and measure one short trial.

    Args:
        program: the script.
        output: folder for results.
        arguments: of the script.
        start: starts the process that recognizes.
        servers: start the process that measures. None if it is fresh.
    """
    settings = RunSettings(args=arguments, output=output, max_processes=1, max_time=300)
    (group,) = plan([program], settings)
    design = Design(cold_starts="none", separate_starts=0, inspect=True, full=False)
    session = Session(group, settings, design, Recorder(settings), servers)
    with patient(start), patch("bench.session.interleave.BLOCKS", 5):
        (result,) = session.run()
    return result


def recognition(result: Result) -> Recognition:
    """Return what was recognized."""
    assert result.failure is None, result.failure
    assert result.recognition is not None
    return result.recognition


def failure(result: Result) -> Failure:
    """Return why nothing was recognized."""
    assert result.failure is not None
    return result.failure
