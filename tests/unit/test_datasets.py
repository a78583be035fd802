"""Data sets: the shipped sample, full sets in every published form, and downloads from a real server."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import pickle
import socket
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import datasets
from bench.datasets import download, files
from bench.datasets.files import SETS
from bench.errors import DataError, UnknownName

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set an empty Keras home, and no proxy for the loopback interface."""
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "keras" / "datasets"


@pytest.fixture(scope="session")
def full_mnist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("full") / "mnist.npz"
    images = np.zeros((60_000, 28, 28), np.uint8)
    images[:, 0, 0] = np.arange(60_000) % 251
    labels = (np.arange(60_000) % 10).astype(np.uint8)
    np.savez(path, x_train=images, y_train=labels, x_test=images[:10_000], y_test=labels[:10_000])
    return path


@pytest.fixture(scope="session")
def full_cifar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of batches in the published format: pickled planes of red, green and blue, with bytes as keys."""
    folder = tmp_path_factory.mktemp("full") / "cifar-10-batches-py"
    folder.mkdir()
    for number, name in enumerate(files.BATCHES):
        planes = np.zeros((10_000, 3, 32, 32), np.uint8)
        planes[:, 0], planes[:, 1], planes[:, 2] = number, 100, 200
        planes[:, :, 0, 1] = 7
        content = {b"data": planes.reshape(10_000, 3072), b"labels": [number] * 10_000, b"batch_label": b"batch"}
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))
    return folder


def small_tar(folder: Path, to: Path) -> str:
    """Write six batches of two images as a tar.gz and return its sha256."""
    with tarfile.open(to, "w:gz") as archive:
        for number, name in enumerate(files.BATCHES):
            content = {b"data": np.full((2, 3072), number, np.uint8), b"labels": [number, 9]}
            packed = pickle.dumps(content, protocol=2)
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(packed)
            archive.addfile(member, io.BytesIO(packed))
    assert folder.exists()
    return hashlib.sha256(to.read_bytes()).hexdigest()


def publish(monkeypatch: pytest.MonkeyPatch, name: str, sha256: str) -> None:
    """Set the published checksum of a data set."""
    monkeypatch.setitem(SETS, name, dataclasses.replace(SETS[name], sha256=sha256))


@pytest.mark.parametrize(("name", "image", "label"), [("cifar10", (32, 32, 3), (1,)), ("mnist", (28, 28), ())])
def test_the_shipped_sample_is_repeated_up_to_the_size_of_the_full_set(
    name: str, image: tuple[int, ...], label: tuple[int, ...]
) -> None:
    data = datasets.locate(name, "auto")
    assert data.kind == "sample"
    assert data.sha256 == hashlib.sha256((datasets.SAMPLES / f"{name}.npz").read_bytes()).hexdigest()
    (x, y), (x_test, y_test) = datasets.load(data, seed=1)
    dataset = SETS[name]
    assert x.shape == (dataset.train, *image)
    assert y.shape == (dataset.train, *label)
    assert x_test.shape == (10_000, *image)
    assert y_test.shape == (10_000, *label)
    assert {array.dtype for array in (x, y, x_test, y_test)} == {np.dtype(np.uint8)}
    assert set(np.unique(y)) == set(range(10))
    size = {"cifar10": 2_000, "mnist": 8_000}[name]
    assert (x[size] == x[0]).all()
    assert len(np.unique(x[:size].reshape(size, -1), axis=0)) > 0.99 * size


def test_the_package_ships_at_most_8_mb_of_images() -> None:
    assert (datasets.SAMPLES / "cifar10.npz").stat().st_size <= 8_000_000


def test_synthetic_data_are_uniform_and_depend_on_the_seed() -> None:
    data = datasets.locate("mnist", "synthetic")
    assert data.kind == "synthetic"
    (x, y), (x_test, _) = datasets.load(data, seed=3)
    assert x.shape == (60_000, 28, 28)
    assert len(x_test) == 10_000
    assert abs(float(x.mean()) - 127.5) < 1
    assert set(np.unique(y)) == set(range(10))
    assert (datasets.load(data, seed=3)[0][0] == x).all()
    assert (datasets.load(data, seed=4)[0][0] != x).any()


def test_a_user_without_a_home_folder_has_the_shipped_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("KERAS_HOME")
    monkeypatch.setattr(Path, "expanduser", unknown)
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    assert datasets.locate("cifar10", "auto").kind == "sample"
    assert datasets.cache_folder() == Path("/nowhere/.keras/datasets")


def test_the_hint_for_an_unknown_data_set_has_the_nearest_name() -> None:
    with pytest.raises(UnknownName) as caught:
        datasets.locate("cifar", "auto")
    assert "cifar10" in caught.value.hint


@pytest.mark.parametrize("source", ["argument", "variable", "keras"])
def test_a_full_set_is_found_and_read(
    source: str, full_mnist: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = full_mnist.parent
    if source == "variable":
        monkeypatch.setenv("DEVBENCH_DATA_DIR", str(folder))
    if source == "keras":
        home.mkdir(parents=True)
        (home / "mnist.npz").symlink_to(full_mnist)
    data = datasets.locate("mnist", "auto", folder if source == "argument" else None)
    assert data.kind == "full"
    assert Path(data.source or "").resolve() == full_mnist.resolve()
    assert data.sha256 == hashlib.sha256(full_mnist.read_bytes()).hexdigest()
    (x, y), _ = datasets.load(data, seed=1)
    assert len(x) == 60_000
    assert x[250, 0, 0] == 250
    assert y[13] == 3
    assert datasets.locate("mnist", "sample", folder).kind == "sample"


def test_a_folder_of_batches_is_read_in_order_with_channels_last(full_cifar: Path) -> None:
    data = datasets.locate("cifar10", "full", full_cifar.parent)
    (x, y), (x_test, y_test) = datasets.load(data, seed=1)
    assert x.shape == (50_000, 32, 32, 3)
    assert x_test.shape == (10_000, 32, 32, 3)
    assert x[25_000, 5, 6].tolist() == [2, 100, 200]
    assert x[0, 0, 1].tolist() == [7, 7, 7]
    assert x[0, 1, 0].tolist() == [0, 100, 200]
    assert y[::10_000].tolist() == [[0], [1], [2], [3], [4]]
    assert y_test[0].tolist() == [5]


def test_an_archive_with_the_published_checksum_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "cifar-10-python.tar.gz"
    publish(monkeypatch, "cifar10", small_tar(tmp_path, archive))
    data = datasets.locate("cifar10", "auto", tmp_path)
    (x, y), (x_test, _) = datasets.load(data, seed=1)
    assert x[:, 0, 0, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert y[:4].tolist() == [[0], [9], [1], [9]]
    assert (x_test == 5).all()


def test_an_archive_with_another_checksum_is_refused(tmp_path: Path) -> None:
    small_tar(tmp_path, tmp_path / "cifar-10-python.tar.gz")
    with pytest.raises(DataError, match=r"cifar-10-python\.tar\.gz is not the file from "):
        datasets.locate("cifar10", "auto", tmp_path)


def test_a_truncated_file_is_an_error_with_a_fix(full_mnist: Path, tmp_path: Path) -> None:
    (tmp_path / "mnist.npz").write_bytes(full_mnist.read_bytes()[:1_000_000])
    with pytest.raises(DataError, match=r"mnist\.npz is truncated or damaged") as caught:
        datasets.locate("mnist", "auto", tmp_path)
    assert "--data sample" in caught.value.hint


def test_a_file_with_damage_in_the_middle_is_an_error_when_it_is_read(full_mnist: Path, tmp_path: Path) -> None:
    content = bytearray(full_mnist.read_bytes())
    content[5_000_000] ^= 255
    (tmp_path / "mnist.npz").write_bytes(content)
    data = datasets.locate("mnist", "auto", tmp_path)
    with pytest.raises(DataError, match=r"mnist\.npz is truncated or damaged"):
        datasets.load(data, seed=1)


@pytest.mark.parametrize(
    ("arrays", "wrong"),
    [
        ({"x_train": np.zeros((10, 28, 28), np.uint8)}, r"x_train in .* is uint8 \(10, 28, 28\), not uint8 \(60000"),
        ({"x_train": np.zeros((60_000, 2, 2), np.uint8)}, r"x_train in .* is uint8 \(60000, 2, 2\)"),
        ({"y_train": np.zeros(60_000, np.float32)}, r"y_train in .* is float32"),
        ({"y_train": None}, r"has no array y_train, only x_test, x_train, y_test"),
    ],
)
def test_an_array_of_a_wrong_shape_type_or_name_is_an_error(arrays: dict[str, Any], wrong: str, tmp_path: Path) -> None:
    right = {
        "x_train": np.zeros((60_000, 28, 28), np.uint8),
        "y_train": np.zeros(60_000, np.uint8),
        "x_test": np.zeros((10_000, 28, 28), np.uint8),
        "y_test": np.zeros(10_000, np.uint8),
    }
    np.savez(tmp_path / "mnist.npz", **{k: v for k, v in (right | arrays).items() if v is not None})
    with pytest.raises(DataError, match=wrong):
        datasets.locate("mnist", "auto", tmp_path)


def test_a_folder_in_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "mnist.npz").mkdir()
    with pytest.raises(DataError, match=r"mnist\.npz cannot be read"):
        datasets.locate("mnist", "auto", tmp_path)


def test_a_missing_or_short_batch_is_an_error(full_cifar: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for name in files.BATCHES[:-1]:
        (folder / name).symlink_to(full_cifar / name)
    with pytest.raises(DataError, match="has no file test_batch"):
        datasets.locate("cifar10", "auto", tmp_path)
    (folder / "test_batch").write_bytes(b"short")
    with pytest.raises(DataError, match=r"test_batch is truncated: 5 bytes"):
        datasets.locate("cifar10", "auto", tmp_path)


def test_a_pickle_cannot_run_a_program(full_cifar: Path, tmp_path: Path) -> None:
    class Malicious:
        def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
            return Path.touch, (tmp_path / "it ran",)

    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for name in files.BATCHES[1:]:
        (folder / name).symlink_to(full_cifar / name)
    (folder / files.BATCHES[0]).write_bytes(pickle.dumps({"data": Malicious(), "pad": b"0" * 31_000_000}, protocol=2))
    data = datasets.locate("cifar10", "auto", tmp_path)
    with pytest.raises(DataError, match="it refers to"):
        datasets.load(data, seed=1)
    assert not (tmp_path / "it ran").exists()


def test_a_folder_that_cannot_be_read_is_an_error_with_a_fix(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exists(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", exists)  # root may read everything
    with pytest.raises(DataError, match=f"{home / 'mnist.npz'} cannot be read: Permission denied") as caught:
        datasets.locate("mnist", "auto")
    assert "KERAS_HOME" in caught.value.hint


def test_a_data_folder_that_does_not_exist_is_an_error_that_names_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match="nowhere does not exist") as caught:
        datasets.locate("mnist", "auto", tmp_path / "nowhere")
    assert "--data-dir" in caught.value.hint
    monkeypatch.setenv("DEVBENCH_DATA_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(DataError) as caught:
        datasets.locate("mnist", "auto")
    assert "DEVBENCH_DATA_DIR" in caught.value.hint


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder that a real HTTP server on the loopback interface serves. DEVBENCH_DATA_URL is its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    folder = tmp_path / "published"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("DEVBENCH_DATA_URL", f"http://127.0.0.1:{http.server_port}/")
        yield folder
        http.shutdown()
        thread.join()


def test_a_full_set_is_downloaded_once_into_the_cache_of_keras(
    server: Path, home: Path, full_mnist: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (server / "mnist.npz").write_bytes(full_mnist.read_bytes())
    publish(monkeypatch, "mnist", hashlib.sha256(full_mnist.read_bytes()).hexdigest())
    data = datasets.locate("mnist", "full")
    assert data.source == str(home / "mnist.npz")
    assert [path.name for path in home.iterdir()] == ["mnist.npz"]
    (server / "mnist.npz").unlink()
    assert datasets.locate("mnist", "full") == data
    assert len(datasets.load(data, seed=1)[0][0]) == 60_000


def test_an_archive_is_saved_under_the_name_that_keras_uses(
    server: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(monkeypatch, "cifar10", small_tar(server, server / "cifar-10-python.tar.gz"))
    data = datasets.locate("cifar10", "full")
    assert data.source == str(home / "cifar-10-batches-py.tar.gz")
    assert len(datasets.load(data, seed=1)[0][0]) == 10


def test_a_download_with_another_checksum_leaves_nothing_behind(server: Path, home: Path) -> None:
    (server / "mnist.npz").write_bytes(b"something else")
    with pytest.raises(DataError, match="is not the published mnist: its sha256 is") as caught:
        datasets.locate("mnist", "full")
    assert "--data sample" in caught.value.hint
    assert list(home.iterdir()) == []


def test_a_file_that_is_missing_on_the_mirror_is_an_error(server: Path) -> None:
    assert not list(server.iterdir())
    with pytest.raises(DataError, match=r"cannot download mnist from http://127.*: HTTP Error 404"):
        datasets.locate("mnist", "full")


def test_a_refused_connection_is_an_error_with_other_ways_to_get_the_set(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as refusing:
        refusing.bind(("127.0.0.1", 0))
        monkeypatch.setenv("DEVBENCH_DATA_URL", f"http://127.0.0.1:{refusing.getsockname()[1]}")
        with pytest.raises(DataError, match="refused") as caught:
            datasets.locate("cifar10", "full")
    for option in ("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz", "--data-dir", "DEVBENCH_DATA_URL"):
        assert option in caught.value.hint


@pytest.mark.needs("linux")
def test_a_host_that_does_not_answer_is_an_error_after_the_connection_timeout(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert download.CONNECT_SECONDS == 3
    monkeypatch.setattr(download, "CONNECT_SECONDS", 2.0)
    with socket.socket() as silent, socket.socket() as first, socket.socket() as second:
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        for caller in (first, second):
            caller.setblocking(False)
            caller.connect_ex(silent.getsockname())
        monkeypatch.setenv("DEVBENCH_DATA_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(DataError, match="timed out"):
            datasets.locate("mnist", "full")
    assert list(home.iterdir()) == []


def test_a_server_that_stops_sending_is_an_error_after_the_read_timeout(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "READ_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("DEVBENCH_DATA_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(DataError, match="timed out"):
            datasets.locate("mnist", "full")
    assert list(home.iterdir()) == []


def test_a_host_name_that_cannot_be_resolved_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVBENCH_DATA_URL", "http://nowhere.invalid/")
    with pytest.raises(DataError, match=r"cannot download mnist from http://nowhere\.invalid/mnist\.npz"):
        datasets.locate("mnist", "full")


def test_only_http_and_https_urls_are_supported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DEVBENCH_DATA_URL", tmp_path.as_uri())
    with pytest.raises(DataError, match="only http and https URLs are supported"):
        datasets.locate("mnist", "full")


def test_a_cache_that_is_not_writable_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "file"))
    with pytest.raises(DataError, match="cannot save mnist in") as caught:
        datasets.locate("mnist", "full")
    assert "KERAS_HOME" in caught.value.hint
