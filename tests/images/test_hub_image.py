"""The hub's image: it serves as anybody, on a root that can't be written, keeps what it got, and has no TensorFlow."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from synthetic import measured

from images.engine import RESTRICTED, Container, inspect, podman, run, shell

pytestmark = [pytest.mark.once, pytest.mark.needs("container-engine"), pytest.mark.timeout(3600)]

TOKEN = "0123456789abcdef"
ASK = """
import sys, urllib.request
method, path, body = sys.argv[1], sys.argv[2], sys.argv[3].encode() or None
headers = {"Authorization": "Bearer TOKEN", "Content-Type": "application/json"}
asked = urllib.request.Request("http://127.0.0.1:8080" + path, body, headers, method=method)
with urllib.request.urlopen(asked, timeout=60) as answer:
    print(answer.status, answer.read().decode())
""".replace("TOKEN", TOKEN)


@pytest.fixture
def volume() -> Iterator[str]:
    """A new volume."""
    name = f"devbench-test-{secrets.token_hex(4)}"
    podman("volume", "create", name)
    yield name
    podman("volume", "rm", "--force", name)


def started(hub: str, volume: str) -> Container:
    """A hub that serves from a volume."""
    options = (
        *RESTRICTED, "--tmpfs=/tmp", f"--volume={volume}:/var/lib/devbench", f"--env=DEVBENCH_HUB_TOKENS={TOKEN}",
    )  # fmt: skip
    made = Container(hub, options=options)
    made.until("hub: http://")
    return made


def ask(container: Container, method: str, path: str, body: str = "") -> str:
    """What the hub answers to someone within its container."""
    return podman("exec", container.id, "/opt/devbench/bin/python", "-c", ASK, method, path, body).stdout


def test_it_serves_takes_results_and_still_has_them_when_it_is_started_again(hub: str, volume: str) -> None:
    with started(hub, volume) as container:
        assert ask(container, "GET", "/readyz").startswith("200 ready")
        sent = measured("1", [0.1, 0.11]).model_dump_json()
        assert '"outcome":"created"' in ask(container, "PUT", "/api/v1/results/1", sent)
        assert "<svg" in ask(container, "GET", "/results/1")  # what draws charts is there
        assert container.stop(seconds=5) in (0, 143)
    with started(hub, volume) as container:
        assert '"id":"1"' in ask(container, "GET", "/api/v1/results")


def test_without_a_token_it_does_not_let_the_whole_network_write(hub: str) -> None:
    ended = run(hub)
    assert ended.code == 2
    assert "everyone who can reach 0.0.0.0 could write to the hub" in ended.said()


def test_it_has_no_tensorflow_and_is_small(hub: str) -> None:
    assert shell(hub, "ls -d /opt/devbench/lib/python3*/site-packages/tensorflow* || true") == ""
    assert inspect(hub)["Size"] < 6e8
    assert inspect(hub)["Config"]["User"] == "1000"
