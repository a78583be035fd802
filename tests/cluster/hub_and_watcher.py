"""A real hub and a real watcher for the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from control_plane import ControlPlane
from rendering import ROOT

TOKEN = "0123456789abcdef0123456789abcdef"


@contextmanager
def run_hub(folder: Path) -> Iterator[str]:
    """Run a hub on SQLite in this process, and yield its address."""
    import hubs

    from bench.config.hub_settings import load
    from bench.hub.db.database import Database

    tokens = folder / "token"
    tokens.write_text(TOKEN + "\n", encoding="utf-8")
    database = Database(str(folder / "hub.db"))
    database.upgrade()
    url, stop = hubs.serve_in_thread(load(tokens_file=tokens), database)
    try:
        yield url
    finally:
        stop()
        database.close()


@contextmanager
def run_watcher(plane: ControlPlane, namespace: str, hub: str, folder: Path, *options: str) -> Iterator[Path]:
    """Run `devbench watch` with the service account of the chart, and yield the path of its log.

    Args:
        plane: control plane that it watches.
        namespace: namespace of the release.
        hub: address of the hub that it reports to.
        folder: folder with the token of the hub in the file `token`.
        options: further options.
    """
    account = folder / "account"
    account.mkdir()
    token = plane.kubectl("create", "token", "devbench-watcher", "-n", namespace)
    (account / "token").write_text(token, encoding="utf-8")
    (account / "ca.crt").write_bytes((plane.folder / "certificates" / "apiserver.crt").read_bytes())
    words = [
        *(sys.executable, "-m", "bench", "watch", "--namespace", namespace),
        *("--selector", "app.kubernetes.io/instance=devbench,app.kubernetes.io/component=run"),
        *("--server", plane.url, "--account", str(account)),
        *("--hub", hub, "--hub-token-file", str(folder / "token")),
        *options,
    ]
    log, environ = folder / "watcher.log", {**os.environ, "PYTHONPATH": str(ROOT)}
    with log.open("wb") as out:
        process = subprocess.Popen(words, stdout=out, stderr=out, env=environ, cwd=folder)
    try:
        yield log
        assert process.poll() is None, log.read_text(encoding="utf-8")
    finally:
        process.terminate()
        process.wait(20)
