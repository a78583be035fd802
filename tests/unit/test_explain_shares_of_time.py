"""Causes that an explanation weighs by timed callbacks, samples of the stack, and the time of the whole program."""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest
from synthetic import explanation, interval, ladder_results, result
from test_analyse_compare import sample

from bench.analyse.explain import wall_time
from bench.analyse.explain.findings import findings
from bench.analyse.explain.growth import trend
from bench.model.causes import BETWEEN_EPOCHS, BETWEEN_STEPS
from bench.model.explanation import STEPS, Finding, WallTimePart
from bench.model.facts import (
    Asides,
    CallbackTime,
    CallbackTimes,
    CallKind,
    Epoch,
    Facts,
    FitCall,
    LongSteps,
    MetricsTime,
    OptimizerTime,
    OutsideWork,
    OwnTime,
    OwnTimePart,
    PipelineStage,
    Recompiled,
    Retraced,
    TraceReason,
    WholeDataCall,
)
from bench.model.result import Projection, Result
from bench.model.sample import Block, ProcessSample, Series
from bench.model.spec import LOOPS
from bench.render.sentences import explanation as sentences
from bench.render.terminal.explanation import text
from bench.worker.diagnose.own_time import Place, place_of, summary
from bench.worker.frames import SourceLine, Sources

CAUSE = "a new dataset for each call"

LINE_2 = SourceLine("", 2)


def found(facts: Facts, phases: dict[str, float] | None = None, **changes: Any) -> dict[str, Finding]:
    samples = [sample(n, 0.01, facts=facts, phases={"first_step": 0.01, **(phases or {})}) for n in (1, 2, 3)]
    return {finding.cause: finding for finding in findings([result(samples=samples, **changes)])}


def own_time(*parts: tuple[int, str, CallKind, float]) -> Facts:
    lines = [OwnTimePart(line=line, called=called, kind=kind, share=share) for line, called, kind, share in parts]
    return Facts(own_time=OwnTime(steps=10, step_seconds=0.01, parts=lines))


def test_calls_of_predict_and_fit_in_a_step_are_one_finding_with_their_lines_and_their_share() -> None:
    facts = own_time((7, "predict", "keras", 0.5), (9, "fit", "keras", 0.3), (8, "", "python", 0.02))
    finding = found(facts)[CAUSE]
    assert "Each step calls predict and fit" in finding.sentence
    assert "lines 7, 9" in finding.sentence
    assert finding.share == pytest.approx(0.8)
    assert finding.estimated
    assert "model(x, training=False)" in finding.fix


def test_the_fit_of_another_library_is_python() -> None:
    finding = found(own_time((7, "fit", "python", 0.5)))
    assert CAUSE not in finding
    assert finding["Python between calls of TensorFlow"].share == pytest.approx(0.5)


def test_shares_count_the_lines_that_are_too_many_to_name() -> None:
    places = [(Place(SourceLine("", line), "add", "eager"), 0.01) for line in range(1, 101)]
    sampled = summary(places, steps=10, elapsed=1.0)
    assert sampled is not None
    assert sum(part.share for part in sampled.parts) == pytest.approx(1.0)
    assert sampled.share("eager") == pytest.approx(1.0)
    spread = summary([(Place(SourceLine("", line), "", "python"), 0.01) for line in range(1, 101)], 10, 1.0)
    finding = found(Facts(own_time=spread))["Python between calls of TensorFlow"]
    assert finding.share == pytest.approx(1.0)
    assert "source line 1)" in finding.sentence


@pytest.mark.parametrize(("freeing", "called"), [(0.7, {"predict": 1.0}), (1.5, {"predict": 0.4, "": 0.6})])
def test_freeing_what_a_call_of_keras_leaves_belongs_to_the_call(freeing: float, called: dict[str, float]) -> None:
    samples: list[tuple[Place, float]] = [
        (Place(LINE_2, "predict", "keras"), 1.0),
        (Place(LINE_2, "", "python"), freeing),
    ]
    sampled = summary(samples, steps=10, elapsed=2.0)
    assert sampled is not None
    assert {part.called: part.share for part in sampled.parts} == pytest.approx(called)


