"""What-ifs: the candidates for a program, their combination, and the protocol of their modules."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from synthetic import result

from bench import whatif
from bench.config.settings import load
from bench.errors import SettingsError
from bench.model.device import Device
from bench.model.facts import Epoch, Facts, PipelineStage
from bench.model.plan import Planned
from bench.model.step_parts import STEP_PARTS
from bench.whatif import Program, candidates, combine, program_changes

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", whatif.names())
def test_a_what_if_defines_the_names_of_the_protocol(name: str) -> None:
    module = whatif.load(name)
    assert module.ACTS_ON
    assert set(STEP_PARTS) >= module.ACTS_ON
    if name in program_changes():
        assert module.WORDS
        assert module.CAUSE
        assert module.ADVICE.endswith(".")
        assert any(
            hasattr(module, name) for name in ("change_dataset", "change_fit", "change_step", "change_tensorflow")
        )
    else:
        assert callable(module.candidates)


def test_every_what_if_that_has_an_order_exists() -> None:
    assert set(whatif.ORDER) <= set(whatif.names())


def test_loading_what_ifs_does_not_import_tensorflow() -> None:
    code = (
        "import sys; from bench import whatif; assert whatif.program_changes();"
        "print([name for name in sys.modules if name.split('.')[0] in ('tensorflow', 'keras')])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


@pytest.mark.parametrize("name", program_changes())
def test_every_what_if_of_the_change_option_is_documented(name: str) -> None:
    row = re.compile(rf"^\| `{name}` \| .+ \|$", re.MULTILINE)
    assert any(row.search(page.read_text(encoding="utf-8")) for page in DOCS.glob("*.md"))


def test_the_hint_for_an_unknown_what_if_has_the_nearest_name() -> None:
    with pytest.raises(SettingsError) as error:
        load(change="cache,prefech")
    assert error.value.hint == "Did you mean prefetch?"


def test_a_program_with_its_own_loop_gets_no_xla_what_if() -> None:
    names = {what_if.name for what_if in candidates(Program(result(loop="as-written", xla=None).spec, own_loop=True))}
    assert {"batch", "threads", "onednn"} <= names
    assert "xla" not in names


def test_a_pipeline_that_caches_gets_no_cache_what_if() -> None:
    def names(*stages: str) -> set[str]:
        pipeline = [PipelineStage(stage=stage) for stage in stages]
        program = Program(result().spec, Facts(pipeline_reachable=True, pipeline=pipeline))
        return {what_if.name for what_if in candidates(program)}

    assert {"cache", "prefetch"} <= names("tensor slice", "map", "batch")
    assert {"cache", "prefetch"} & names("cache", "batch") == {"prefetch"}


def test_only_settings_that_apply_to_the_spec_are_tried() -> None:
    options = {what_if.option for what_if in candidates(Program(result().spec))}
    assert {"--xla on", "--dtype mixed_bfloat16", "--param batch=128", "--threads 1", "--no-onednn"} <= options
    gpu = result(backend="cuda", dtype="float64", xla=True, tf32=False, params={}).spec
    options = {what_if.option for what_if in candidates(Program(gpu, compiled=True))}
    assert options >= {"--xla off", "--dtype float32", "--tf32"}
    assert not any("batch" in option or "onednn" in option for option in options)


def test_another_dtype_is_not_tried_if_a_script_sets_it_itself() -> None:
    facts = Facts(dtype_policy="mixed_float16")
    assert not [what_if for what_if in candidates(Program(result().spec, facts)) if "dtype" in what_if.option]


@pytest.mark.parametrize(("capability", "is_tried"), [("7.0", False), ("7.5", False), ("8.0", True), (None, True)])
def test_tf32_is_only_tried_on_a_gpu_that_may_have_it(capability: str | None, is_tried: bool) -> None:
    program = Program(result(backend="cuda", tf32=False).spec, device=Device(compute_capability=capability))
    assert ("--tf32" in {what_if.option for what_if in candidates(program)}) == is_tried


def test_a_script_that_passes_arrays_to_fit_is_tried_with_larger_batches_that_its_rows_can_fill() -> None:
    facts = Facts(batch=32, epoch=Epoch(batches=20, remainder=0))
    options = [what_if.option for what_if in candidates(Program(result(params={}).spec, facts))]
    assert [option for option in options if "batch" in option] == ["--param batch=128", "--param batch=512"]
    unknown = candidates(Program(result(params={}).spec, Facts()))
    assert not [what_if for what_if in unknown if what_if.grows_batch]


def test_a_backend_is_not_asked_for_what_it_cannot_do() -> None:
    options = {what_if.option for what_if in candidates(Program(result(backend="directml").spec))}
    assert "--dtype mixed_float16" in options
    assert not options & {"--xla on", "--dtype mixed_bfloat16"}


def test_only_changes_that_apply_to_the_program_are_tried() -> None:
    def names_for(**facts: Any) -> list[str]:
        program = Program(result().spec, Facts(**facts))
        names = [what_if.name for what_if in candidates(program) if what_if.option.startswith("--change")]
        return [name for name in names if name in whatif.ORDER]

    fit = {"callbacks": [], "verbose": 0, "metrics": False}
    pipeline = [{"stage": "map", "seconds": 1.0}]
    with_metrics = {**fit, "verbose": "auto", "metrics": True}
    assert names_for(fit=with_metrics) == ["steps-per-execution", "without-callbacks", "without-metrics"]
    # Without `pipeline_reachable` the program iterates over the pipeline itself.
    assert names_for(fit=fit, pipeline=pipeline) == ["steps-per-execution"]
    reachable = ["parallel-map", "cache", "prefetch", "steps-per-execution"]
    assert names_for(fit=fit, pipeline=pipeline, pipeline_reachable=True) == reachable
    assert names_for(fit=fit, run_eagerly=True) == ["steps-per-execution", "graph"]
    tapes = {"lines": [3], "per_step": 1.0, "several_gradients": False}
    assert names_for(persistent_tapes=tapes) == ["single-use-tapes"]
    assert names_for(persistent_tapes={**tapes, "several_gradients": True}) == []
    call = {"called": "predict", "per_step": 1.0}
    assert names_for(whole_data_calls=[{**call, "rows": 1}]) == ["on-batch"]
    assert names_for(whole_data_calls=[{**call, "rows": 1000}, call]) == []
    traced = {"function": "f", "file": "a.py", "line": 3, "count": 100}
    number = {**traced, "reason": {"kind": "value", "argument": "noise", "before": "0.5", "after": "1e-05"}}
    assert names_for(retraced=[number]) == ["reduce-retracing"]
    shape = {**traced, "reason": {"kind": "shape", "argument": "rows", "before": "(3,)", "after": "(4,)"}}
    assert names_for(retraced=[shape]) == ["reduce-retracing"]
    text = {**traced, "reason": {"kind": "value", "argument": "mode", "before": "'a'", "after": "'b'"}}
    nested = {**traced, "reason": {"kind": "value", "argument": "a['b']", "before": "0.5", "after": "1e-05"}}
    assert names_for(retraced=[text, nested]) == []
    new_function = {**traced, "reason": {"kind": "new function"}}
    assert names_for(retraced=[traced, new_function, {**number, "is_call": True}, {**number, "count": 2}]) == []
    assert names_for() == []


def test_every_candidate_says_what_to_write_in_the_program() -> None:
    fit = {"callbacks": ["Slow"], "verbose": 0, "metrics": True}
    facts = Facts(fit=fit, pipeline_reachable=True, run_eagerly=True)
    for backend in ("cpu", "cuda"):
        spec = result(backend=backend, tf32=False).spec
        assert [what_if.option for what_if in candidates(Program(spec, facts)) if not what_if.advice] == []


def test_combined_what_ifs_equal_the_single_what_ifs_applied_in_turn() -> None:
    plan = Planned(result().spec, (), None, 32)
    what_ifs = {what_if.option: what_if for what_if in candidates(Program(plan.spec, Facts(pipeline_reachable=True)))}
    chosen = [what_ifs[option] for option in ("--change cache", "--change prefetch", "--param batch=128", "--xla on")]
    changed = plan
    for what_if in chosen:
        changed = what_if.apply(changed)
    assert combine(chosen).apply(plan) == changed
    assert changed.spec.what_ifs == ("cache", "prefetch")
    assert (changed.spec.params["batch"], changed.spec.xla, changed.examples) == (128, True, 128)
    assert combine(chosen).option == "--change cache --change prefetch --param batch=128 --xla on"
