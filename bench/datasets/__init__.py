"""The data sets that workloads train on: CIFAR-10 and MNIST.

`locate` runs in the parent before a worker starts. It chooses between the full set, the shipped sample and synthetic
data, and rejects a bad file before any time is spent. `load` runs in the worker and returns what `keras.datasets`
would. `bench.datasets.files` reads the published formats, and `bench.datasets.download` downloads them. The only
dependency is NumPy.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bench.datasets import files
from bench.datasets.files import SETS, DataSet
from bench.errors import DataError, UnknownName
from bench.model.spec import Data

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Arrays = tuple[NDArray[np.uint8], NDArray[np.uint8]]

DataChoice = Literal["auto", "full", "sample", "synthetic"]
SAMPLES = Path(__file__).parent / "samples"


def locate(name: str, kind: DataChoice, data_dir: Path | None = None) -> Data:
    """Choose the data that a run reads, and check that it is readable.

    Args:
        name: a key of `SETS`, such as "cifar10".
        kind: "auto" takes the full set if it is present, else the shipped sample; "full" downloads the set if needed.
        data_dir: the folder to search before Keras' cache. Default: `DEVBENCH_DATA_DIR`.

    Raises:
        UnknownName: there is no such data set.
        DataError: a file is unusable, or the full set cannot be downloaded.
    """
    dataset = _dataset(name)
    if kind == "synthetic":
        return Data(kind="synthetic", name=name)
    if kind in ("auto", "full"):
        path = find(dataset, data_dir)
        if path is None and kind == "full":
            from bench.datasets.download import download

            path = download(dataset, cache_folder())
        if path is not None:
            return Data(kind="full", name=name, source=str(path.absolute()), sha256=files.check(path, dataset))
    sample = SAMPLES / f"{name}.npz"
    files.check_arrays(sample, dataset, full=False)
    return Data(kind="sample", name=name, sha256=files.checksum(sample))


def load(data: Data, seed: int) -> tuple[Arrays, Arrays]:
    """Return ((x_train, y_train), (x_test, y_test)) in the shapes of `keras.datasets`, uint8, at the full set's size.

    The sample is repeated up to that size, so that an epoch has its true number of steps. Synthetic data are uniform
    random numbers from `seed`.

    Raises:
        UnknownName: `data` does not name a data set.
        DataError: the file is no longer readable, or `data` is the program's own.
    """
    dataset = _dataset(data.name or "")
    if data.kind == "synthetic":
        return _synthetic(dataset, seed)
    if data.kind == "full" and data.source:
        return files.read(Path(data.source), dataset)
    if data.kind == "sample":
        train, test = files.read(SAMPLES / f"{dataset.name}.npz", dataset)
        return _repeat(train, dataset.train), _repeat(test, dataset.test)
    raise DataError(f"the program's own data cannot replace {dataset.name}", "Use --data auto.")


def find(dataset: DataSet, data_dir: Path | None = None) -> Path | None:
    """Return the first file or folder that should hold the full set, without reading it; None if there is none.

    Raises:
        DataError: a given data folder does not exist, or a folder cannot be read.
    """
    folders = [cache_folder()]
    variable = os.environ.get("DEVBENCH_DATA_DIR")
    given, setting = (data_dir, "--data-dir") if data_dir else (variable and Path(variable), "DEVBENCH_DATA_DIR")
    try:
        if given:
            if not given.is_dir():
                raise DataError(f"the data folder {given} does not exist", f"Create it, or correct {setting}.")
            folders.insert(0, given)
        return next((folder / form for folder in folders for form in dataset.forms if (folder / form).exists()), None)
    except PermissionError as error:
        hint = "Set KERAS_HOME or --data-dir to a folder that you may read, or use --data sample."
        raise DataError(f"{error.filename} cannot be read: {error.strerror}", hint) from error


def cache_folder() -> Path:
    """Return Keras' folder for data sets: below `KERAS_HOME`, `~/.keras`, or a temporary folder if there is no home."""
    try:
        folder = Path(os.environ.get("KERAS_HOME") or "~/.keras").expanduser()
    except RuntimeError:  # such as an arbitrary user of a container
        folder = Path(tempfile.gettempdir()) / ".keras"
    return folder / "datasets"


def _dataset(name: str) -> DataSet:
    if name not in SETS:
        raise UnknownName("data set", name, SETS)
    return SETS[name]


def _repeat(arrays: Arrays, size: int) -> Arrays:
    import numpy as np

    x, y = arrays
    order = np.arange(size) % len(x)
    return x[order], y[order]


def _synthetic(dataset: DataSet, seed: int) -> tuple[Arrays, Arrays]:
    import numpy as np

    rng = np.random.default_rng(seed)

    def draw(size: int) -> Arrays:
        x = rng.integers(0, 256, (size, *dataset.image), dtype=np.uint8)
        return x, rng.integers(0, dataset.classes, (size, *dataset.label), dtype=np.uint8)

    return draw(dataset.train), draw(dataset.test)
