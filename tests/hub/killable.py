"""A hub and a sender in processes that tests kill. They are forked from a process with all imports."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from hubs import TOKEN
from synthetic import explanation, ladder_results, measured

from bench.cli.app import app
from bench.config.settings import load
from bench.errors import DevbenchError
from bench.model.result import Stop
from bench.publish.hub import client, reporter
from bench.publish.recorder import Recorder

FORKS: Any = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["killable", "bench.hub.web.serve", "bench.hub.web.app", "psycopg", "alembic.command", "urllib3"]
)

RESULTS = 4
"""Results per run."""

BODY = [0.1 + n / 1000 for n in range(20)]


def start(target: object, *words: str) -> BaseProcess:
    """Start one of the functions below in its own process."""
    process: BaseProcess = FORKS.Process(target=target, args=words, daemon=True)
    process.start()
    return process


def serve(database: str, port: str) -> None:
    """Serve until killed."""
    from bench.config.hub_settings import load as load_hub
    from bench.hub.web import serve as serving

    os.environ["DEVBENCH_HUB_TOKENS"] = TOKEN
    serving.serve(load_hub(database=database, port=port))


def measure(folder: str, hub: str) -> None:
    """Measure runs until killed: send partial and then complete results and explanations."""
    os.environ["DEVBENCH_HUB_TOKEN"] = TOKEN
    client.BACKOFF, reporter.HEARTBEAT = 0.01, 0.05
    path = Path(folder)
    settings = load(hub=hub, output=path)
    first_number = len(list(path.glob("*.json")))
    complete = explanation(ladder_results())
    for first in itertools.count(first_number, RESULTS):
        recorder = Recorder(settings)
        with recorder.reporting("cifar"):
            for n in range(first, first + RESULTS):
                name = f"{n:05d}-{os.getpid()}"
                recorder.save(measured(name, BODY[:3], status="partial", stop=None))
                recorder.save(measured(name, BODY, stop=Stop(reason="target", trials=20)))
            for label in ("partial", "complete"):
                document = complete.model_copy(update={"id": f"why-{name}", "label": label})
                recorder.save_explanation(document)


def push(folder: str, hub: str) -> None:
    """Run `devbench push`, until it has ended or is killed."""
    os.environ["DEVBENCH_HUB_TOKEN"] = TOKEN
    client.BACKOFF = 0.01
    sys.stdout = sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    app(["push", folder, "--hub", hub])


def finish(folder: str, hub: str) -> None:
    """Deliver the documents in the outbox, as the next run does."""
    os.environ["DEVBENCH_HUB_TOKEN"] = TOKEN
    with Recorder(load(hub=hub, output=Path(folder)), warn=_fail).reporting("last"):
        pass


def _fail(text: str) -> None:
    raise DevbenchError(text)
