"""Checks and reads the files in which CIFAR-10 and MNIST are published.

A check is cheap: it looks at names, shapes and types of arrays, at sizes and at checksums. Its error names the file,
the problem and the fix. Pickles are read by an unpickler that creates NumPy arrays and nothing else.
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
FIX = "Replace or delete the file, choose another folder with --data-dir, or use --data sample."
BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")


@dataclass(frozen=True)
class DataSet:
    """A published data set.

    Args:
        name: its name in `keras.datasets`.
        train: number of training examples.
        test: number of test examples.
        image: shape of one image.
        label: shape of one label: (1,) for a column, () for a flat list.
        classes: number of classes.
        url: where its authors or Keras publish it.
        sha256: checksum of the published file, as in Keras' source.
        saved_as: the name of the file in Keras' cache.
        forms: names of files or folders that hold the full set, in order of preference.
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
    """Check cheaply that `path` holds the full set, and return its sha256.

    An archive must have the published checksum. Of an .npz file, only the headers of the arrays are checked. Of a
    folder, only the names and sizes of its files are checked.

    Raises:
        DataError: it does not hold the full set.
    """
    try:
        if path.suffix == ".npz":
            check_arrays(path, dataset, full=True)
            return checksum(path)
        if path.is_dir():
            return _check_batches(path)
        sha256 = checksum(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}", FIX) from error
    if sha256 != dataset.sha256:
        message = f"{path} is not the file from {dataset.url}: its sha256 is {sha256}. It may be truncated"
        raise DataError(message, FIX)
    return sha256


def check_arrays(path: Path, dataset: DataSet, *, full: bool) -> None:
    """Check that names, types and shapes of an .npz file's arrays are those of `keras.datasets`.

    Args:
        path: the file.
        dataset: the data set.
        full: also check the number of examples.

    Raises:
        DataError: an array is missing or different.
    """
    headers = _translate_errors(path, lambda: _headers(path))
    for part, size in (("train", dataset.train), ("test", dataset.test)):
        for array, shape in ((f"x_{part}", dataset.image), (f"y_{part}", dataset.label)):
            if array not in headers:
                raise DataError(f"{path} has no array {array}, only {', '.join(sorted(headers)) or 'none'}", FIX)
            actual, dtype = headers[array]
            expected = (size if full else actual[0] if actual else size, *shape)
            if actual != expected or dtype.kind != "u" or dtype.itemsize != 1:
                raise DataError(f"{array} in {path} is {dtype} {actual}, not uint8 {expected}", FIX)


def read(path: Path, dataset: DataSet) -> tuple[Arrays, Arrays]:
    """Return ((x_train, y_train), (x_test, y_test)) from any of the set's forms.

    Raises:
        DataError: the file is truncated, damaged, or of another form.
    """
    return _translate_errors(path, lambda: _read(path, dataset))


def checksum(path: Path) -> str:
    """Return the file's sha256 as hex digits."""
    digest = hashlib.sha256()
    _digest(path, digest)
    return digest.hexdigest()


def _translate_errors(path: Path, read_file: Callable[[], T]) -> T:
    """Call `read_file`. Convert what NumPy, zip, tar or pickle raise for a damaged file to an error that names it."""
    import zlib

    try:
        return read_file()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}", FIX) from error
    except (ValueError, KeyError, IndexError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is truncated or damaged: {str(error) or type(error).__name__}", FIX) from error
    except (tarfile.TarError, pickle.UnpicklingError, AttributeError) as error:
        raise DataError(f"{path} is not the published file: {error}", FIX) from error


def _headers(path: Path) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Return shape and dtype of each array in an .npz file, read from the arrays' headers."""
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
    """Return images (n, 32, 32, 3) and labels (n, 1) of a CIFAR-10 batch, which stores red, green and blue planes."""
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
    """Creates arrays and refuses everything else, because a pickle can run any program."""

    def find_class(self, module: str, name: str) -> Any:
        import _codecs

        import numpy as np

        rebuild = np.zeros(0).__reduce__()[0]
        core = ("numpy.core.multiarray", "numpy._core.multiarray")
        allowed: dict[tuple[str, str], Any] = {(place, "_reconstruct"): rebuild for place in core}
        allowed |= {("numpy", "ndarray"): np.ndarray, ("numpy", "dtype"): np.dtype}
        allowed |= {("_codecs", "encode"): _codecs.encode}
        if (module, name) not in allowed:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}, which a batch of images does not need")
        return allowed[module, name]


def _check_batches(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in BATCHES:
        path = folder / name
        if not path.is_file():
            raise DataError(f"{folder} has no file {name}", FIX)
        if path.stat().st_size < 10_000 * 3_072:
            raise DataError(f"{path} is truncated: {path.stat().st_size} bytes cannot hold 10,000 images", FIX)
        _digest(path, digest)
    return digest.hexdigest()


def _digest(path: Path, digest: Any) -> None:
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
