"""The real data sets: where a run's images come from, checked before anything is timed.

`locate` runs in the parent before any worker starts: it decides between the full set, the shipped sample and
synthetic data, and finds a bad file while that costs nothing. `load` runs in the worker and returns what
`keras.datasets` would. NumPy only. Reading the published formats is `bench.datasets.files`' part, getting a set from
the network `bench.datasets.download`'s.
"""

from __future__ import annotations

import os
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

Kind = Literal["auto", "full", "sample", "synthetic"]
SHIPPED = Path(__file__).parent / "samples"


def locate(name: str, kind: Kind, data_dir: Path | None = None) -> Data:
    """Decides which data a run reads, and checks that they can be read.

    Args:
        name: a key of `SETS`, such as "cifar10".
        kind: "auto" takes the full set if it is found, else the shipped sample; "full" downloads it if need be.
        data_dir: where to look first; then come `DEVBENCH_DATA_DIR` and Keras' cache.

    Raises:
        UnknownName: there is no such data set.
        DataError: a file that was found can't be used, or the full set can't be had.
    """
    known = _known(name)
    if kind == "synthetic":
        return Data(kind="synthetic", name=name)
    if kind in ("auto", "full"):
        found = find(known, data_dir)
        if found is None and kind == "full":
            from bench.datasets.download import download

            found = download(known, cache_folder())
        if found is not None:
            return Data(kind="full", name=name, source=str(found), sha256=files.check(found, known))
    shipped = SHIPPED / f"{name}.npz"
    files.check_arrays(shipped, known, full=False)
    return Data(kind="sample", name=name, sha256=files.checksum(shipped))


def load(data: Data, seed: int) -> tuple[Arrays, Arrays]:
    """Reads ((x_train, y_train), (x_test, y_test)) as `keras.datasets` shapes them, uint8, at the full set's size.

    The sample is repeated to that size, so that an epoch has its true number of steps. Synthetic data are
    uniform, drawn from `seed`.

    Raises:
        DataError: a file became unreadable, or `data` names no data set.
    """
    known = _known(data.name or "")
    if data.kind == "synthetic":
        return _synthetic(known, seed)
    if data.kind == "full" and data.source:
        return files.read(Path(data.source), known)
    if data.kind == "sample":
        train, test = files.read(SHIPPED / f"{known.name}.npz", known)
        return _repeat(train, known.train), _repeat(test, known.test)
    raise DataError(f"the program's own data can't stand in for {known.name}", "Use --data auto.")


def find(dataset: DataSet, data_dir: Path | None = None) -> Path | None:
    """The first file or folder that holds the full set, or none; what it holds is not looked at.

    Raises:
        DataError: a folder that was named is not there.
    """
    folders = [cache_folder()]
    named = os.environ.get("DEVBENCH_DATA_DIR")
    for folder, where in ((named and Path(named), "DEVBENCH_DATA_DIR"), (data_dir, "--data-dir")):
        if folder:
            if not folder.is_dir():
                raise DataError(f"the data folder {folder} is not there", f"Make it, or correct {where}.")
            folders.insert(0, folder)
    return next((folder / form for folder in folders for form in dataset.forms if (folder / form).exists()), None)


def cache_folder() -> Path:
    """Keras' folder for data sets: below `KERAS_HOME`, or `~/.keras`."""
    home = os.environ.get("KERAS_HOME")
    return (Path(home) if home else Path("~/.keras")).expanduser() / "datasets"


def _known(name: str) -> DataSet:
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