@pytest.mark.parametrize(("seconds", "share"), [(0.006, 0.6), (0.02, 1.0), (0.0001, None)])
def test_xla_that_compiles_each_shape_takes_the_time_of_compiling(seconds: float, share: float | None) -> None:
    recompiled = Recompiled(
        function="train",
        file="/a/mine.py",
        line=7,
        shapes=40,
        calls=50,
        seconds=seconds,
        before="(8, 3)",
        after="(8, 4)",
    )
    finding = found(Facts(recompiled=recompiled)).get("XLA compiling new shapes")
    assert (finding and finding.share) == (share and pytest.approx(share))
    if finding is not None:
        assert (
            "XLA compiled train (mine.py line 7) for 40 new shapes in 50 calls, for example for (8, 3)"
            in finding.sentence
        )
        assert finding.what_ifs == ["xla"]


def test_methods_that_are_called_between_some_steps_are_not_reported_as_a_part_of_each() -> None:
    def causes_of(per_step: float, asides: Asides | None) -> set[str]:
        facts = own_time((7, "evaluate", "keras", 0.5))
        facts.whole_data_calls = [WholeDataCall(called="evaluate", per_step=per_step)]
        facts.asides = asides
        return {*found(facts)} & {CAUSE, BETWEEN_STEPS}

    asides = Asides(count=3, first_seconds=0.6, seconds=0.6, every=10)
    assert causes_of(0.1, asides) == {BETWEEN_STEPS}
    assert causes_of(1.0, asides) == {BETWEEN_STEPS, CAUSE}
    assert causes_of(0.1, None) == {CAUSE}


def test_summaries_that_each_step_writes_are_a_cause_of_their_own() -> None:
    finding = found(own_time((7, "image", "summary", 0.6), (8, "", "graph", 0.4)))["summaries in each step"]
    assert finding.sentence == "Writing summaries takes 60% of the step (cifar's source line 7)."
    assert finding.fix.startswith("Write them every 100 steps.")


@pytest.mark.parametrize(("seconds", "is_fast"), [(0.0005, True), (0.004, False)])
def test_a_fast_pipeline_is_not_told_to_become_faster(seconds: float, is_fast: bool) -> None:
    facts = own_time((7, "__next__", "input", 0.5), (8, "", "graph", 0.5))
    facts.pipeline = [PipelineStage(stage="tensor slice", seconds=seconds)]
    finding = found(facts)["slow input"]
    assert finding.fix.startswith("The pipeline is fast") == is_fast
    assert ("Slowest stage" in finding.sentence) != is_fast


@pytest.mark.parametrize(("seconds", "of_script"), [(0.9, True), (0.1, False)])
def test_work_of_the_script_between_two_calls_of_fit_is_not_called_the_work_of_fit(
    seconds: float, of_script: bool
) -> None:
    facts = fit_facts(0.0)
    facts.epoch = Epoch(batches=8, remainder=0)
    facts.between_fits = OutsideWork(seconds=seconds, lines=[15])
    finding = found(facts, phases={"epoch_end": 0.1, "epoch_start": 0.9})[BETWEEN_EPOCHS]
    assert ("Most of it passes between two calls of fit, in the script" in finding.sentence) == of_script
    assert ("Most of it is the work of fit itself" in finding.sentence) != of_script
    assert finding.fix.startswith("Do this work once") == of_script


def test_a_call_that_takes_little_of_the_step_is_no_finding() -> None:
    assert CAUSE not in found(own_time((7, "predict", "keras", 0.03), (8, "", "graph", 0.9)))


def test_traces_that_predict_makes_are_reported_once_with_the_share_of_predict() -> None:
    facts = own_time((7, "predict", "keras", 0.9))
    facts.retraced = [Retraced(function="predict", file="a.py", line=7, is_call=True, count=200)]
    facts.steps_run = 200
    assert [cause for cause in found(facts) if "dataset" in cause or "retracing" in cause] == [CAUSE]
    assert found(facts)[CAUSE].share == pytest.approx(0.9)


def test_retracing_takes_the_time_of_its_traces() -> None:
    traced = [Retraced(function="scaled", file="a.py", line=7, is_call=False, count=200)]
    facts = Facts(retraced=traced, steps_run=200, trace_seconds=200 * 0.004)
    assert found(facts)["retracing"].share == pytest.approx(0.4)


