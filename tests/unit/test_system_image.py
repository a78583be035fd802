"""What is known of a container of ours: its image, and whether what is written in it lasts."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import OutputError
from bench.machine.environment import deployment
from bench.output import store
from bench.settings import load
from bench.system import IMAGE_VARIABLE, fleeting, image

MOUNTS = """30 1 0:26 / / rw - overlay overlay rw
31 30 0:27 / /tmp rw - tmpfs tmpfs rw
32 30 8:1 /mine /results rw - ext4 /dev/sda1 rw
"""


def root(folder: Path, mounts: str) -> Path:
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/mountinfo").write_text(mounts)
    return folder


def test_what_lies_in_the_containers_own_layer_or_in_memory_ends_with_it(tmp_path: Path) -> None:
    here = root(tmp_path, MOUNTS)
    assert fleeting(Path("/srv"), here)
    assert fleeting(Path("/tmp"), here)
    assert not fleeting(Path("/results"), here)
    assert not fleeting(Path("/results/cpu"), here)


def test_an_image_is_known_by_its_variable_and_changes_no_default_where_nothing_is_mounted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert image({}) is None
    assert image({IMAGE_VARIABLE: "devbench:cpu"}) == "devbench:cpu"
    monkeypatch.setenv(IMAGE_VARIABLE, "devbench:cpu")
    assert load().output == Path("results")


def test_the_id_of_the_image_is_taken_from_podman_where_it_tells_it(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".containerenv").write_text('engine="podman-5"\nimage="devbench:cpu"\nimageid="abc"\n')
    assert deployment(tmp_path, {IMAGE_VARIABLE: "devbench:cpu"}) == {"image": "devbench:cpu", "image_id": "abc"}
    assert deployment(tmp_path / "none", {}) == {}


def test_in_an_image_a_folder_that_can_not_be_written_is_explained_by_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError) as plain:
        store.prepare(tmp_path / "file")
    assert "--user" not in plain.value.hint
    monkeypatch.setenv(IMAGE_VARIABLE, "devbench:cpu")
    with pytest.raises(OutputError) as inside:
        store.prepare(tmp_path / "file")
    assert "--user $(id -u):$(id -g)" in inside.value.hint
