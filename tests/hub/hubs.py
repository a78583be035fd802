"""A pytest plugin with hubs: real servers on real databases, and a simple client.

The hub's packages are imported only where they are used. The second environment, with TensorFlow 2.10, lacks them; all
tests here are marked `once`, so it does not collect them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import postgres
import pytest
import urllib3

if TYPE_CHECKING:
    from bench.config.hub_settings import HubSettings
    from bench.hub.db.database import Database
    from bench.model.result import Result

HERE = Path(__file__).parent
TOKEN = "0123456789abcdef"
OTHER_TOKEN = "fedcba9876543210"
POOL = urllib3.PoolManager(retries=False, timeout=60, maxsize=60)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip this folder if none of its tests would run."""
    ours = collection_path.is_relative_to(HERE) or collection_path == HERE.parent / "browser" / "test_hub.py"
    return True if ours and "not once" in config.getoption("-m") else None


@dataclass
class RunningHub:
    """A hub that is running."""

    url: str
    database: Database
    token: str = TOKEN
    headers: dict[str, str] = field(default_factory=dict)

    def request(self, method: str, path: str, body: bytes | None = None, **headers: str) -> urllib3.BaseHTTPResponse:
        converted = {name.replace("_", "-"): value for name, value in headers.items()}
        return POOL.request(method, self.url + path, body=body, headers={**self.headers, **converted})

    def get(self, path: str, **headers: str) -> Any:
        response = self.request("GET", path, None, **headers)
        assert response.status == 200, (response.status, response.data)
        return response.json()

    def put(self, path: str, document: Any, **headers: str) -> urllib3.BaseHTTPResponse:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        defaults = {"content_type": "application/json", "authorization": f"Bearer {self.token}", **headers}
        return self.request("PUT", path, body, **defaults)

    def send(self, result: Result) -> str:
        """Send a result and return the outcome."""
        response = self.put(f"/api/v1/results/{result.id}", result.model_dump_json().encode())
        assert response.status == 200, response.data
        outcome: str = response.json()["outcome"]
        return outcome


@pytest.fixture(scope="session")
def cluster() -> Iterator[postgres.Cluster]:
    """A PostgreSQL server, for tests that need "postgresql"."""
    with postgres.cluster() as server:
        yield server


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=[pytest.mark.needs("postgresql"), pytest.mark.variant])]
)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The name of a new database: SQLite, then PostgreSQL."""
    if request.param == "sqlite":
        return str(tmp_path / "hub.db")
    url: str = request.getfixturevalue("cluster").database()
    return url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """The open database, with its tables."""
    from bench.hub.db.database import Database

    database = Database(database_url)
    database.upgrade()
    yield database
    database.close()


@pytest.fixture
def serve(database: Database, tmp_path: Path) -> Iterator[Callable[..., RunningHub]]:
    """A function that starts hubs on the database, in threads of this process, with the given settings."""
    from bench.config.hub_settings import load

    tokens = tmp_path / "tokens"
    tokens.write_text(f"# two tokens, so that one can be removed\n{TOKEN}\n{OTHER_TOKEN}\n", encoding="utf-8")
    stop_functions: list[Callable[[], None]] = []

    def started(**options: Any) -> RunningHub:
        url, stop = serve_in_thread(load(**{"tokens_file": tokens, **options}), database)
        stop_functions.append(stop)
        return RunningHub(url, database)

    yield started
    for stop in stop_functions:
        stop()


@pytest.fixture
def hub(serve: Callable[..., RunningHub]) -> RunningHub:
    """A hub that everyone may read, and that requires a token for writing."""
    return serve()


def serve_in_thread(settings: HubSettings, database: Database) -> tuple[str, Callable[[], None]]:
    """Start a hub, and return its address and a function that stops it."""
    import socket

    import uvicorn

    from bench.hub.web import app
    from bench.hub.web.serve import uvicorn_config

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    application = app.create(settings, database)
    server = uvicorn.Server(uvicorn_config(application, grace=2))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()

    def stop() -> None:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()
        listener.close()

    return f"http://127.0.0.1:{listener.getsockname()[1]}", stop


class HubProcess:
    """A hub in its own process, as `devbench hub` starts it."""

    def __init__(self, database: str, *options: str, **environ: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench", "hub", "--database", database, "--port", "0", *options],
            stderr=subprocess.PIPE,
            env={**os.environ, "DEVBENCH_HUB_TOKENS": TOKEN, **environ},
            text=True,
        )
        assert self.process.stderr
        self.log: list[str] = []
        for line in self.process.stderr:
            self.log.append(line)
            if line.startswith("hub: http"):
                self.url = line.split()[1]
                break
        else:
            raise AssertionError(f"the hub did not start: {''.join(self.log)}")
        self.reader = threading.Thread(target=self._drain, daemon=True)
        self.reader.start()

    def _drain(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.log.append(line)

    def kill(self) -> None:
        """Kill the process, as a crash would."""
        self.process.kill()
        self.wait()

    def wait(self, timeout: float = 60) -> int:
        """Wait until the process has ended, and return its exit code."""
        code = self.process.wait(timeout)
        self.reader.join(10)
        assert self.process.stderr
        self.process.stderr.close()
        return code