def test_retracing_takes_what_the_first_call_of_a_new_graph_takes_beyond_a_second_one() -> None:
    traced = [Retraced(function="f", file="/a/mine.py", line=3, count=100)]
    facts = Facts(retraced=traced, steps_run=100, trace_seconds=0.4, retracing_share=0.95)
    assert found(facts)["retracing"].share == 0.95


def test_retracing_names_the_argument_that_changes_and_its_fix() -> None:
    def finding(reason: TraceReason | None) -> Finding:
        traced = [Retraced(function="f", file="/a/mine.py", line=3, count=100, reason=reason)]
        return found(Facts(retraced=traced, steps_run=100, trace_seconds=0.4))["retracing"]

    number = finding(TraceReason(kind="value", argument="noise", before="0.999", after="0.998"))
    assert "because its argument noise changes, for example from 0.999 to 0.998." in number.sentence
    assert number.fix.startswith("Pass noise as a tensor, with tf.constant(noise).")
    lengths = finding(TraceReason(kind="shape", argument="rows", before="(32, 7)", after="(32, 9)"))
    assert "because the shape of its argument rows changes, for example from (32, 7) to (32, 9)." in lengths.sentence
    assert "reduce_retracing=True" in lengths.fix
    anew = finding(TraceReason(kind="new function"))
    assert anew.sentence.endswith("in 100 steps, because each time it is a new tf.function.")
    assert anew.fix == "Create the tf.function once, outside the loop."
    assert "Pass tensors instead of Python numbers" in finding(None).fix


def test_an_optimizer_that_rewrites_all_rows_of_an_embedding_is_named() -> None:
    facts = Facts(optimizer=OptimizerTime(name="Adam", seconds=0.008, rows=230_000, rows_read=512))
    finding = found(facts)["optimizer that rewrites whole embeddings"]
    assert (
        "Adam rewrites all 230,000 rows of the embeddings in each step, although a batch reads 512" in finding.sentence
    )
    assert finding.share == pytest.approx(0.8)
    dense = OptimizerTime(name="Adam", seconds=0.003, rows=0, rows_read=0)
    assert "larger batch" in found(Facts(optimizer=dense))["optimizer"].fix
    assert "optimizer" not in found(Facts(optimizer=dense.model_copy(update={"seconds": 0.001})))


def test_metrics_that_take_much_of_the_step_are_named() -> None:
    facts = Facts(metrics=MetricsTime(names=["sorted_error"], seconds=0.006))
    finding = found(facts)["metrics in each step"]
    assert finding.sentence == "The metrics of the model take 60% of the step: sorted_error."
    assert finding.what_ifs == ["without-metrics"]
    assert "metrics in each step" not in found(Facts(metrics=MetricsTime(names=["accuracy"], seconds=0.0005)))


def test_python_without_tensorflow_is_a_finding_with_its_largest_lines() -> None:
    finding = found(own_time((4, "roll", "python", 0.4), (5, "", "python", 0.02), (6, "__call__", "graph", 0.5)))[
        "Python between calls of TensorFlow"
    ]
    assert "takes 42% of the step" in finding.sentence
    assert "line 4)" in finding.sentence


def fit_facts(step_seconds: float, epoch_seconds: float = 0.0, validated_epochs: float = 0.0) -> Facts:
    callback = CallbackTime(name="HoldOut", step_seconds=step_seconds, epoch_seconds=epoch_seconds, calls=["predict"])
    return Facts(
        fit=FitCall(callbacks=["HoldOut"], verbose=0, metrics=False),
        callback_times=CallbackTimes(callbacks=[callback]),
        validated_epochs=validated_epochs,
    )


def test_a_timed_callback_is_a_cause_even_if_the_ladder_cannot_tell() -> None:
    finding = found(fit_facts(0.006))["callbacks and logging"]
    assert finding.share == pytest.approx(0.6)
    assert "HoldOut (calls predict) 6 ms" in finding.sentence
    assert "validation_data" in finding.fix
    assert "callbacks and logging" not in found(fit_facts(0.0001))


def test_a_dataset_for_each_call_of_predict_in_a_callback_is_part_of_the_callback() -> None:
    facts = fit_facts(0.006)
    facts.steps_run = 100
    facts.retraced = [Retraced(function="predict", file="/a/mine.py", line=27, is_call=True, count=90)]
    assert "a new dataset for each call" not in found(facts)


