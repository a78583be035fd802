"""The hub image: it runs as any user on a read-only root, keeps its results, and has no TensorFlow."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from synthetic import measured

from images.engine import RESTRICTED, Container, inspect, podman, run, shell

pytestmark = [pytest.mark.once, pytest.mark.needs("container-engine"), pytest.mark.timeout(3600)]

TOKEN = "0123456789abcdef"
REQUEST = """
import sys, urllib.request
method, path, body = sys.argv[1], sys.argv[2], sys.argv[3].encode() or None
headers = {"Authorization": "Bearer TOKEN", "Content-Type": "application/json"}
request = urllib.request.Request("http://127.0.0.1:8080" + path, body, headers, method=method)
with urllib.request.urlopen(request, timeout=60) as response:
    print(response.status, response.read().decode())
""".replace("TOKEN", TOKEN)


@pytest.fixture
def volume() -> Iterator[str]:
    """A new volume."""
    name = f"devbench-test-{secrets.token_hex(4)}"
    podman("volume", "create", name)
    yield name
    podman("volume", "rm", "--force", name)


def start_hub(hub: str, volume: str) -> Container:
    """Start a hub with its database in a volume."""
    options = (
        *RESTRICTED, "--tmpfs=/tmp", f"--volume={volume}:/var/lib/devbench", f"--env=DEVBENCH_HUB_TOKENS={TOKEN}",
    )  # fmt: skip
    container = Container(hub, options=options)
    container.wait_for("hub: http://")
    return container


def request(container: Container, method: str, path: str, body: str = "") -> str:
    """Send a request from inside the container, and return the status and body of the response."""
    return podman("exec", container.id, "/opt/devbench/bin/python", "-c", REQUEST, method, path, body).stdout


def test_the_hub_serves_and_keeps_results_across_a_restart(hub: str, volume: str) -> None:
    with start_hub(hub, volume) as container:
        assert request(container, "GET", "/readyz").startswith("200 ready")
        sent = measured("1", [0.1, 0.11]).model_dump_json()
        assert '"outcome":"created"' in request(container, "PUT", "/api/v1/results/1", sent)
        assert "<svg" in request(container, "GET", "/results/1")  # the image can draw charts
        assert container.stop(seconds=5) in (0, 143)
    with start_hub(hub, volume) as container:
        assert '"id":"1"' in request(container, "GET", "/api/v1/results")


def test_without_a_token_the_hub_refuses_to_start_on_all_interfaces(hub: str) -> None:
    completed = run(hub)
    assert completed.code == 2
    assert "everyone who can reach 0.0.0.0 could write to the hub" in completed.text()


def test_the_image_is_small_and_has_no_tensorflow(hub: str) -> None:
    assert shell(hub, "ls -d /opt/devbench/lib/python3*/site-packages/tensorflow* || true") == ""
    assert inspect(hub)["Size"] < 6e8
    assert inspect(hub)["Config"]["User"] == "1000"
