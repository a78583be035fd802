"""The files that CIFAR-10 and MNIST are published in: told from their names, checked, and read.

A check costs little (names, shapes and types of arrays, sizes, checksums) and says which file is wrong, what is
wrong with it, and what to do. Pickles are read by an unpickler that makes NumPy arrays and nothing else.
"""

from __future__ import annotations

import hashlib
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from bench.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Arrays = tuple[NDArray[np.uint8], NDArray[np.uint8]]

T = TypeVar("T")
FIX = "Replace or delete it, name another folder with --data-dir, or use --data sample."
BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")


@dataclass(frozen=True)
class DataSet:
    """What is known of a published data set.

    Args:
        name: its name in `keras.datasets`.
        train: number of training examples.
        test: number of test examples.
        image: shape of one image.
        label: shape of one label beyond the example: (1,) for a column, () for a flat list.
        classes: number of classes.
        url: where its authors or Keras publish it.
        sha256: checksum of what is published there, as Keras holds it.
        saved_as: the name that Keras gives the download in its cache.
        forms: names of files or folders that hold the full set, in the order of preference.
    """

    name: str
    train: int
    test: int
    image: tuple[int, ...]
    label: tuple[int, ...]
    classes: int
    url: str
    sha256: str
    saved_as: str
    forms: tuple[str, ...]


SETS = {
    "cifar10": DataSet(
        "cifar10", 50_000, 10_000, (32, 32, 3), (1,), 10,
        url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        sha256="6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        saved_as="cifar-10-batches-py.tar.gz",
        forms=(
            "cifar10.npz",
            "cifar-10-batches-py",
            "cifar-10-batches-py-target/cifar-10-batches-py",
            "cifar-10-batches-py.tar.gz",
            "cifar-10-python.tar.gz",
        ),
    ),
    "mnist": DataSet(
        "mnist", 60_000, 10_000, (28, 28), (), 10,
        url="https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
        sha256="731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
        saved_as="mnist.npz",
        forms=("mnist.npz",),
    ),
}  # fmt: skip


def check(path: Path, dataset: DataSet) -> str:
    """Checks that `path` holds the full set, as far as that is cheap; returns its sha256.

    Raises:
        DataError: it does not.
    """
    try:
        if path.suffix == ".npz":
            check_arrays(path, dataset, full=True)
            return checksum(path)
        if path.is_dir():
            return _check_batches(path)
        found = checksum(path)
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror or error}", FIX) from error
    if found != dataset.sha256:
        raise DataError(f"{path} is not what {dataset.url} publishes: its sha256 is {found}, perhaps truncated", FIX)
    return found


def check_arrays(path: Path, dataset: DataSet, *, full: bool) -> None:
    """Checks the names, types and shapes of an .npz file's arrays; their number of examples too if `full`.

    Raises:
        DataError: something is not as `keras.datasets` has it.
    """
    headers = _guarded(path, lambda: _headers(path))
    for part, size in (("train", dataset.train), ("test", dataset.test)):
        for array, shape in ((f"x_{part}", dataset.image), (f"y_{part}", dataset.label)):
            if array not in headers:
                raise DataError(f"{path} has no array {array}: it holds {', '.join(sorted(headers)) or 'none'}", FIX)
            found, dtype = headers[array]
            wanted = (size if full else found[0] if found else size, *shape)
            if found != wanted or dtype.kind != "u" or dtype.itemsize != 1:
                raise DataError(f"{array} in {path} is {dtype} {found}, where uint8 {wanted} is expected", FIX)


def read(path: Path, dataset: DataSet) -> tuple[Arrays, Arrays]:
    """Reads ((x_train, y_train), (x_test, y_test)) from any of the set's forms.

    Raises:
        DataError: the file is truncated, damaged, or not of this form.
    """
    return _guarded(path, lambda: _read(path, dataset))


def checksum(path: Path) -> str:
    """The file's sha256, in hex."""
    digest = hashlib.sha256()
    _digest(path, digest)
    return digest.hexdigest()


def _guarded(path: Path, work: Callable[[], T]) -> T:
    """Turns whatever a damaged file makes NumPy, zip, tar or pickle raise into one error that names the file."""
    import zlib

    try:
        return work()
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror or error}", FIX) from error
    except (ValueError, KeyError, IndexError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is truncated or damaged: {str(error) or type(error).__name__}", FIX) from error
    except (tarfile.TarError, pickle.UnpicklingError, AttributeError) as error:
        raise DataError(f"{path} is not the published file: {error}", FIX) from error


def _headers(path: Path) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Shape and dtype of each array in an .npz file, from the arrays' headers alone."""
    from numpy.lib import format as npy

    headers = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            with archive.open(member) as file:
                version = npy.read_magic(file)
                reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
                shape, _, dtype = reader(file)
                headers[member.removesuffix(".npy")] = (shape, dtype)
    return headers


def _read(path: Path, dataset: DataSet) -> tuple[Arrays, Arrays]:
    import numpy as np

    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return (arrays["x_train"], arrays["y_train"]), (arrays["x_test"], arrays["y_test"])
    if path.is_dir():
        parts = []
        for name in BATCHES:
            with (path / name).open("rb") as file:
                parts.append(_batch(file, dataset))
        return _join(parts)
    with tarfile.open(path, "r:gz") as archive:
        files = (archive.extractfile(f"cifar-10-batches-py/{name}") for name in BATCHES)
        return _join([_batch(file, dataset) for file in files if file])


def _batch(file: IO[bytes], dataset: DataSet) -> Arrays:
    """One CIFAR-10 batch: images stored as planes of red, green, blue, turned into (n, 32, 32, 3)."""
    import numpy as np

    content = _NumpyUnpickler(file, encoding="bytes").load()
    height, width, channels = dataset.image
    planes = content[b"data"].reshape(-1, channels, height, width)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), np.array(content[b"labels"], np.uint8).reshape(-1, 1)


def _join(parts: list[Arrays]) -> tuple[Arrays, Arrays]:
    import numpy as np

    *train, test = parts
    return (np.concatenate([x for x, _ in train]), np.concatenate([y for _, y in train])), test


class _NumpyUnpickler(pickle.Unpickler):
    """Makes arrays, and refuses whatever else a pickle may ask for: a pickle can run any program."""

    def find_class(self, module: str, name: str) -> Any:
        import _codecs

        import numpy as np

        rebuild = np.zeros(0).__reduce__()[0]
        core = ("numpy.core.multiarray", "numpy._core.multiarray")
        allowed: dict[tuple[str, str], Any] = {(place, "_reconstruct"): rebuild for place in core}
        allowed |= {("numpy", "ndarray"): np.ndarray, ("numpy", "dtype"): np.dtype}
        allowed |= {("_codecs", "encode"): _codecs.encode}
        if (module, name) not in allowed:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no batch of images needs")
        return allowed[module, name]


def _check_batches(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in BATCHES:
        path = folder / name
        if not path.is_file():
            raise DataError(f"{folder} has no file {name}", FIX)
        if path.stat().st_size < 10_000 * 3_072:
            raise DataError(f"{path} is truncated: {path.stat().st_size} bytes can't hold 10,000 images", FIX)
        _digest(path, digest)
    return digest.hexdigest()


def _digest(path: Path, digest: Any) -> None:
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