def test_work_between_some_steps_of_a_loop_of_its_own_is_a_cause_of_its_own() -> None:
    asides = Asides(count=3, first_seconds=2.0, seconds=0.9, every=10.0)  # steps take 0.01 s
    finding = found(Facts(asides=asides))[BETWEEN_STEPS]
    assert finding.share == pytest.approx(0.9)
    assert "Every 10 steps, the script does other work for 900 ms, as long as 90 steps." in finding.sentence
    assert BETWEEN_STEPS not in found(Facts(asides=asides.model_copy(update={"seconds": 0.001})))


def test_rare_long_steps_are_a_cause_with_their_lines() -> None:
    long = LongSteps(count=5, seconds=0.9, every=10.0, median=0.01, lines=[7])
    finding = found(Facts(long_steps=long))["rare long steps"]
    assert finding.share == pytest.approx(0.9)
    assert "About every 10 steps, a step takes 900 ms longer (cifar's source line 7)." in finding.sentence
    asides = Asides(count=3, first_seconds=2.0, seconds=0.9, every=10.0)
    assert "rare long steps" not in found(Facts(long_steps=long, asides=asides))


def test_an_explanation_names_the_work_between_some_steps_first_if_it_takes_most() -> None:
    between = Finding(cause=BETWEEN_STEPS, sentence="", evidence="", share=0.9)
    document = explanation(ladder_results()).model_copy(update={"findings": [between]})
    assert document.steps_share == pytest.approx(0.1)
    assert "90% of the time passes between steps." in sentences.headline(document)


def test_a_shuffle_buffer_that_fills_is_not_the_work_of_fit() -> None:
    stages = [PipelineStage(stage="shuffle", seconds=0.001, buffer=5000, filling_seconds=2.0)]
    facts = Facts(
        fit=FitCall(callbacks=[], verbose=0, metrics=False), pipeline=stages, epoch=Epoch(batches=100, remainder=0)
    )
    causes = found(facts, phases={"epoch_end": 0.01, "epoch_start": 2.0})
    assert causes["filling the shuffle buffer"].share == pytest.approx(2 / 3)
    assert BETWEEN_EPOCHS not in causes


def test_slow_input_of_a_loop_of_its_own_names_the_slowest_stage_if_it_was_timed() -> None:
    facts = own_time((7, "__next__", "input", 0.9))
    assert "num_parallel_calls" in found(facts)["slow input"].fix
    parallel = PipelineStage(stage="map, parallel", function="read", file="a.py", line=3, seconds=0.009)
    facts.pipeline = [parallel, PipelineStage(stage="prefetch", seconds=0.009)]
    finding = found(facts)["slow input"]
    assert "Slowest stage: map, parallel (read, a.py line 3)." in finding.sentence
    assert "num_parallel_calls" not in finding.fix
    assert finding.share == pytest.approx(0.9)
    assert finding.estimated


def test_functions_that_run_eagerly_are_told_from_a_model_that_does() -> None:
    finding = found(Facts(functions_eager=True, run_eagerly=True))["eager execution"]
    assert finding.fix.startswith("Remove tf.config.run_functions_eagerly(True).")
    assert finding.what_ifs == []
    assert found(Facts(functions_eager=False, run_eagerly=True))["eager execution"].what_ifs == ["graph"]


def test_the_end_of_an_epoch_names_what_takes_longest() -> None:
    facts = fit_facts(0.0, epoch_seconds=0.6, validated_epochs=0.5)
    facts.epoch = Facts.model_validate({"epoch": {"batches": 8, "remainder": 0}}).epoch
    finding = found(facts, phases={"epoch_end": 0.7, "validation": 0.4})[BETWEEN_EPOCHS]
    assert "Longest: HoldOut (calls predict) 600 ms (61% of it), validation 200 ms (20% of it)." in finding.sentence


def trained(samples: Sequence[ProcessSample], steps: int) -> Result:
    projection = Projection(steps=steps, build_and_fit_seconds=interval(1.0), total_seconds=interval(1.0))
    return result(samples=list(samples), projection=projection)


