"""A notebook runs as a script, and what is said about it names cells."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import nbformat
import pytest
from devbench_process import run_devbench
from scouting import recognition, scout

PROGRAMS = Path(__file__).parent / "programs"

CELLS = (
    """\
import tensorflow as tf

x = tf.random.normal((64, 8))
model = tf.keras.Sequential([tf.keras.Input(shape=(8,)), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)


@tf.function
def train_step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss
""",
    """\
losses = []
for step in range(3000):
    losses.append(float(train_step()))
""",
)
"""A training that reads the loss in each step."""


@pytest.mark.once
@pytest.mark.timeout(300)
def test_the_loops_of_a_notebook_are_recognized_by_cell_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(PROGRAMS)
    found = recognition(scout(PROGRAMS / "cells.ipynb", tmp_path))
    assert found.chosen.place == "train_steps in cells.ipynb, cell 4, line 15"
    assert found.chosen.steps == 60
    assert [(other.place, other.steps) for other in found.others] == [("fit in cells.ipynb, cell 3, line 2", 40)]


@pytest.mark.essential
@pytest.mark.timeout(600)
def test_a_notebook_is_measured_and_compared_with_another_one(tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "cells.ipynb", tmp_path / "old.ipynb")
    text = (tmp_path / "old.ipynb").read_text(encoding="utf-8")
    (tmp_path / "new.ipynb").write_text(
        text.replace("tf.keras.layers.Dense(1)", "tf.keras.layers.Dense(1, use_bias=False)")
    )
    run = run_devbench(
        tmp_path, "run", "old.ipynb", "new.ipynb", "--compare", "--watch", "1", "--max-processes", "1", "--json"
    )
    assert run.code == 0, run.text()
    document = json.loads(run.out)
    assert len(document["comparisons"]) == 1
    old, _ = run.results
    assert old.summary.step_seconds is not None
    assert [note for note in old.notes if "was skipped" in note] == [
        "old.ipynb, cell 1, line 1: `%matplotlib inline` was skipped.",
        "old.ipynb, cell 1, line 2: `!pip install keras` was skipped.",
        "old.ipynb, cell 4, line 1: `%%time` was skipped.",
    ]
    assert old.samples[0].printed is not None
    assert "(320, 8)" in [*old.samples[0].printed.first, *old.samples[0].printed.last]


@pytest.mark.once
@pytest.mark.timeout(300)
def test_an_error_of_a_notebook_names_the_cell(tmp_path: Path) -> None:
    text = (PROGRAMS / "cells.ipynb").read_text(encoding="utf-8")
    (tmp_path / "train.ipynb").write_text(text.replace("display(x.shape)", "x / undefined_name"))
    run = run_devbench(tmp_path, "run", "train.ipynb")
    assert run.code == 1
    assert "NameError: name 'undefined_name' is not defined" in run.text()
    assert "train.ipynb, cell 2, line 6: x / undefined_name" in run.text()
    assert "devbench-" not in run.text()  # the path of a copy


@pytest.mark.once
@pytest.mark.timeout(900)
def test_a_finding_about_a_notebook_names_the_cell(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(metadata={"language_info": {"name": "python"}})
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    nbformat.write(notebook, tmp_path / "train.ipynb")
    run = run_devbench(
        tmp_path, "explain", "train.ipynb", "--json", "--no-changes", "--max-processes", "1", "--max-time", "3m"
    )
    assert run.code == 0, run.text()
    findings = {finding["cause"]: finding for finding in json.loads(run.out)["explanation"]["findings"]}
    assert "(train.ipynb, cell 2, line 3)" in findings["per-step synchronization"]["sentence"]
