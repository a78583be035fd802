"""Container images: how a run identifies its image, and whether its files survive the container."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.config.settings import load
from bench.errors import OutputError
from bench.machine.environment import deployment
from bench.machine.system import IMAGE_VARIABLE, image, is_ephemeral
from bench.model.environment import Deployment
from bench.store import files, mount_hint

ROOT = Path(__file__).resolve().parents[2]

MOUNTS = """30 1 0:26 / / rw - overlay overlay rw
31 30 0:27 / /tmp rw - tmpfs tmpfs rw
32 30 8:1 /mine /results rw - ext4 /dev/sda1 rw
"""


def root(folder: Path, mounts: str) -> Path:
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/mountinfo").write_text(mounts)
    return folder


def test_files_in_the_containers_layer_or_in_memory_are_ephemeral(tmp_path: Path) -> None:
    system_root = root(tmp_path, MOUNTS)
    assert is_ephemeral(Path("/srv"), system_root)
    assert is_ephemeral(Path("/tmp"), system_root)
    assert not is_ephemeral(Path("/results"), system_root)
    assert not is_ephemeral(Path("/results/cpu"), system_root)


def test_an_image_is_identified_by_its_variable_and_keeps_the_default_output_without_a_mount(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert image({}) is None
    assert image({IMAGE_VARIABLE: "devbench:cpu"}) == "devbench:cpu"
    monkeypatch.setenv(IMAGE_VARIABLE, "devbench:cpu")
    assert load().output == Path("results")


def test_the_image_id_comes_from_podman_if_it_reports_one(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".containerenv").write_text('engine="podman-5"\nimage="devbench:cpu"\nimageid="abc"\n')
    assert deployment(tmp_path, {IMAGE_VARIABLE: "devbench:cpu"}) == Deployment(image="devbench:cpu", image_id="abc")
    assert deployment(tmp_path / "none", {}) == Deployment()


def test_an_output_error_unrelated_to_permissions_does_not_mention_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(IMAGE_VARIABLE, "devbench:cpu")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError) as caught:
        files.prepare(tmp_path / "file")
    assert caught.value.hint == "Choose another folder with --output (or DEVBENCH_OUTPUT)."


HOSTS = "         0          0 4294967295\n"
ROOTLESS = "         0       1000          1\n         1     100000      65536\n"


@pytest.mark.parametrize(
    ("owner", "user_ids", "parts"),
    [
        ((4711, 4712), HOSTS, ["User 4711 owns it", "docker run --user 4711:4712 …"]),
        ((0, 0), HOSTS, ["root owns it", "chown", "`mkdir`", "docker run --user $(id -u):$(id -g) …"]),
        ((4711, 4712), "", ["User 4711 owns it"]),
        ((0, 0), ROOTLESS, ["podman run --userns=keep-id --user $(id -u):$(id -g) …"]),
        ((65534, 65534), ROOTLESS, ["podman run --userns=keep-id"]),
        ((1000, 1000), ROOTLESS, ["SELinux", "…:/results:z"]),
        ((1000, 1000), HOSTS, ["SELinux", "…:/results:z"]),
    ],
)
def test_the_hint_for_a_mounted_folder_that_is_not_writable_names_its_owner_and_container_options(
    owner: tuple[int, int], user_ids: str, parts: list[str]
) -> None:
    hint = mount_hint.advice(Path("/results"), owner, 1000, user_ids)
    assert [text for text in parts if text not in hint] == []
    assert ("userns" in hint) == ("--userns=keep-id" in " ".join(parts))


@pytest.mark.parametrize("page", ["README.md", "docs/containers.md", "bench/cli/run.py"])
def test_instructions_to_mount_a_results_folder_say_to_create_it_first(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    mount = text.index('-v "$PWD/results:/results"')
    assert "mkdir -p results" in text[mount - 200 : mount]
    assert '--user "$(id -u):$(id -g)"' in text[mount - 200 : mount + 200]