def test_the_time_of_a_training_is_divided_and_the_largest_part_comes_first() -> None:
    phases = {"import": 3.0, "data": 0.5, "build": 0.4, "first_step": 0.6, "epoch_end": 1.75}
    phases |= {"first_validation": 0.6, "validation": 0.4}
    facts = fit_facts(0.0, epoch_seconds=1.5, validated_epochs=0.5)
    facts.epoch = Facts.model_validate({"epoch": {"batches": 100, "remainder": 0}}).epoch
    parts = wall_time.wall_time(trained([sample(1, 0.01, phases=phases, facts=facts)], 400))
    seconds = {part.name: part.seconds for part in parts}
    assert seconds == pytest.approx(
        {
            "HoldOut (calls predict)": 6.0,
            STEPS: 399 * 0.01,
            wall_time.START: 3.0,
            "validation": 1.0,
            wall_time.EPOCHS: 1.0,
            wall_time.BUILD: 1.0,
            wall_time.DATA: 0.5,
        }
    )
    assert [part.seconds for part in parts] == sorted(seconds.values(), reverse=True)
    assert sum(part.share for part in parts) == pytest.approx(1.0)


def test_the_time_of_a_training_is_not_divided_if_it_is_not_projected() -> None:
    assert wall_time.wall_time(result(samples=[sample(1, 0.01)], projection=None)) == []


def test_the_parts_of_the_training_are_shown_unless_nearly_all_of_it_is_steps() -> None:
    def shown(steps: float, end: float) -> list[str]:
        levels = [result(str(n), loop=loop, samples=[sample(1, 0.01)]) for n, loop in enumerate(LOOPS)]
        document = explanation([*levels[:5], *levels[:2]])
        document.wall_time = [
            WallTimePart(name=name, seconds=seconds, share=seconds / (steps + end))
            for seconds, name in sorted([(steps, STEPS), (end, "TextCheckpoint")], reverse=True)
        ]
        return text(document).splitlines()

    lines = shown(60.0, 20.0)
    (title,) = [line for line in lines if line.startswith("Where the time of the whole program goes")]
    assert "1 min 20 s" in title
    assert any(line.endswith("25%  TextCheckpoint, 20.0 s") for line in lines)
    assert not [line for line in shown(60.0, 0.5) if "whole training" in line]
    assert any(line.endswith("99%  TextCheckpoint, 20.0 s") for line in shown(0.2, 20.0))


def steps_of(step_seconds: Callable[[int], float], seed: int) -> ProcessSample:
    rng = random.Random(seed)
    times = [step_seconds(block) * rng.lognormvariate(0, 0.05) for block in range(30)]
    blocks = [Block(seconds=50 * t, steps=50, cpu_seconds=50 * t, position=n) for n, t in enumerate(times)]
    return sample(seed, 0.01, series=[Series(blocks=blocks)])


def test_steps_that_take_longer_and_longer_are_found_and_noisy_ones_are_not() -> None:
    def growth(step_seconds: Callable[[int], float]) -> list[Finding]:
        processes = [steps_of(step_seconds, seed) for seed in (1, 2)]
        return [f for f in findings([result(samples=processes)]) if f.cause == "steps that take longer and longer"]

    (finding,) = growth(lambda block: 0.001 + 0.00005 * block)
    assert "after 1,500 steps" in finding.sentence
    assert finding.share == pytest.approx(0.45, abs=0.1)
    assert not growth(lambda block: 0.001)
    assert not growth(lambda block: 0.001 if block % 2 else 0.002)


def test_growth_that_other_work_on_the_machine_hides_is_found_in_the_cpu_time() -> None:
    rng = random.Random(1)
    processes = [steps_of(lambda block: 0.001 + 0.00005 * block, seed) for seed in (1, 2)]
    for process in processes:
        for block in process.series[0].blocks:
            block.seconds *= rng.choice([1.0, 2.0, 4.0])
    (finding,) = [f for f in findings([result(samples=processes)]) if f.cause == "steps that take longer and longer"]
    assert "ms of CPU time at first" in finding.sentence


def test_steps_that_grow_in_the_warm_up_and_slow_first_steps_are_told_apart() -> None:
    def growth(warm_up: Callable[[int], float]) -> bool:
        processes = [steps_of(lambda block: 0.004, seed) for seed in (1, 2)]
        for process in processes:
            process.series[0].warmup = steps_of(warm_up, process.trial + 2).series[0].blocks
        return any(f.cause == "steps that take longer and longer" for f in findings([result(samples=processes)]))

    assert growth(lambda block: 0.001 + 0.0001 * block)
    assert not growth(lambda block: 0.004 if block else 0.5)
    assert not growth(lambda block: 0.006 if block < 10 else 0.004)


