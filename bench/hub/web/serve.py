"""The server of `devbench hub`, which runs until SIGTERM or SIGINT.

In the background it removes what is too old, and renews rows that another version of devbench wrote.
"""

from __future__ import annotations

import gc
import logging
import signal
import socket
import threading

import uvicorn
from fastapi import FastAPI

from bench.config.hub_settings import HubSettings
from bench.errors import UsageError
from bench.hub.db import renewal, retention
from bench.hub.db.database import Database
from bench.hub.web import app, heap, protocol
from bench.render.charts.vega_process import VEGA, Limits
from bench.signals import SIGNALS

GRACE = 5
"""Seconds that open requests get to finish at shutdown."""

CHARTS = Limits(charts=6, seconds=10, wait=2)
"""A chart takes 0.1 s on an idle machine. The start of the process takes 0.4 s. It holds 75 MB after one chart, but
130 MB after dozens. A page that would wait for longer shows its tables without the chart. So does a page whose request
has waited for long (`bench.hub.web.page_routes.CHART_SECONDS`)."""

GC_THRESHOLD = 100_000
"""Objects between two runs of the garbage collector. A document has thousands of objects, all of them reachable."""


def serve(settings: HubSettings) -> None:
    """Serve until SIGTERM or SIGINT. After that, the file of an SQLite database holds everything.

    Raises:
        SettingsError: a file of secrets cannot be read, or anyone on the network could write.
        UsageError: the database or the address cannot be used.
        DataError: a newer version of devbench wrote the database.
    """
    heap.share()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    database = Database(settings.database)
    application = app.create(settings, database)
    database.upgrade()
    listener = _listen(settings)
    stop = threading.Event()
    background = [
        threading.Thread(target=retention.run, args=(database, settings, stop), daemon=True),
        threading.Thread(target=renewal.run, args=(database, stop), daemon=True),
    ]
    for thread in background:
        thread.start()
    protocol.allow_files()
    VEGA.limits = CHARTS
    gc.collect()
    gc.set_threshold(GC_THRESHOLD, 50, 100)
    gc.freeze()  # modules are never collected
    host, port = listener.getsockname()[:2]
    address = f"[{host}]" if ":" in host else host
    url = f"http://{address}:{port}{settings.root_path}"
    log = logging.getLogger("devbench.hub")
    log.info("hub: %s", url)
    log.info("next: devbench run cifar --hub %s  # measure, and send the results", url)
    server = uvicorn.Server(uvicorn_config(application))
    for number in SIGNALS:  # uvicorn raises the signal again when it has stopped, which would end this process
        signal.signal(number, lambda *_: setattr(server, "should_exit", True))
    try:
        server.run(sockets=[listener])
    finally:
        stop.set()
        for thread in background:
            thread.join(GRACE)
        database.close()


def uvicorn_config(application: FastAPI, grace: int = GRACE) -> uvicorn.Config:
    """Return the configuration of uvicorn for a hub's application.

    Args:
        application: the application.
        grace: seconds that open requests get to finish at shutdown.
    """
    return uvicorn.Config(
        application,
        http=protocol.Protocol,
        ws="none",
        h11_max_incomplete_event_size=protocol.HEAD_BYTES,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=grace,
        server_header=False,
        lifespan="off",
    )


def _listen(settings: HubSettings) -> socket.socket:
    """Listen on the address of the settings. `::` stands for all interfaces, with IPv6 if the system has it."""
    host = settings.host
    try:
        if host == "::" and socket.has_dualstack_ipv6():
            return socket.create_server(("", settings.port), family=socket.AF_INET6, backlog=1024, dualstack_ipv6=True)
        (family, kind, proto, _, address), *_ = socket.getaddrinfo(
            "0.0.0.0" if host == "::" else host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listener = socket.socket(family, kind, proto)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror or error}",
            "Choose another address with --host and --port.",
        ) from None
    return listener
