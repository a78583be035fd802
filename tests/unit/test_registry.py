"""The registry: built-in workloads and user files work the same way, and an error in a file names its line."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import backends, registry
from bench.backends import _probe
from bench.errors import DevbenchError, SettingsError, UnknownName, WorkloadError
from bench.machine import pip, uv
from bench.registry.params import params_type, parse_params

pytestmark = pytest.mark.once

GOOD = '''
    """Count to a number.

    More text.
    """
    import os
    from typing import Literal
    from pydantic import BaseModel, Field

    CASES = {"few": {"rows": 10}, "many": {"rows": 1000, "loop": "step"}}
    NOTES = ("It is only a test.",)
    NOT_ON = {"directml": "it has no such kernel"}
    NOT_LOOPS = {"fused": "it would be folded"}
    DATA = "mnist"
    print("a megabyte of chatter")
    os.write(1, b"from the system")

    class Params(BaseModel):
        rows: int = Field(100, ge=1, le=5000, description="examples")
        batch: int = Field(10, ge=1)
        rate: float = Field(0.5, gt=0, lt=1)
        mode: Literal["a", "b"] = "a"
        sides: list[int] = [1, 2]
        fast: bool = False

    def data(p, ctx):
        return ()

    def model(p, *, data):
        return None

    def as_written(p, model, data, inner=3):
        yield p.rows

    def total_steps(p):
        return p.rows // p.batch

    def flops(p):
        return 2 * p.rows

    def notes(p):
        return [f"{p.rows} rows in process {os.getpid()}"]
'''


def write(folder: Path, text: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def test_every_file_in_the_folders_is_a_workload_or_a_backend() -> None:
    assert "op-granularity" in registry.names()
    folder = Path(registry.__file__).parent.parent
    assert len(registry.names()) == len(list((folder / "workloads").glob("[!_]*.py")))
    assert len(backends.names()) == len(list((folder / "backends").glob("[!_]*.py")))


@pytest.mark.parametrize(("wrong", "nearest"), [("op_granularity", "op-granularity"), ("matmull", "matmul")])
def test_the_hint_for_an_unknown_workload_has_the_nearest_name_and_the_syntax_of_a_file(
    wrong: str, nearest: str
) -> None:
    for function in (registry.load, registry.resolve, registry.describe):
        with pytest.raises(UnknownName, match=wrong) as caught:
            function(wrong)
        assert nearest in caught.value.hint
        assert "./mine.py" in caught.value.hint


@pytest.mark.parametrize("name", ["gpu", "GPU", "nvidia", "amd"])
def test_a_name_for_any_gpu_is_answered_with_the_backends_for_gpus(name: str) -> None:
    with pytest.raises(UnknownName) as caught:
        backends.load(name)
    assert "cuda" in caught.value.hint
    assert "directml" in caught.value.hint
    assert "cpu" not in caught.value.hint


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(UnknownName, match="no backend named 'cudo'"):
        backends.load("cudo")


def test_describing_a_file_does_not_run_it(tmp_path: Path) -> None:
    description = registry.describe(write(tmp_path, GOOD.replace("import os", "import nothing_of_this_name")))
    assert description.name == "mine"
    assert description.summary == "Count to a number."
    assert description.doc.endswith("More text.")
    assert description.offers["as_written"] == ("p", "model", "data", "inner")
    assert description.offers["model"] == ("p", "data")
    assert description.constants["CASES"]["many"] == {"rows": 1000, "loop": "step"}
    assert description.constants["DATA"] == "mnist"


def test_resolving_built_ins_imports_neither_tensorflow_nor_numpy() -> None:
    script = """
        import sys
        from bench import registry
        for name in registry.names():
            registry.describe(name)
            for case in ({}, *registry.resolve(name).cases.values()):
                registry.resolve(name, {k: v for k, v in case.items() if k != "loop"})
        print([m for m in ("tensorflow", "keras", "numpy") if m in sys.modules])
    """
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert process.stdout == "[]\n"


def test_a_user_file_is_resolved_in_another_process_and_gives_the_same_fields_as_a_built_in(tmp_path: Path) -> None:
    import os

    path = write(tmp_path, GOOD)
    workload = registry.resolve(path, {"batch": "20", "rate": "0.25", "sides": "[3, 4]", "fast": "true"})
    assert workload.name == "mine"
    assert workload.file == str(path.resolve())
    assert workload.params == {"rows": 100, "batch": 20, "rate": 0.25, "mode": "a", "sides": [3, 4], "fast": True}
    assert (workload.total_steps, workload.flops, workload.examples, workload.epochs) == (5, 200, 20, None)
    assert workload.cases == {"few": {"rows": 10}, "many": {"rows": 1000, "loop": "step"}}
    assert workload.notes[0] == "It is only a test."
    assert workload.notes[1].startswith("100 rows in process ")
    assert not workload.notes[1].endswith(f" {os.getpid()}")
    assert (workload.data, workload.not_on["directml"]) == ("mnist", "it has no such kernel")
    assert set(workload.offers) == {"data", "model", "as_written", "notes", "total_steps", "flops"}
    assert not any("mine" in name for name in sys.modules)


def test_one_process_resolves_all_cases_of_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    plain = registry.resolve(path, {"batch": "5"})
    small = registry.resolve(path, {"rows": 10, "batch": "5"})
    assert small.params["rows"] == 10
    assert small.total_steps == 2
    assert plain.notes[1].split()[-1] == small.notes[1].split()[-1]


def test_parameters_that_are_all_filled_in_need_no_other_process(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    given = registry.resolve(path, {"batch": "5"})
    filled_in = registry.resolve(path, given.params)
    assert filled_in.notes == given.notes  # a note holds the number of the process


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    first = registry.resolve(write(tmp_path, GOOD))
    second = registry.resolve(write(tmp_path, GOOD.replace("Field(100,", "Field(200,")))
    assert (first.params["rows"], second.params["rows"]) == (100, 200)
    assert first.sha256 != second.sha256


def test_a_file_is_imported_once_and_can_import_from_its_folder(tmp_path: Path) -> None:
    write(tmp_path, "def help_out():\n    return 5\n", "helper_of_mine.py")
    path = write(tmp_path, "from helper_of_mine import help_out\n\ndef step(p):\n    return help_out\n")
    module = registry.load(path)
    assert module.step(None)() == 5
    assert registry.load(str(path)) is module
    assert not (tmp_path / "__pycache__" / "mine.pyc").exists()


def test_output_of_a_file_does_not_mix_with_its_description(tmp_path: Path) -> None:
    path = write(tmp_path, 'import os, sys\nprint("x" * 1_000_000)\nos.system("echo shell")\n\ndef step(): ...\n')
    assert registry.inspect_file(path).offers == ["step"]


BROKEN = [
    ("x = (\n", r"mine\.py is not Python: SyntaxError: .*\n  mine\.py, line 1: x = \("),
    (
        "\n\nimport nothing_of_this_name\n",
        r"cannot be imported: ModuleNotFoundError: .*\n  mine\.py, line 3: import nothing",
    ),
    ("def f():\n    return 1 / 0\n\nf()\n", r"ZeroDivisionError: division by zero\n  mine\.py, line 2: return 1 / 0"),
    ("import sys\nsys.exit(3)\n", r"SystemExit: 3\n  mine\.py, line 2: sys\.exit\(3\)"),
    ("x = 1\n", r"mine\.py defines nothing to run"),
    ("", r"mine\.py defines nothing to run"),
    (
        "\ndef step(p, optimiser):\n    ...\n",
        r"mine\.py, line 2: `step` has an argument `optimiser`, which devbench does not",
    ),
    ("\ndef step(p, /):\n    ...\n", r"mine\.py, line 2: `step` takes `p` by position only"),
    (
        "def data(model): ...\ndef model(): ...\n",
        r"line 1: `data` has an argument `model`, which devbench does not pass",
    ),
    ("def step(model): ...\n", r"`step` takes `model`, but no function `model` is defined"),
    ("x = 1\nmodel = dict()\n", r"mine\.py, line 2: `model` is a dict, not a function"),
    ("def step(): ...\ndef data(): ...\ndef inputs(): ...\n", r"line 3: both `data` and `inputs` are defined"),
    ("Params = 3\ndef step(): ...\n", r"Params of mine is not a pydantic model"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_an_error_in_a_user_file_names_its_line(text: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    loaded = set(sys.modules)
    with pytest.raises(WorkloadError, match=message) as caught:
        params_type(registry.load(path))
    assert "bench/" not in caught.value.message
    modules = [name for name in set(sys.modules) - loaded if "mine" in name]
    assert len(modules) == ("Params" in text)


@pytest.mark.parametrize(("text", "message"), [BROKEN[0], BROKEN[2], BROKEN[6], BROKEN[12]])
def test_the_error_is_the_same_if_another_process_reads_the_file(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=message):
        registry.resolve(write(tmp_path, text + "\nfrom os import abort as probes\n" * ("step" not in text)))


@pytest.mark.parametrize("value", ["float('inf')", "float('nan')", "'many'"])
def test_a_number_of_steps_that_is_not_finite_is_an_error_of_the_file(value: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"def step(): ...\ndef total_steps(): return {value}\n")
    with pytest.raises(WorkloadError, match=r"`total_steps` of mine returned \S+, which is not a finite number"):
        registry.resolve(path)


def test_a_script_has_no_parameter_but_the_batch_of_its_fit(tmp_path: Path) -> None:
    path = write(tmp_path, "print(1)")
    resolved = registry.resolve(path, {"batch": "64"})
    assert (resolved.params, resolved.examples) == ({"batch": 64}, 64)
    with pytest.raises(SettingsError, match="invalid value '0' for parameter batch"):
        registry.resolve(path, {"batch": "0"})


def test_a_script_with_a_module_of_the_name_of_devbenchs_package_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import numpy\nimport bench\n")
    assert registry.resolve(script, {}).offers == ["script"]  # it means devbench's
    (tmp_path / "bench.py").write_text("")
    with pytest.raises(WorkloadError, match=r"^train\.py imports bench\.py beside it, but devbench's own") as caught:
        registry.resolve(script, {})
    assert caught.value.hint == f"Rename {tmp_path / 'bench.py'}."
    script.write_text("import helper\n")
    assert registry.resolve(script, {}).offers == ["script"]
    (tmp_path / "other.py").write_text("import bench\n")  # the script does not import it
    assert registry.resolve(script, {}).offers == ["script"]
    (tmp_path / "helper.py").write_text("import numpy, bench\n")
    with pytest.raises(WorkloadError, match=r"^helper\.py imports bench\.py"):
        registry.resolve(script, {})
    (tmp_path / "helper.py").write_text('"""\nfrom bench to bench\n"""\n')
    assert registry.resolve(script, {}).offers == ["script"]


def test_a_module_is_found_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "mypackage"
    package.mkdir()
    for name in ("__init__", "train", "__main__"):
        (package / f"{name}.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    resolved = registry.resolve("-m mypackage.train")
    assert (resolved.name, resolved.module) == ("mypackage.train", "mypackage.train")
    assert resolved.file == str(package / "train.py")
    assert registry.resolve("-m mypackage").file == str(package / "__main__.py")
    with pytest.raises(WorkloadError, match=r"no module named mypackage\.other"):
        registry.resolve("-m mypackage.other")


def test_an_error_in_an_imported_file_names_the_line_of_that_file(tmp_path: Path) -> None:
    write(tmp_path, "\nraise LookupError('no table')\n", "broken_helper.py")
    path = write(tmp_path, "import broken_helper\n")
    with pytest.raises(WorkloadError, match=r"LookupError: no table\n  broken_helper\.py, line 2: raise LookupError"):
        registry.load(path)


def test_an_error_in_a_library_names_the_line_of_the_file_that_called_it(tmp_path: Path) -> None:
    path = write(tmp_path, "import json\n\njson.loads('{')\n\ndef step(): ...\n")
    with pytest.raises(WorkloadError, match=r"JSONDecodeError: .*\n  mine\.py, line 3: json\.loads"):
        registry.load(path)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def flops(p):\n    return 1 / 0\n", r"`flops` of mine\.py failed: ZeroDivisionError.*\n  mine\.py, line 2"),
        ("CASES = {'one': {'rows': 1}}\n", r"case one of mine: no parameter named 'rows'"),
        ("CASES = {'one': {'loop': 'stepp'}}\n", r"case one of mine: no loop named 'stepp'"),
        ("import os\nos._exit(7)\n", r"importing .*mine\.py ended the process with exit code 7"),
        ("import os, signal\nos.abort()\n", r"importing .*mine\.py ended the process with exit code"),
    ],
)
def test_an_error_in_a_function_or_case_names_the_file(body: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=message):
        registry.resolve(write(tmp_path, body + "\ndef step(): ...\n"))


def test_an_import_that_never_ends_is_stopped(tmp_path: Path) -> None:
    path = write(tmp_path, "import threading\nthreading.Event().wait()\ndef step(): ...\n")
    with pytest.raises(WorkloadError, match="took longer than 2 s"):
        registry.inspect_file(path, seconds=2)


def test_a_limit_of_processes_is_an_error_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "run", refused)
    with pytest.raises(DevbenchError, match=r"cannot start the process that imports mine.py: Resource temporarily"):
        registry.inspect_file(write(tmp_path, "def step(): ...\n"))
    with pytest.raises(_probe.QueryFailed, match="the query cannot start: Resource temporarily"):
        _probe.query_libraries("libcuda.so.1", timeout=1.0)
    for function in (uv.index, pip.command):
        function.cache_clear()
    assert uv.index() == ({}, ())
    for function in (uv.index, pip.command):
        function.cache_clear()


def test_a_missing_file_or_a_folder_is_an_error(tmp_path: Path) -> None:
    for function in (registry.load, registry.resolve, registry.describe):
        with pytest.raises(WorkloadError, match=r"nowhere\.py does not exist"):
            function(tmp_path / "nowhere.py")
        with pytest.raises(WorkloadError, match="cannot be read"):
            function(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("batch", "0", "Use a whole number from 1 to 65,536: examples per step."),
        ("batch", "many", "Use a whole number from 1 to 65,536: examples per step."),
        ("batch", "1.5", "Use a whole number from 1 to 65,536: examples per step."),
        ("learning_rate", "0", "Use a number greater than 0 and at most 100: learning rate of SGD, no unit."),
        ("learning_rate", "nan", "Use a number greater than 0 and at most 100: learning rate of SGD, no unit."),
    ],
)
def test_an_invalid_value_is_refused_with_its_name_and_the_allowed_range(name: str, value: str, hint: str) -> None:
    with pytest.raises(SettingsError, match=f"invalid value '{value}' for parameter {name}") as caught:
        registry.resolve("cifar", {name: value})
    assert caught.value.hint == hint


def test_an_invalid_choice_is_refused_with_the_choices() -> None:
    with pytest.raises(SettingsError, match="invalid value 'gpu' for parameter place") as caught:
        registry.resolve("input-pipeline", {"place": "gpu"})
    assert caught.value.hint.startswith("Use one of serial, parallel, model: where images are brightened")


def test_the_hint_for_an_unknown_parameter_has_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no parameter named 'bacth'") as caught:
        registry.resolve("cifar", {"bacth": "64"})
    assert "batch" in caught.value.hint
    with pytest.raises(UnknownName, match="no parameter named 'row'") as caught:
        registry.resolve(write(tmp_path, GOOD), {"row": "64"})
    assert "rows" in caught.value.hint
    with pytest.raises(UnknownName, match="no parameter named 'row'"):
        registry.resolve(write(tmp_path, "def step(): ...\n"), {"row": "64"})


def test_a_parameter_without_a_default_is_required(tmp_path: Path) -> None:
    text = "from pydantic import BaseModel\n\nclass Params(BaseModel):\n    n: int\n\ndef step(p): ...\n"
    path = write(tmp_path, text)
    with pytest.raises(SettingsError, match="parameter n has no default") as caught:
        registry.resolve(path)
    assert "--param n=" in caught.value.hint
    assert registry.resolve(path, {"n": "3"}).params == {"n": 3}


@given(st.integers(1, 65_536), st.floats(1e-9, 100))
def test_numbers_are_parsed_from_text_without_loss(batch: int, rate: float) -> None:
    p: Any = parse_params(registry.load("cifar"), {"batch": str(batch), "learning_rate": repr(rate)})
    assert (p.batch, p.learning_rate) == (batch, rate)


@pytest.mark.parametrize(
    ("offers", "loops"),
    [
        ({"as_written"}, {"as-written"}),
        ({"probes"}, {"as-written"}),
        ({"model"}, set()),
        ({"model", "as_written"}, {"as-written"}),
        ({"step", "inputs"}, {"as-written", "step", "host-batches", "resident", "fused"}),
        ({"model", "inputs", "step"}, {"as-written", "step", "host-batches", "resident", "fused"}),
        ({"model", "data"}, {"as-written", "fit", "step", "host-batches", "resident", "fused"}),
    ],
)
def test_the_functions_of_a_file_decide_which_loops_apply(offers: set[str], loops: set[str]) -> None:
    from bench.model.spec import LOOPS

    assert {loop for loop in LOOPS if registry.obstacle(offers, {}, loop) is None} == loops


def test_a_loop_that_the_file_excludes_has_the_reason_of_the_file() -> None:
    assert registry.obstacle({"step"}, {"fused": "it would be folded"}, "fused") == "it would be folded"
    with pytest.raises(UnknownName, match="no loop named 'fussed'"):
        registry.obstacle({"step"}, {}, "fussed")
