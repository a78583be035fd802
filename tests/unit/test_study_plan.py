"""Plans: the specs that follow from workloads and settings, and which settings are refused."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from bench.config.settings import load
from bench.errors import DataError, NotApplicable, SettingsError, UnknownName, UsageError
from bench.model.plan import Group
from bench.model.spec import Spec, Threads
from bench.study import scale
from bench.study.plan import plan

pytestmark = pytest.mark.once

PROGRAM = '''"""A program."""
from pydantic import BaseModel

class Params(BaseModel):
    batch: int = 8

def inputs(ctx):
    return (ctx.rng.random(4),)

def step():
    return lambda x: x
'''


def groups_of(*workloads: str, **options: Any) -> list[Group]:
    return plan(workloads, load(**options))


def specs(*workloads: str, **options: Any) -> list[Spec]:
    """Return the specs of all groups."""
    return [planned.spec for group in groups_of(*workloads, **options) for planned in group.planned]


def program(folder: Path, name: str = "mine.py", text: str = PROGRAM) -> str:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_workload_without_options_runs_as_written_on_the_cpu() -> None:
    (spec,) = specs("cifar", data="sample")
    assert (spec.workload, spec.backend, spec.loop, spec.case) == ("cifar", "cpu", "as-written", None)
    assert spec.params == {"batch": 32, "epochs": 10, "hidden1": 3000, "hidden2": 1000, "learning_rate": 0.01}


def test_a_spec_of_a_built_in_has_a_value_for_every_field_except_file_and_case() -> None:
    (spec,) = specs("cifar", data="sample", loop="step")
    fields = spec.model_dump()
    assert {name for name, value in fields.items() if value is None} == {
        "file",
        "case",
        "script",
        "checkout",
        "env",
        "workers",
    }
    assert spec.threads.intra >= 1
    assert spec.threads.inter >= 1
    assert fields["data"]["kind"] == "sample"
    assert fields["data"]["sha256"]
    assert fields["file_sha256"]


@pytest.mark.parametrize(
    ("loop", "xla", "expected"),
    [
        ("as-written", "auto", None),
        ("fit", "auto", False),
        ("fused", "auto", False),
        ("as-written", "on", True),
        ("as-written", "off", False),
        ("step", "on", True),
        ("step", "off", False),
    ],
)
def test_xla_is_explicit_in_every_loop_except_as_written(loop: str, xla: str, expected: bool | None) -> None:
    (spec,) = specs("cifar", data="sample", loop=loop, xla=xla)
    assert spec.xla is expected


def test_settings_reach_the_spec() -> None:
    expected: dict[str, Any] = {"dtype": "float64", "tf32": False, "onednn": False, "deterministic": True, "seed": 7}
    (spec,) = specs("matmul", threads=3, **expected)
    assert spec.threads == Threads(intra=3, inter=3)
    assert spec.model_dump(include=set(expected)) == expected


def test_the_default_number_of_threads_is_the_cpu_limit() -> None:
    from bench.machine.limits import thread_count

    (spec,) = specs("matmul")
    assert spec.threads.intra == spec.threads.inter == thread_count()


def test_by_default_every_case_runs_in_its_own_loop() -> None:
    cases = [(spec.title, spec.loop, spec.params["op"]) for spec in specs("op-granularity")]
    assert cases == [
        ("op-granularity/add", "as-written", "add"),
        ("op-granularity/matmul", "as-written", "matmul"),
        ("op-granularity/add-graph", "step", "add"),
        ("op-granularity/matmul-graph", "step", "matmul"),
    ]


def test_other_parameters_of_a_selected_case_can_be_set() -> None:
    (spec,) = specs("tabular", case="large", param={"rows": "6400"})
    assert (spec.title, spec.params["feed"], spec.params["rows"], spec.params["batch"]) == (
        "tabular/large", "dataset", 6400, 32,
    )  # fmt: skip


def test_setting_a_parameter_that_the_cases_define_replaces_the_cases() -> None:
    (spec,) = specs("tabular", param={"batch": "20"})
    assert (spec.case, spec.params["batch"], spec.params["rows"]) == (None, 20, 1000)


def test_a_swept_parameter_replaces_the_cases_even_at_the_value_of_a_case() -> None:
    (group,) = plan(["tabular"], load(param={"batch": "32"}), swept=["batch"])
    assert [planned.spec.case for planned in group.planned] == [None]


def test_a_parameter_that_no_case_defines_applies_to_every_case() -> None:
    assert [(spec.case, spec.params["hidden"]) for spec in specs("tabular", param={"hidden": "64"})] == [
        ("small", 64),
        ("large", 64),
    ]


def test_every_loop_runs_on_every_backend_in_one_group() -> None:
    (group,) = groups_of("matmul", loop="as-written,step,fused")
    assert [(planned.spec.backend, planned.spec.loop) for planned in group.planned] == [
        ("cpu", "as-written"), ("cpu", "step"), ("cpu", "fused"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("vary", "values"),
    [
        ("dtype=float32,mixed_bfloat16", ["float32", "mixed_bfloat16"]),
        ("threads=1, 2", [1, 2]),
        ("onednn=on,off", [True, False]),
    ],
)
def test_values_of_a_varied_setting_are_in_one_group(vary: str, values: list[Any]) -> None:
    (group,) = groups_of("cifar", vary=vary, loop="fit")
    fields = [getattr(planned.spec, vary.split("=")[0]) for planned in group.planned]
    assert [getattr(field, "intra", field) for field in fields] == values


def test_values_of_a_varied_parameter_run_in_every_loop_and_replace_the_cases() -> None:
    varied = specs("tabular", vary="batch=8,32", loop="fit,step")
    assert [(spec.loop, spec.case, spec.params["batch"]) for spec in varied] == [
        ("fit", None, 8),
        ("step", None, 8),
        ("fit", None, 32),
        ("step", None, 32),
    ]


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ("dtype=float32,float31", "invalid value 'float31' for --dtype"),
        ("dtype=float32", "needs at least two values"),
        ("dtype=float32,", "needs at least two values"),
        ("seed=1,2", "--vary cannot vary seed"),
        ("loop=fit,step", "--vary cannot vary loop"),
        ("xla=on,off,dtype=float32,float64", "--vary names xla and dtype"),
        ("btach=1,2", "btach"),
    ],
)
def test_an_invalid_vary_is_refused_while_planning(vary: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        groups_of("cifar", vary=vary)


def test_each_workload_has_its_own_group() -> None:
    groups = groups_of("matmul", "dense-inference")
    assert [group.workload for group in groups] == ["matmul", "dense-inference"]
    assert [len(group.planned) for group in groups] == [1, 1]


def test_a_loop_that_does_not_apply_is_reported_and_the_others_run() -> None:
    (group,) = groups_of("matmul", loop="fit,step")
    assert [planned.spec.loop for planned in group.planned] == ["step"]
    (reason,) = group.not_applicable
    assert reason.startswith("matmul by loop fit: not applicable, because ")


def test_if_no_loop_applies_the_error_gives_the_reason_for_each_case() -> None:
    with pytest.raises(
        NotApplicable, match=r"model-init/build by loop step: not applicable, because .+model-init/clone"
    ):
        groups_of("model-init", loop="step")


def test_a_backend_that_does_not_apply_is_an_error() -> None:
    with pytest.raises(NotApplicable, match=r"transfer on cpu: not applicable, because .+nothing to copy") as caught:
        groups_of("transfer")
    assert caught.value.exit_code == 2


def test_cases_that_are_equal_in_the_selected_loop_run_once() -> None:
    assert [spec.title for spec in specs("op-granularity", loop="step")] == [
        "op-granularity/add", "op-granularity/matmul",
    ]  # fmt: skip


def test_a_planned_spec_has_its_steps_examples_and_notes() -> None:
    (group,) = groups_of("tabular", case="large")
    (planned,) = group.planned
    assert planned.total_steps == 3125
    assert planned.examples == 32
    assert any("float64" in note for note in planned.notes)


@pytest.mark.parametrize(
    ("workload", "options", "error", "message"),
    [
        ("cifra", {}, UnknownName, "cifra"),
        ("cifar", {"backend": "gpu"}, UnknownName, "backend named 'gpu'"),
        ("cifar", {"case": "small"}, UnknownName, "case named 'small'"),
        ("tabular", {"case": "smal"}, UnknownName, "case named 'smal'"),
        ("cifar", {"param": {"bach": "1"}}, UnknownName, "bach"),
        ("cifar", {"param": {"batch": "0"}}, SettingsError, "batch"),
        ("cifar", {"data": "full", "data_dir": "nowhere"}, DataError, "nowhere"),
    ],
)
def test_an_invalid_name_value_or_folder_is_refused_while_planning(
    workload: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        groups_of(workload, **options)


@pytest.mark.needs("linux")
def test_names_and_arguments_that_are_not_text_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    script = program(folder, text="import tensorflow as tf\ntf.zeros(1)\n", name="train.py")
    with pytest.raises(UsageError, match=r"caf\\udce9/train.py contains bytes that are not UTF-8"):
        groups_of(script)
    with pytest.raises(UsageError, match="not UTF-8"):
        groups_of("cifar", args=["--name", folder.name])
    monkeypatch.chdir(folder)
    with pytest.raises(UsageError, match="not UTF-8"):
        groups_of("train.py")


@pytest.mark.needs("linux")
def test_a_current_folder_that_was_deleted_is_an_error_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(UsageError, match="the current folder cannot be read: No such file or directory"):
        groups_of("train.py")


def test_a_plan_without_workloads_is_an_error_that_lists_the_workloads() -> None:
    with pytest.raises(UnknownName) as caught:
        groups_of()
    assert "cifar" in caught.value.hint


def test_a_file_is_named_by_its_stem_and_identified_by_its_text(tmp_path: Path) -> None:
    (spec,) = specs(program(tmp_path / "a"))
    assert (spec.workload, spec.params) == ("mine", {"batch": 8})
    assert spec.file == str((tmp_path / "a/mine.py").resolve())
    (moved,) = specs(program(tmp_path / "b"))
    assert moved.key == spec.key
    (edited,) = specs(program(tmp_path / "c", text=PROGRAM + "\n# another text\n"))
    assert edited.key != spec.key


@pytest.mark.parametrize("text", [PROGRAM, f"{PROGRAM}# changed"])
def test_files_with_the_same_name_are_told_apart_by_their_folders(text: str, tmp_path: Path) -> None:
    files = [program(tmp_path / "base"), program(tmp_path / "head", text=text)]
    (group,) = plan([*files], load(compare=True))
    assert [planned.spec.checkout for planned in group.planned] == ["base", "head"]
    assert [planned.spec.label for planned in group.planned][1].startswith("mine of head on cpu")
    (other,) = plan([files[0], program(tmp_path / "head", "yours.py")], load(compare=True))
    assert [planned.spec.checkout for planned in other.planned] == [None, None]


def test_workers_need_a_backend_that_can_combine_their_gradients() -> None:
    with pytest.raises(SettingsError, match=r"^scale does not support the backend directml$"):
        scale.check_settings(load(backend=["directml"]))
    scale.check_settings(load(backend=["cuda"]))