def test_growth_in_a_long_warm_up_is_found_although_the_few_steps_after_it_are_alike() -> None:
    step_seconds = (0.0005 + 0.00036 * span for span in range(14))
    warm_up = [Block(seconds=256 * t, steps=256, cpu_seconds=256 * t) for t in step_seconds]
    # The machine is a little faster now, so these steps take no longer than those at the end of the warm-up.
    blocks = [Block(seconds=30 * 0.004, steps=30, cpu_seconds=30 * 0.004, position=n) for n in range(20)]
    process = sample(1, 0.004, series=[Series(warmup=warm_up, blocks=blocks)])
    (finding,) = [f for f in findings([result(samples=[process])]) if f.cause == "steps that take longer and longer"]
    assert finding.share == pytest.approx(0.88, abs=0.03)
    assert "after 4,184 steps" in finding.sentence


def test_the_trend_of_unordered_blocks_has_the_variance_that_its_score_assumes() -> None:
    unordered = [steps_of(lambda block: 0.001, seed).series[0].blocks for seed in range(300)]
    scores = [trend([block.step_seconds for block in blocks]) for blocks in unordered]
    assert sum(score**2 for score in scores) / len(scores) == pytest.approx(1.0, abs=0.3)


def test_the_trend_of_a_few_ordered_times_is_as_clear_as_their_number_of_orders_says() -> None:
    score = statistics.NormalDist().inv_cdf
    assert trend(range(7)) == pytest.approx(-score(1 / 5040), rel=1e-6)
    assert trend([1, 0, 2, 3, 4, 5, 6]) == pytest.approx(-score(7 / 5040), rel=1e-6)
    assert trend(range(20, 0, -1)) < -5


def stack(source: str, file: str) -> Any:
    """Run code as if it came from a file, and return what a sample of its stack shows while it calls `probe`."""
    seen: list[Place] = []

    def probe() -> None:
        frame: FrameType = sys._getframe(1)
        seen.append(place_of(frame, Sources("mine.py"), ("/lib/tensorflow", "/lib/keras")))

    names: dict[str, Any] = {"probe": probe}
    for name, code in (("library", source), ("program", "\ncall()")):
        exec(compile(code, file if name == "library" else "mine.py", "exec"), names)
    return seen[0]


@pytest.mark.parametrize(
    ("source", "file", "place"),
    [
        ("def call(): probe()", "/lib/numpy/a.py", Place(LINE_2, "call", "python")),
        ("def call(): probe()", "/lib/tensorflow/a.py", Place(LINE_2, "call", "eager")),
        ("def call(): probe()", "/lib/tensorflow/polymorphic_function.py", Place(LINE_2, "call", "graph")),
        (
            "def predict(): probe()\ncall = predict",
            "/lib/tensorflow/a.py",
            Place(LINE_2, "predict", "keras"),
        ),
        ("def numpy(): probe()\ncall = numpy", "/lib/tensorflow/a.py", Place(LINE_2, "numpy", "read")),
        (
            "def func_graph_from_py_func(): probe()\ndef call(): func_graph_from_py_func()",
            "/lib/tensorflow/a.py",
            Place(LINE_2, "call", "tracing"),
        ),
        (
            "def __init__(): probe()\ncall = __init__",
            "/lib/keras/a.py",
            Place(LINE_2, "__init__", "building"),
        ),
        (
            "def __array__(): probe()\ndef mean(): __array__()\ncall = mean",
            "/lib/tensorflow/a.py",
            Place(LINE_2, "mean", "read"),
        ),
        (
            "def _next_internal(): probe()\ndef get_next(): _next_internal()\ncall = get_next",
            "/lib/tensorflow/a.py",
            Place(LINE_2, "get_next", "input"),
        ),
        ("def run(): probe()\ncall = run", "/lib/tensorflow/session.py", Place(LINE_2, "run", "graph")),
    ],
)
def test_a_sample_of_the_stack_names_the_line_and_what_it_calls(source: str, file: str, place: Place) -> None:
    assert stack(source, file) == place
