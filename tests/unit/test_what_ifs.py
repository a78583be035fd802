"""What-ifs: which of them are tried on a program, how they add up, and what each file must hold."""

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
from bench.model.facts import Facts
from bench.model.plan import Planned
from bench.whatif import Program, candidates, combined, program_changes

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", whatif.names())
def test_a_what_if_holds_what_the_protocol_asks_for(name: str) -> None:
    module = whatif.load(name)
    if name in program_changes():
        assert module.WORDS
        assert module.FIXES
        assert hasattr(module, "change_dataset") or hasattr(module, "change_fit")
    else:
        assert callable(module.candidates)


def test_every_what_if_that_has_an_order_exists() -> None:
    assert set(whatif.ORDER) <= set(whatif.names())


def test_finding_what_ifs_does_not_import_tensorflow() -> None:
    code = (
        "import sys; from bench import whatif; assert whatif.program_changes();"
        "print([name for name in sys.modules if name.split('.')[0] in ('tensorflow', 'keras')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", program_changes())
def test_a_what_if_that_change_accepts_has_a_row_in_the_documentation(name: str) -> None:
    row = re.compile(rf"^\| `{name}` \| .+ \|$", re.MULTILINE)
    assert any(row.search(page.read_text(encoding="utf-8")) for page in DOCS.glob("*.md"))


def test_a_wrong_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(SettingsError) as refused:
        load(change="cache,prefech")
    assert refused.value.hint == "Did you mean prefetch?"


def test_a_program_with_its_own_loop_gets_no_xla_what_if() -> None:
    names = {each.name for each in candidates(Program(result(loop="as-written", xla=None).spec, own_loop=True))}
    assert {"batch", "threads", "onednn"} <= names
    assert "xla" not in names


def test_only_settings_that_make_sense_for_the_spec_are_tried() -> None:
    options = {each.option for each in candidates(Program(result().spec))}
    assert {"--xla on", "--dtype mixed_bfloat16", "--param batch=128", "--threads 1", "--no-onednn"} <= options
    gpu = result(backend="cuda", dtype="float64", xla=True, tf32=False, params={}).spec
    options = {each.option for each in candidates(Program(gpu, compiled=True))}
    assert options >= {"--xla off", "--dtype float32", "--tf32"}
    assert not any("batch" in option or "onednn" in option for option in options)


def test_a_program_is_changed_only_if_it_has_something_to_change() -> None:
    def tried(**facts: Any) -> list[str]:
        program = Program(result().spec, Facts(**facts))
        names = [each.name for each in candidates(program) if each.option.startswith("--change")]
        return [name for name in names if name in whatif.ORDER]

    fit = {"callbacks": [], "verbose": 0, "metrics": False}
    pipeline = [{"stage": "map", "seconds": 1.0}]
    with_metrics = {**fit, "verbose": "auto", "metrics": True}
    assert tried(fit=with_metrics) == ["steps-per-execution", "without-callbacks", "without-metrics"]
    assert tried(fit=fit, pipeline=pipeline) == ["steps-per-execution"]  # the program iterates over the pipeline itself
    reachable = ["parallel-map", "cache", "prefetch", "steps-per-execution"]
    assert tried(fit=fit, pipeline=pipeline, pipeline_reachable=True) == reachable
    assert tried(fit=fit, run_eagerly=True) == ["steps-per-execution", "graph"]
    assert tried() == []


def test_what_ifs_add_up_one_by_one_and_combined() -> None:
    plan = Planned(result().spec, (), None, 32)
    what_ifs = {each.option: each for each in candidates(Program(plan.spec, Facts(pipeline_reachable=True)))}
    chosen = [what_ifs[option] for option in ("--change cache", "--change prefetch", "--param batch=128", "--xla on")]
    one_by_one = plan
    for what_if in chosen:
        one_by_one = what_if.apply(one_by_one)
    assert combined(chosen).apply(plan) == one_by_one
    assert one_by_one.spec.what_ifs == ("cache", "prefetch")
    assert (one_by_one.spec.params["batch"], one_by_one.spec.xla, one_by_one.examples) == (128, True, 128)
    assert combined(chosen).option == "--change cache --change prefetch --param batch=128 --xla on"
