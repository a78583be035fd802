"""What a script sets itself is found, where it differs from what the run asked for."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.worker.script import settings

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the functions that set seeds as they were."""
    monkeypatch.setattr(random, "seed", random.seed)
    monkeypatch.setattr(np.random, "seed", np.random.seed)
    monkeypatch.setattr(np.random, "default_rng", np.random.default_rng)


def test_python_and_numpy_are_seeded_and_may_be_seeded_again() -> None:
    seeds = settings.Seeds(7)
    assert random.random() == random.Random(7).random()
    assert np.random.rand() == np.random.RandomState(7).rand()
    random.seed(7)
    np.random.seed(seed=3)
    assert np.random.rand() == np.random.RandomState(3).rand()
    assert seeds.chosen == {"Python": 7, "NumPy": 3}
    random.seed(5)
    with seeds.kept():
        random.seed(9)
        np.random.seed(9)
    assert random.random() == random.Random(5).random()
    assert seeds.chosen == {"Python": 5, "NumPy": 3}


def test_generators_without_a_seed_are_the_same_in_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    original = np.random.default_rng
    drawn = []
    for _ in range(2):  # as in two processes
        monkeypatch.setattr(np.random, "default_rng", original)
        settings.Seeds(7)
        drawn.append([np.random.default_rng().random(), np.random.default_rng().random()])
        assert np.random.default_rng(3).random() == original(3).random()
    assert drawn[0] == drawn[1]
    assert drawn[0][0] != drawn[0][1]


FORKS = """
import multiprocessing, pathlib, sys
import numpy as np
from bench.worker.script.settings import Seeds

Seeds(5)

def draw(name):
    pathlib.Path(sys.argv[1], name).write_text(str(np.random.default_rng().random()))

for name in ("first", "second"):
    child = multiprocessing.get_context("fork").Process(target=draw, args=(name,))
    child.start()
    child.join()
draw("parent")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_generators_of_forked_processes_differ(tmp_path: Path) -> None:
    runs = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", FORKS, str(tmp_path)], check=True)
        runs.append({path.name: path.read_text() for path in tmp_path.iterdir()})
    assert runs[0] == runs[1]
    assert len({*runs[0].values()}) == 3


def test_the_memory_settings_of_each_gpu_are_read() -> None:
    gpu = SimpleNamespace(name="/physical_device:GPU:0")  # this machine need not have one
    tf: Any = SimpleNamespace(
        config=SimpleNamespace(
            list_physical_devices={"GPU": [gpu]}.__getitem__,
            get_logical_device_configuration=lambda device: [SimpleNamespace(memory_limit=1024)],
            experimental=SimpleNamespace(get_memory_growth=lambda device: False),
        )
    )
    assert settings.memory(tf) == {"memory growth of GPU:0": False, "memory limits of GPU:0 in MiB": [1024]}
