"""The study of `devbench explain`: accepted parameters, interruptions and the designs of its sessions."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic
from synthetic import result
from test_analyse_compare import sample

from bench.analyse.explain.suspects import suspects_in
from bench.config.settings import RunSettings, load
from bench.errors import DevbenchError, DeviceAbsent, Interrupted, RunFailed
from bench.model.facts import Facts
from bench.model.failure import Failure
from bench.model.plan import Planned
from bench.model.recognition import Recognition, StepSource
from bench.model.result import Result
from bench.model.sample import Block
from bench.model.spec import Spec
from bench.publish.recorder import Recorder
from bench.render.terminal import explanation
from bench.session import one_off
from bench.session import session as sessions
from bench.session.design import Design
from bench.session.session import Session
from bench.study import explain, explain_sessions
from bench.study.explain import ExplainStudy
from bench.study.explain_levels import LADDER, largest_so_far, with_first_trial
from bench.study.explain_what_ifs import TOGETHER, WHAT_IF, WhatIfStudy
from bench.study.peaks import peaks_settings
from bench.study.plan import plan

pytestmark = pytest.mark.once

NOISE = (1.0, 1.004, 0.997, 1.002, 0.999)
STEPS = {"as-written": 0.010, "fit": 0.009, "step": 0.008, "host-batches": 0.006, "resident": 0.006, "fused": 0.006}

PROGRAM = '''"""A step that does almost nothing."""

from pydantic import BaseModel


class Params(BaseModel):
    {parameter}


def inputs(ctx):
    return (ctx.rng.random(8),)


def step():
    return lambda x: x


def total_steps(p):
    return 8 if p == Params() else int("the parameters are not those of the file")
'''


class Fake:
    """A session that takes its step times from a table. It ends immediately, or is interrupted on request.

    Attributes:
        sessions: The settings and specs of each session that started.
        designs: The design of each of these sessions.
        complete: The number of sessions that finish. Later ones are interrupted.
        noise: A factor of the step time for each trial of a session.
        facts: What the workers read from their runs.
        phases: The phases of the workers. None for an import and a first step.
        failure: Why every result fails. None if they succeed.
        growing: Whether the steps of the warm-up take longer and longer.
    """

    sessions: list[tuple[RunSettings, list[Spec]]]
    designs: list[Design]
    complete: int
    noise: tuple[float, ...]
    facts: dict[str, Any]
    phases: dict[str, float] | None
    failure: Failure | None
    growing: bool

    def __init__(self, group: Any, settings: RunSettings, design: Design, *_: Any) -> None:
        self.results = []
        self.settings = settings
        specs = [planned.spec for planned in group.planned]
        Fake.sessions.append((settings, specs))
        Fake.designs.append(design)
        for spec in specs:
            step = STEPS[spec.loop] * (0.5 if spec.xla else 1.0) * (0.8 if not spec.onednn else 1.0)
            fields: dict[str, Any] = {"facts": Fake.facts} | ({"phases": Fake.phases} if Fake.phases else {})
            samples = [sample(n, step * noise, **fields) for n, noise in enumerate(Fake.noise, 1)]
            for process in samples if Fake.growing else ():
                times = [step * (span + 1) / 14 for span in range(14)]
                process.series[0].warmup = [Block(seconds=500 * t, steps=500, cpu_seconds=0.0) for t in times]
            measured = result(spec.key, str(len(Fake.sessions)), samples=samples, failure=Fake.failure)
            self.results.append(measured.model_copy(update={"spec": spec, "key": spec.key}))

    def run(self) -> list[Any]:
        """Return the results, or raise `Interrupted` after the last complete session."""
        if len(Fake.sessions) > Fake.complete:
            raise Interrupted(signal.SIGINT)
        return self.results


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch) -> type[Fake]:
    Fake.sessions, Fake.designs, Fake.complete, Fake.noise = [], [], 100, NOISE
    Fake.facts, Fake.phases, Fake.failure, Fake.growing = {"retraced": []}, None, None, False
    monkeypatch.setattr(explain_sessions, "Session", Fake)
    monkeypatch.setattr(explain, "peaks_for", lambda *_: None)
    return Fake


def study_of(workload: str = "tabular", **options: Any) -> ExplainStudy:
    defaults = {"loop": "step", **({"case": "small"} if workload == "tabular" else {})}
    settings = load(backend="cpu", data="sample", **{**defaults, **options})
    return ExplainStudy(workload, settings, Recorder(settings))


@pytest.mark.parametrize(
    "parameter",
    [
        "limit: int | None = None",
        "note: str | None = None",
        "names: list[str] = ['left', 'right']",
        "weights: dict[str, float] = {'left': 0.5}",
    ],
)
def test_a_file_with_any_parameters_that_run_accepts_is_explained(
    parameter: str, faked: type[Fake], tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(PROGRAM.format(parameter=parameter), encoding="utf-8")
    study_of(str(file)).run(with_what_ifs=False)
    (_, specs) = faked.sessions[1]
    assert [spec.loop for spec in specs] == ["step", "host-batches", "resident", "fused"]


def test_trials_go_to_the_what_ifs_that_are_not_decided(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    noise = (1.0, 1.01, 0.99, 1.005, 0.995, 1.0, 1.01, 0.99, 1.005, 0.995)
    ratios = {"float32": 1.0, "float64": 2.0}  # float64 is clearly slower

    def trial(session: Session) -> None:
        number = session._progress.trial
        for measured in session._stop.open_results():
            factor = ratios[measured.spec.dtype] * (1.2 * noise[number] ** 20 if measured.spec.onednn else 1.0)
            measured.samples.append(sample(number, 0.01 * factor * noise[number - 1]))

    monkeypatch.setattr(Session, "_run_trial", trial)
    settings = load(backend="cpu", case="small", loop="step", data="sample", max_processes="6", output=tmp_path)
    (group,) = plan(["tabular"], settings)
    base = group.planned[0]
    changes: list[dict[str, Any]] = [{"onednn": False}, {"onednn": False, "dtype": "float64"}, {}]
    specs = [replace(base, spec=base.spec.model_copy(update=change)) for change in changes]
    session = Session(replace(group, planned=tuple(specs)), settings, WHAT_IF, Recorder(settings))
    session.run()
    base_trials, slow, unclear = (len(measured.samples) for measured in session.results)
    assert slow <= 3
    assert base_trials == unclear == 6


def test_a_what_if_is_not_tried_if_the_parts_that_it_acts_on_are_small(
    faked: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("test_study_explain.STEPS", {**STEPS, "step": 0.0061, "fused": 0.001})
    faked.facts = {"retraced": [], "pipeline_reachable": True}
    study = study_of()
    outcome = study.run()
    tried = [what_if.name for what_if in study.what_ifs]
    assert not {"cache", "prefetch", "parallel-map"} & set(tried)
    assert tried[0] == "xla"  # dispatch takes most, and it acts on few other parts
    assert {what_if.name for what_if in outcome.untried} == {"cache", "prefetch", "parallel-map"}
    assert outcome.untried[0].at_most == pytest.approx(0.016, abs=0.015)


def test_a_what_if_that_tests_a_suspect_is_tried_first_whatever_the_ladder_says(faked: type[Fake]) -> None:
    fit = {"callbacks": ["Slow"], "verbose": 0, "metrics": True}
    faked.facts = {"retraced": [], "fit": fit}
    study = study_of()
    study.run()
    assert {what_if.name for what_if in study.what_ifs[:2]} == {"without-callbacks", "without-metrics"}


def told(faked: type[Fake], monkeypatch: pytest.MonkeyPatch) -> tuple[ExplainStudy, list[str]]:
    """Run a study without what-ifs, and end two more trials of its ladder. Return it with what it told."""
    study = study_of()
    said: list[str] = []
    monkeypatch.setattr(study.recorder, "tell", said.append)
    study.run(with_what_ifs=False)
    after_trial = faked.designs[1].after_trial
    assert after_trial is not None
    for _ in range(2):
        after_trial(study.results[1:])
    return study, said


def test_the_first_trial_tells_suspects_and_each_trial_of_the_ladder_the_largest_part(
    faked: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    faked.facts = {
        "fit": {"callbacks": ["Slow"], "verbose": 0, "metrics": False},
        "pipeline": [{"stage": "tensors"}, {"stage": "map"}],
        "float64": {"operations": 3, "lines": [12], "arguments": 0},
    }
    study, said = told(faked, monkeypatch)
    assert [line for line in said if line.startswith("suspect")] == [
        "suspect: float64: 3 operations of the step compute in float64 (tabular's source line 12).",
        "suspect: callbacks of fit: Slow.",
        "suspect: the input pipeline does not prefetch: tensors, map.",
    ]
    largest = study.recorder.largest_part
    assert largest is not None
    assert (largest.name, largest.share.n) == ("computing", len(NOISE))
    assert largest.share.value == pytest.approx(0.75, abs=0.01)


def test_what_was_seen_in_the_steps_of_a_script_is_told_before_its_first_trial() -> None:
    facts = Facts.model_validate(
        {
            "host_reads": {"per_step": 1.0, "lines": [12]},
            "own_time": {
                "steps": 10,
                "step_seconds": 0.1,
                "parts": [
                    {"line": 12, "called": "numpy", "kind": "read", "share": 0.4},
                    {"line": 14, "called": "", "kind": "python", "share": 0.6},
                ],
            },
        }
    )
    assert list(suspects_in(result(), facts)) == [
        "per-step synchronization: Python reads 1 number back after each step (cifar's source line 12). That takes "
        "about 40% of the step."
    ]


def test_the_verdict_on_each_what_if_is_told_when_it_is_known(
    faked: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_of()
    said: list[str] = []
    monkeypatch.setattr(study.recorder, "tell", said.append)
    outcome = study.run()
    lines = [line for line in said if line.startswith("tried ")]
    assert len(lines) == len(outcome.gains)
    (compiled,) = [line for line in lines if "XLA" in line]
    assert compiled.startswith("tried ")
    assert ": faster (5 trials), 2.0" in compiled


def test_a_part_that_may_take_nothing_is_not_told_as_the_largest(faked: type[Fake]) -> None:
    def level(loop: str, steps: tuple[float, ...]) -> Any:
        return result(loop, loop=loop, samples=[sample(n, step) for n, step in enumerate(steps, 1)])

    assert largest_so_far([level("fit", (0.010, 0.011, 0.010)), level("step", (0.002, 0.002, 0.002))]) is not None
    assert largest_so_far([level("fit", (0.010, 0.030, 0.004)), level("step", (0.004, 0.030, 0.010))]) is None


def test_the_first_trial_tells_the_cause_that_comes_first_and_a_later_one_tells_it_only_if_it_changes(
    faked: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    part = {"line": 3, "called": "predict", "kind": "keras", "share": 0.9}
    faked.facts = {"retraced": [], "own_time": {"steps": 5, "step_seconds": 0.01, "parts": [part]}}
    _, said = told(faked, monkeypatch)
    (line,) = [line for line in said if "so far" in line]
    assert line.startswith("so far (5 trials): A new dataset for each call: Each step calls predict")


def test_a_part_that_stays_the_first_cause_is_told_once_although_its_share_changes(
    faked: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    study, said = told(faked, monkeypatch)
    after_trial = faked.designs[1].after_trial
    assert after_trial is not None
    faster = [sample(n, 0.005 * noise) for n, noise in enumerate(Fake.noise, 1)]
    step, *lower = study.results[1:]
    after_trial([step, *(level.model_copy(update={"samples": faster}) for level in lower)])
    assert [line for line in said if line.startswith("so far (")] == [
        "so far (5 trials): 25% of the step is input: preparing batches."
    ]


def test_the_program_is_diagnosed_in_its_first_trial_only(faked: type[Fake]) -> None:
    outcome = study_of().run(with_what_ifs=False)
    first, ladder = faked.designs
    assert [len(specs) for _, specs in faked.sessions] == [1, 4]
    assert (first.inspect, first.cold_starts, first.diagnosed) == (True, "alone", None)
    assert ladder.cold_starts == "none"
    assert ladder.diagnosed is not None
    assert ladder.diagnosed.spec.loop == "step"
    assert outcome.trials == len(NOISE)


def test_peaks_are_not_measured_for_a_step_whose_work_is_unknown(
    faked: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(explain, "peaks_for", lambda *arguments: asked.append(arguments))
    outcome = study_of().run(with_what_ifs=False)
    assert asked == []
    assert any("no roofline" in caveat for caveat in outcome.caveats)
    faked.facts = {"retraced": [], "flops_per_step": 1e6, "bytes_per_step": 1e6}
    study_of().run(with_what_ifs=False)
    assert len(asked) == 1


def test_an_error_about_the_peaks_is_a_caveat_and_the_what_ifs_are_tried(
    faked: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise DeviceAbsent("no CUDA device: the driver is missing")

    monkeypatch.setattr(explain, "peaks_for", refused)
    faked.facts = {"retraced": [], "flops_per_step": 1e6, "bytes_per_step": 1e6}
    outcome = study_of().run()
    assert "There is no roofline: no CUDA device: the driver is missing." in outcome.caveats
    assert outcome.gains


def test_an_error_of_the_what_ifs_keeps_the_ladder(faked: type[Fake], monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(*_: Any) -> None:
        raise DevbenchError("cannot start a process: Resource temporarily unavailable")

    monkeypatch.setattr(WhatIfStudy, "run", failed)
    outcome = study_of().run()
    assert outcome.caveats[0] == (
        "The explanation is incomplete: cannot start a process: Resource temporarily unavailable."
    )
    assert outcome.parts


def test_peaks_are_measured_for_a_script_that_runs_in_a_folder_of_its_own(tmp_path: Path) -> None:
    settings = load(backend="cpu", workdir=tmp_path, args="--epochs 2", watch="1")
    (group,) = plan(["peaks"], peaks_settings(synthetic.spec(), settings))
    assert group.planned[0].spec.workload == "peaks"


@pytest.mark.parametrize("reason", ["no trial is complete", "the program failed"])
def test_a_ladder_without_a_complete_trial_leaves_what_the_first_process_shows(
    reason: str, faked: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_of()
    measure = study.sessions.measure

    def cut_off(planned: Any, *rest: Any) -> list[Result]:
        results = measure(planned, *rest)
        if len(results) == 1:
            return results
        base, *lower = results
        if reason == "no trial is complete":
            return [base, *(level.model_copy(update={"samples": []}) for level in lower)]
        failure = Failure(kind="nan", message="the loss is NaN")
        return [base.model_copy(update={"failure": failure}), *lower]

    monkeypatch.setattr(study.sessions, "measure", cut_off)
    outcome = study.run(with_what_ifs=False)
    assert outcome.step_seconds == pytest.approx(STEPS["step"], rel=0.01)
    assert outcome.lowest_level == "step"
    assert outcome.caveats[0] == (
        "Only the first process counts, because no later trial was complete. Increase --max-time."
        if reason == "no trial is complete"
        else "Only the first process counts, because the next ones failed: the loss is NaN."
    )
    assert set(outcome.missing_levels) >= {"host-batches", "resident", "fused"}


def test_an_explained_script_is_projected_for_the_steps_that_were_recognized() -> None:
    source = StepSource(kind="updates", name="adam", file="train.py", line=3, token="t", steps=700)
    recognition = Recognition(chosen=source, ended=True, seconds=3.0)
    first, base = (synthetic.measured(name, [0.01, 0.011], recognition=recognition) for name in ("1", "2"))
    joined = with_first_trial(Planned(base.spec, (), None, None), first, base)
    assert joined.projection is not None
    assert joined.projection.steps == 700


def test_the_steps_are_divided_by_one_trial_if_most_time_passes_between_epochs(faked: type[Fake]) -> None:
    assert not _ends_after_a_noisy_trial(faked)
    faked.phases = {"first_step": 0.1, "epoch_end": 1.0}
    faked.facts = {"retraced": [], "epoch": {"batches": 16, "remainder": 0}}
    assert _ends_after_a_noisy_trial(faked)


def _ends_after_a_noisy_trial(faked: type[Fake]) -> bool:
    faked.designs.clear()
    study = study_of()
    study.run(with_what_ifs=False)
    enough = faked.designs[1].enough
    assert enough is not None
    noisy = [level.model_copy(update={"samples": level.samples[:1]}) for level in study.results[1:]]
    return enough(noisy)


def test_larger_batches_are_not_tried_while_a_program_retraces(faked: type[Fake]) -> None:
    retraced = [{"function": "f", "file": "/a/mine.py", "line": 3, "count": 500}]
    whole = study_of()
    whole.run()
    faked.facts = {"retraced": retraced, "steps_run": 500}
    study = study_of()
    outcome = study.run()
    assert [what_if.name for what_if in whole.what_ifs].count("batch") > 0
    assert [what_if.name for what_if in study.what_ifs] == [w.name for w in whole.what_ifs if w.name != "batch"]
    assert any("Larger batches were not tried" in caveat for caveat in outcome.caveats)


def test_no_what_if_is_tried_while_steps_take_longer_and_longer(faked: type[Fake]) -> None:
    faked.growing = True
    study = study_of()
    outcome = study.run()
    assert study.what_ifs == []
    assert outcome.answer[0].name == "steps that take longer and longer"
    assert any("No what-if was tried in the loop step, because its steps" in caveat for caveat in outcome.caveats)


def test_a_program_that_cannot_be_measured_is_started_once_and_the_reason_is_told(
    faked: type[Fake], tmp_path: Path
) -> None:
    faked.failure = Failure(kind="workload", message="devbench saw no step in as_written of mine", hint="Call fit.")
    file = tmp_path / "mine.py"
    file.write_text(PROGRAM.format(parameter="limit: int = 1") + "\n\ndef as_written():\n    pass\n", encoding="utf-8")
    with pytest.raises(RunFailed, match=r"cannot measure mine.*: devbench saw no step in as_written of mine") as caught:
        study_of(str(file), loop="as-written").run()
    assert caught.value.hint == "Call fit."
    assert [len(specs) for _, specs in faked.sessions] == [1]


def test_an_interrupted_explanation_keeps_finished_what_ifs_and_says_how_many_are_missing(faked: type[Fake]) -> None:
    faked.complete = 3  # the first trial, the ladder and the first what-ifs
    study = study_of()
    with pytest.raises(Interrupted):
        study.run()
    partial = study.explanation
    assert partial is not None
    assert len(partial.gains) == TOGETHER < len(study.what_ifs)
    assert [gain.verdict for gain in partial.gains[:1]] == ["faster"]
    assert partial.fastest is not None
    assert partial.fastest.command.endswith(partial.gains[0].option)
    assert (
        partial.caveats[0]
        == f"The explanation was interrupted: {TOGETHER} of {len(study.what_ifs)} what-ifs were tried."
    )
    assert "The explanation was interrupted: 4 of" in explanation.text(partial)


def test_an_interruption_of_the_combined_what_ifs_keeps_all_single_what_ifs(faked: type[Fake]) -> None:
    study = study_of()
    study.run()
    faked.sessions, faked.complete = [], len(faked.sessions) - 1
    study = study_of()
    with pytest.raises(Interrupted):
        study.run()
    assert study.explanation is not None
    assert len(study.explanation.gains) == len(study.what_ifs)
    assert study.explanation.combined is None
    assert (
        study.explanation.caveats[0]
        == "The explanation was interrupted: the what-ifs that help were not measured together."
    )


def test_an_interruption_before_any_what_if_keeps_the_ladder(
    faked: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise Interrupted(signal.SIGTERM)

    monkeypatch.setattr(explain, "peaks_for", interrupted)
    faked.facts = {"retraced": [], "flops_per_step": 1e6, "bytes_per_step": 1e6}
    study = study_of()
    with pytest.raises(Interrupted):
        study.run()
    assert study.explanation is not None
    assert study.explanation.parts
    assert study.explanation.caveats[0] == (
        "The explanation was interrupted: the roofline was not measured, and no what-if was tried."
    )


def test_an_interruption_of_the_ladder_keeps_its_complete_trials(faked: type[Fake]) -> None:
    faked.complete = 1
    study = study_of()
    with pytest.raises(Interrupted):
        study.run()
    partial = study.explanation
    assert partial is not None
    assert (partial.parts[0].upper, partial.parts[0].lower) == ("step", "host-batches")
    assert partial.trials == len(NOISE)
    assert (partial.gains, partial.roofline) == ([], None)
    assert partial.caveats[0] == (
        "The explanation was interrupted: the roofline was not measured, and no what-if was tried."
    )
    assert "The explanation was interrupted" in explanation.text(partial)


def test_an_interruption_before_the_first_complete_trial_leaves_no_explanation(faked: type[Fake]) -> None:
    faked.complete, faked.noise = 0, ()
    study = study_of()
    with pytest.raises(Interrupted):
        study.run()
    assert study.explanation is None
    assert study.results


def test_a_complete_explanation_does_not_mention_an_interruption(faked: type[Fake]) -> None:
    complete = study_of().run()
    assert complete.combined is not None
    assert not any("interrupted" in caveat for caveat in complete.caveats)


def test_an_explanation_ignores_full_and_says_so(faked: type[Fake]) -> None:
    complete = study_of(full=True).run()
    assert {design.full for design in faked.designs} == {False}
    assert any("--full has no effect" in caveat for caveat in complete.caveats)
    assert not any("--full" in caveat for caveat in study_of().run().caveats)


@pytest.mark.parametrize(
    ("design", "expected"),
    [
        (LADDER, [("profile", "step")]),
        (WHAT_IF, []),
        (Design(), [("profile", "resident"), ("profile", "step"), ("train", "resident"), ("train", "step")]),
    ],
    ids=["ladder", "what-if", "run"],
)
def test_the_design_decides_which_results_are_profiled_or_trained_to_the_end(
    design: Design, expected: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    passes: list[tuple[str, str]] = []
    monkeypatch.setattr(one_off, "train", lambda launcher, result: passes.append(("train", result.spec.loop)))
    monkeypatch.setattr(
        one_off, "profile", lambda launcher, result, folder: passes.append(("profile", result.spec.loop))
    )
    monkeypatch.setattr(sessions.Session, "_run_trials", lambda session: "target")
    settings = load(
        case="small",
        backend="cpu",
        data="sample",
        loop="step,resident",
        full=True,
        profile=str(tmp_path),
        output=tmp_path,
    )
    (group,) = plan(["tabular"], settings)
    Session(group, settings, design, Recorder(settings)).run()
    assert sorted(passes) == expected
