"""A notebook becomes Python whose lines keep their cell and number."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import registry
from bench.config.settings import RunSettings
from bench.errors import SettingsError, WorkloadError
from bench.registry import notebook
from bench.study.plan import groups
from bench.worker.script import notebook as worker

PYTHON = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}


def write(folder: Path, *cells: str, metadata: Any = PYTHON, outputs: str = "") -> Path:
    """Write a notebook with a text cell and these code cells. Return its path."""
    output = [{"output_type": "stream", "name": "stdout", "text": [outputs]}] if outputs else []
    document = {
        "nbformat": 4,
        "nbformat_minor": 4,
        "metadata": metadata,
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": ["# Training"]},
            *(
                {
                    "cell_type": "code",
                    "metadata": {},
                    "execution_count": None,
                    "outputs": output,
                    "source": cell.splitlines(keepends=True),
                }
                for cell in cells
            ),
        ],
    }
    path = folder / "train.ipynb"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def run(path: Path) -> Any:
    """Run a notebook in this process. Return its namespace."""
    main = sys.modules["__main__"]
    try:
        worker.run(notebook.read(path).cells, path.parent)
        return vars(sys.modules["__main__"])
    finally:
        sys.modules["__main__"] = main


def test_the_cells_of_a_notebook_run_in_one_namespace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = run(write(tmp_path, "x = 1", "", "y = x + 1\ndisplay('y', y)", "in_main = __name__ == '__main__'"))
    assert (names["y"], names["in_main"]) == (2, True)
    assert "__file__" not in names
    assert capsys.readouterr().out == "y 2\n"


def test_an_error_names_the_cell_and_the_line_in_it(tmp_path: Path) -> None:
    path = write(tmp_path, "x = 1", "", "\n%matplotlib inline\n!pip install \\\n  keras\n\nx / 0  # here")
    with pytest.raises(ZeroDivisionError) as caught:
        run(path)
    from bench.registry.program_errors import error_text

    assert error_text(caught.value, path).splitlines()[1:] == ["  train.ipynb, cell 2, line 6: x / 0  # here"]


def test_a_function_of_a_cell_has_its_source(tmp_path: Path) -> None:
    import inspect

    names = run(write(tmp_path, "%time\n\ndef f(x):\n    return x"))
    assert inspect.getsource(names["f"]) == "def f(x):\n    return x\n"
    assert names["f"].__code__.co_firstlineno == 3


def test_magics_and_shell_commands_are_skipped_and_each_is_noted(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "%load_ext tensorboard\nfiles = !ls\nfiles = len(files)",
        "%%bash\nexit 1",
        "if files == 0:\n    !pip install keras\n    get_ipython().run_line_magic('cd', '/')\nkeras?",
        "%%time\nx = 3",
        "%time x += len('é')\ny = %time x",
    )
    names = run(path)
    assert (names["files"], names["x"], names["y"]) == (0, 4, 4)
    assert notebook.read(path).notes == [
        "train.ipynb, cell 1, line 1: `%load_ext tensorboard` was skipped.",
        "train.ipynb, cell 1, line 2: `files = !ls` was skipped.",
        "train.ipynb, cell 2, line 1: `%%bash` was skipped.",
        "train.ipynb, cell 3, line 2: `!pip install keras` was skipped.",
        "train.ipynb, cell 3, line 3: `get_ipython().run_line_magic('cd', '/')` was skipped.",
        "train.ipynb, cell 3, line 4: `keras?` was skipped.",
        "train.ipynb, cell 4, line 1: `%%time` was skipped.",
    ]
    assert registry.resolve(path).notes == notebook.read(path).notes


def test_code_that_asks_whether_it_runs_in_jupyter_learns_that_it_does_not(tmp_path: Path) -> None:
    names = run(
        write(tmp_path, "kernel = 'IPKernelApp' in get_ipython().config\ncolab = 'colab' in str(get_ipython())")
    )
    assert not names["kernel"]
    assert not names["colab"]


def test_a_notebook_is_a_script_whose_outputs_do_not_count(tmp_path: Path) -> None:
    first = registry.resolve(write(tmp_path, "x = 1", outputs="1"))
    assert first.is_script
    assert first.name == "train"
    assert first.sha256 == registry.resolve(write(tmp_path, "x = 1", outputs="2")).sha256
    assert first.sha256 != registry.resolve(write(tmp_path, "x = 2", outputs="2")).sha256


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"language_info": {"name": "R"}}, r"train\.ipynb is a notebook in R, not in Python"),
        ({}, r"train\.ipynb does not say which language it is in"),
    ],
)
def test_a_notebook_in_another_language_is_refused(metadata: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=message):
        registry.resolve(write(tmp_path, "x <- 1", metadata=metadata))


@pytest.mark.parametrize("text", ["x", "{}", "[]", '{"nbformat": 4}'])
def test_a_file_that_is_no_notebook_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "train.ipynb"
    path.write_text(text)
    with pytest.raises(WorkloadError, match=r"train\.ipynb is not a notebook: "):
        registry.resolve(path)
    with pytest.raises(WorkloadError, match="does not exist"):
        registry.resolve(tmp_path / "missing.ipynb")


def test_a_syntax_error_names_the_cell(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"is not Python: SyntaxError.*\n  train\.ipynb, cell 2, line 2: y = \)"):
        registry.describe(write(tmp_path, "x = 1", "\ny = )"))


@pytest.mark.parametrize("package", ["nbformat", "IPython.core.inputtransformer2"])
def test_without_the_extra_the_error_says_how_to_install_it(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "x = 1")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(WorkloadError, match=r"train\.ipynb is a notebook, and .* is not installed") as caught:
        registry.resolve(path)
    assert "pip install '.[notebook]'" in caught.value.hint


def test_a_notebook_takes_neither_arguments_nor_parameters(tmp_path: Path) -> None:
    path = write(tmp_path, "x = 1")
    with pytest.raises(SettingsError, match="is a notebook, so it takes no arguments"):
        groups([path], RunSettings(args=("--epochs", "2")))
    with pytest.raises(SettingsError, match="is a notebook, so it has no parameter rows"):
        groups([path], RunSettings(param={"rows": "2"}))
