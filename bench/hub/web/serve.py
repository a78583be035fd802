"""`devbench hub`: serves until SIGTERM or SIGINT.

Meanwhile it removes what is too old, and makes rows anew that another devbench made.
"""

from __future__ import annotations

import gc
import logging
import socket
import threading

import uvicorn

from bench.config.hub_settings import HubSettings
from bench.errors import UsageError
from bench.hub.db import renewal, retention
from bench.hub.db.database import Database
from bench.hub.web import app, heap
from bench.render.charts.engine import ENGINE

GRACE = 5
"""Seconds that open requests have to end."""

CHARTS = 6
"""Drawn by one process, which takes 0.4 s to start, and holds 75 MB after its first chart but 130 after dozens."""

YOUNG = 100_000
"""Objects after which the collector looks for unreachable ones: a document is thousands, all of which are reached."""


def serve(settings: HubSettings) -> None:
    """Serves.

    Raises:
        SettingsError: a file of secrets can't be read, or writing would be open to a network.
        UsageError: the database or the address can't be used.
        DataError: the database is of a newer devbench.
    """
    heap.share()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    database = Database(settings.database)
    made = app.make(settings, database)
    database.upgrade()
    bound = _bound(settings)
    stop = threading.Event()
    beside = [
        threading.Thread(target=retention.keep, args=(database, settings, stop), daemon=True),
        threading.Thread(target=renewal.keep, args=(database, stop), daemon=True),
    ]
    for each in beside:
        each.start()
    config = uvicorn.Config(
        made,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE,
        server_header=False,
        lifespan="off",
    )
    ENGINE.charts = CHARTS
    gc.collect()
    gc.set_threshold(YOUNG, 50, 100)
    gc.freeze()  # modules stay
    where = bound.getsockname()
    host = f"[{where[0]}]" if ":" in where[0] else where[0]
    logging.getLogger("devbench.hub").info("hub: http://%s:%s%s", host, where[1], settings.root_path)
    try:
        uvicorn.Server(config).run(sockets=[bound])
    finally:
        stop.set()
        for each in beside:
            each.join(GRACE)
        database.close()


def _bound(settings: HubSettings) -> socket.socket:
    try:
        (family, kind, proto, _, where), *_ = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        bound = socket.socket(family, kind, proto)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(where)
        bound.listen(1024)
    except OSError as error:
        raise UsageError(
            f"the hub can't listen on {settings.host}, port {settings.port}: {error.strerror or error}",
            "Choose others with --host and --port.",
        ) from None
    return bound
