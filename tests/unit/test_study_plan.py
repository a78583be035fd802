"""From settings to specs: which runs follow from what was asked for, and what is refused, and why."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bench.config.settings import load
from bench.errors import DataError, NotApplicable, SettingsError, UnknownName, UsageError
from bench.model.plan import Group
from bench.model.spec import Spec, Threads
from bench.study.plan import plan

pytestmark = pytest.mark.once

OWN = '''"""A program."""
from pydantic import BaseModel

class Params(BaseModel):
    batch: int = 8

def inputs(ctx):
    return (ctx.rng.random(4),)

def step():
    return lambda x: x
'''


def planned(*workloads: str, **options: Any) -> list[Group]:
    return plan(workloads, load(**options))


def specs(*workloads: str, **options: Any) -> list[Spec]:
    """The specs of all groups."""
    return [each.spec for group in planned(*workloads, **options) for each in group.planned]


def own(folder: Path, name: str = "mine.py", text: str = OWN) -> str:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_bare_name_is_the_program_as_written_on_the_cpu() -> None:
    (spec,) = specs("cifar", data="sample")
    assert (spec.workload, spec.backend, spec.loop, spec.case) == ("cifar", "cpu", "as-written", None)
    assert spec.params == {"batch": 32, "epochs": 10, "hidden1": 3000, "hidden2": 1000, "learning_rate": 0.01}


def test_every_value_of_a_spec_is_explicit() -> None:
    (spec,) = specs("cifar", data="sample", loop="step")
    told = spec.model_dump()
    assert {name for name, value in told.items() if value is None} == {"file", "case"}
    assert spec.threads.intra >= 1
    assert spec.threads.inter >= 1
    assert told["data"]["kind"] == "sample"
    assert told["data"]["sha256"]
    assert told["file_sha256"]


@pytest.mark.parametrize(
    ("loop", "xla", "pinned"),
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
def test_xla_is_pinned_in_every_loop_but_as_written(loop: str, xla: str, pinned: bool | None) -> None:
    (spec,) = specs("cifar", data="sample", loop=loop, xla=xla)
    assert spec.xla is pinned


def test_settings_reach_the_spec() -> None:
    wanted: dict[str, Any] = {"dtype": "float64", "tf32": False, "onednn": False, "deterministic": True, "seed": 7}
    (spec,) = specs("matmul", threads=3, **wanted)
    assert spec.threads == Threads(intra=3, inter=3)
    assert spec.model_dump(include=set(wanted)) == wanted


def test_threads_are_the_cpu_limits_unless_asked_for() -> None:
    from bench.machine.limits import thread_count

    (spec,) = specs("matmul")
    assert spec.threads.intra == spec.threads.inter == thread_count()


def test_without_a_choice_all_cases_run_each_by_its_own_loop() -> None:
    found = [(spec.title, spec.loop, spec.params["op"]) for spec in specs("op-granularity")]
    assert found == [
        ("op-granularity/add", "as-written", "add"),
        ("op-granularity/matmul", "as-written", "matmul"),
        ("op-granularity/add-graph", "step", "add"),
        ("op-granularity/matmul-graph", "step", "matmul"),
    ]


def test_a_case_can_be_chosen_and_its_other_parameters_set() -> None:
    (spec,) = specs("tabular", case="large", param={"rows": "6400"})
    assert (spec.title, spec.params["feed"], spec.params["rows"], spec.params["batch"]) == (
        "tabular/large", "dataset", 6400, 32,
    )  # fmt: skip


def test_a_parameter_that_the_cases_set_chooses_instead_of_them() -> None:
    (spec,) = specs("tabular", param={"batch": "20"})
    assert (spec.case, spec.params["batch"], spec.params["rows"]) == (None, 20, 1000)


def test_a_swept_parameter_chooses_instead_of_a_case_at_the_cases_own_value_too() -> None:
    (group,) = plan(["tabular"], load(param={"batch": "32"}), swept=["batch"])
    assert [each.spec.case for each in group.planned] == [None]


def test_a_parameter_that_no_case_sets_goes_to_each_of_them() -> None:
    found = specs("tabular", param={"hidden": "64"})
    assert [(spec.case, spec.params["hidden"]) for spec in found] == [("small", 64), ("large", 64)]


def test_backends_and_loops_are_crossed_within_one_group() -> None:
    (group,) = planned("matmul", loop="as-written,step,fused")
    assert [(each.spec.backend, each.spec.loop) for each in group.planned] == [
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
def test_values_of_a_setting_interleave(vary: str, values: list[Any]) -> None:
    (group,) = planned("cifar", vary=vary, loop="fit")
    found = [getattr(each.spec, vary.split("=")[0]) for each in group.planned]
    assert [getattr(each, "intra", each) for each in found] == values


def test_values_of_a_parameter_interleave_in_each_loop_and_choose_instead_of_the_cases_that_set_it() -> None:
    found = [
        (each.loop, each.case, each.params["batch"]) for each in specs("tabular", vary="batch=8,32", loop="fit,step")
    ]
    assert found == [("fit", None, 8), ("step", None, 8), ("fit", None, 32), ("step", None, 32)]


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
def test_what_can_not_be_varied_is_refused_before_anything_runs(vary: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        planned("cifar", vary=vary)


def test_each_workload_is_a_group_of_its_own() -> None:
    groups = planned("matmul", "dense-inference")
    assert [group.workload for group in groups] == ["matmul", "dense-inference"]
    assert [len(group.planned) for group in groups] == [1, 1]


def test_a_loop_that_makes_no_sense_is_told_and_the_others_run() -> None:
    (group,) = planned("matmul", loop="fit,step")
    assert [each.spec.loop for each in group.planned] == ["step"]
    (refused,) = group.not_applicable
    assert refused.startswith("matmul by loop fit: not applicable, because ")


def test_where_nothing_is_left_to_run_the_reasons_are_the_error() -> None:
    with pytest.raises(
        NotApplicable, match=r"model-init/build by loop step: not applicable, because .+model-init/clone"
    ):
        planned("model-init", loop="step")


def test_a_backend_that_makes_no_sense_is_told() -> None:
    with pytest.raises(NotApplicable, match=r"transfer on cpu: not applicable, because .+nothing to copy") as caught:
        planned("transfer")
    assert caught.value.exit_code == 2


def test_two_cases_that_an_asked_loop_makes_the_same_are_run_once() -> None:
    assert [spec.title for spec in specs("op-granularity", loop="step")] == [
        "op-granularity/add", "op-granularity/matmul",
    ]  # fmt: skip


def test_what_a_result_should_say_is_planned_with_it() -> None:
    (group,) = planned("tabular", case="large")
    (one,) = group.planned
    assert one.total_steps == 3125
    assert one.examples == 32
    assert any("float64" in note for note in one.notes)


@pytest.mark.parametrize(
    ("workload", "options", "error", "said"),
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
def test_what_is_wrong_is_found_before_anything_runs(
    workload: str, options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        planned(workload, **options)


def test_no_workload_at_all_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(UnknownName) as caught:
        planned()
    assert "cifar" in caught.value.hint


def test_a_file_is_named_by_its_stem_and_known_by_its_text(tmp_path: Path) -> None:
    (spec,) = specs(own(tmp_path / "a"))
    assert (spec.workload, spec.params) == ("mine", {"batch": 8})
    assert spec.file == str((tmp_path / "a/mine.py").resolve())
    (moved,) = specs(own(tmp_path / "b"))
    assert moved.key == spec.key
    (edited,) = specs(own(tmp_path / "c", text=OWN + "\n# another text\n"))
    assert edited.key != spec.key
