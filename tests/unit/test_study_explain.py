"""How an explanation is measured: which parameters it accepts, what an interruption leaves, what it never does."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from synthetic import result
from test_analyse_compare import sample

from bench.config.settings import RunSettings, load
from bench.errors import Interrupted
from bench.model.spec import Spec
from bench.publish.recorder import Recorder
from bench.render.terminal import explanation
from bench.session import one_off
from bench.session import session as sessions
from bench.session.design import Design
from bench.session.session import Session
from bench.study import explain
from bench.study.explain import LADDER, TOGETHER, WHAT_IF, ExplainStudy
from bench.study.plan import plan

pytestmark = pytest.mark.once

NOISE = (1.0, 1.004, 0.997, 1.002, 0.999)
STEPS = {"as-written": 0.010, "fit": 0.009, "step": 0.008, "host-batches": 0.006, "resident": 0.006, "fused": 0.006}

PROGRAM = '''"""A step that does next to nothing."""

from pydantic import BaseModel


class Params(BaseModel):
    {parameter}


def inputs(ctx):
    return (ctx.rng.random(8),)


def step():
    return lambda x: x


def total_steps(p):
    return 8 if p == Params() else int("what was asked for is not what came")
'''


class Fake:
    """A session that takes its step times from a table, in no time; it is interrupted where that is asked for.

    Attributes:
        begun: how each of them was asked, and what it measured.
        designs: the design of each.
        whole: how many may end.
        noise: of the step times that each of them measures, a factor for each trial.
    """

    begun: list[tuple[RunSettings, list[Spec]]]
    designs: list[Design]
    whole: int
    noise: tuple[float, ...]

    def __init__(self, group: Any, settings: RunSettings, design: Design, *_: Any) -> None:
        self.results = []
        self.settings = settings
        specs = [planned.spec for planned in group.planned]
        Fake.begun.append((settings, specs))
        Fake.designs.append(design)
        for spec in specs:
            step = STEPS[spec.loop] * (0.5 if spec.xla else 1.0) * (0.8 if not spec.onednn else 1.0)
            samples = [sample(n, step * noise, facts={"retraced": []}) for n, noise in enumerate(Fake.noise, 1)]
            made = result(spec.key, str(len(Fake.begun)), samples=samples)
            self.results.append(made.model_copy(update={"spec": spec, "key": spec.key}))

    def run(self) -> list[Any]:
        """Is done."""
        if len(Fake.begun) > Fake.whole:
            raise Interrupted(signal.SIGINT)
        return self.results


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch) -> type[Fake]:
    Fake.begun, Fake.designs, Fake.whole, Fake.noise = [], [], 100, NOISE
    monkeypatch.setattr(explain, "Session", Fake)
    monkeypatch.setattr(explain, "peaks_for", lambda *_: None)
    return Fake


def explaining(workload: str = "tabular", **asked: Any) -> ExplainStudy:
    given = {"loop": "step", **({"case": "small"} if workload == "tabular" else {}), **asked}
    settings = load(backend="cpu", data="sample", **given)
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
    explaining(str(file)).run(with_what_ifs=False)
    (_, specs) = faked.begun[0]
    assert [spec.loop for spec in specs] == ["step", "host-batches", "resident", "fused"]


def test_an_interrupted_explanation_keeps_finished_what_ifs_and_says_how_many_are_missing(faked: type[Fake]) -> None:
    faked.whole = 2  # the ladder and the first what-ifs
    made = explaining()
    with pytest.raises(Interrupted):
        made.run()
    found = made.explanation
    assert found is not None
    assert len(found.gains) == TOGETHER < len(made.what_ifs)
    assert [gain.verdict for gain in found.gains[:1]] == ["faster"]
    assert found.fastest is not None
    assert found.fastest.command.endswith(found.gains[0].option)
    assert (
        found.caveats[0] == f"The explanation was interrupted: {TOGETHER} of {len(made.what_ifs)} what-ifs were tried."
    )
    assert "The explanation was interrupted: 4 of" in explanation.text(found)


def test_an_interruption_of_the_combined_what_ifs_keeps_all_single_what_ifs(faked: type[Fake]) -> None:
    made = explaining()
    made.run()
    faked.begun, faked.whole = [], len(faked.begun) - 1
    made = explaining()
    with pytest.raises(Interrupted):
        made.run()
    assert made.explanation is not None
    assert len(made.explanation.gains) == len(made.what_ifs)
    assert made.explanation.combined is None
    assert (
        made.explanation.caveats[0]
        == "The explanation was interrupted: the what-ifs that help were not measured together."
    )


def test_an_interruption_before_any_what_if_keeps_the_ladder(
    faked: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise Interrupted(signal.SIGTERM)

    monkeypatch.setattr(explain, "peaks_for", interrupted)
    made = explaining()
    with pytest.raises(Interrupted):
        made.run()
    assert made.explanation is not None
    assert made.explanation.parts
    assert made.explanation.caveats[0] == (
        "The explanation was interrupted: the roofline was not measured, and no what-if was tried."
    )


def test_an_interruption_of_the_ladder_keeps_what_its_complete_trials_say(faked: type[Fake]) -> None:
    faked.whole = 0
    made = explaining()
    with pytest.raises(Interrupted):
        made.run()
    found = made.explanation
    assert found is not None
    assert (found.parts[0].upper, found.parts[0].lower) == ("step", "host-batches")
    assert found.trials == len(NOISE)
    assert (found.gains, found.roofline) == ([], None)
    assert found.caveats[0] == (
        "The explanation was interrupted: the roofline was not measured, and no what-if was tried."
    )
    assert "The explanation was interrupted" in explanation.text(found)


def test_an_interruption_before_the_first_complete_trial_leaves_no_explanation(faked: type[Fake]) -> None:
    faked.whole, faked.noise = 0, ()
    made = explaining()
    with pytest.raises(Interrupted):
        made.run()
    assert made.explanation is None
    assert made.results


def test_a_complete_explanation_does_not_mention_an_interruption(faked: type[Fake]) -> None:
    found = explaining().run()
    assert found.combined is not None
    assert not any("interrupted" in each for each in found.caveats)


def test_an_explanation_ignores_full_and_says_so(faked: type[Fake]) -> None:
    found = explaining(full=True).run()
    assert {design.full for design in faked.designs} == {False}
    assert any("--full has no effect" in each for each in found.caveats)
    assert not any("--full" in each for each in explaining().run().caveats)


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
    done: list[tuple[str, str]] = []
    monkeypatch.setattr(one_off, "train", lambda launcher, result: done.append(("train", result.spec.loop)))
    monkeypatch.setattr(one_off, "profile", lambda launcher, result, folder: done.append(("profile", result.spec.loop)))
    monkeypatch.setattr(sessions.Session, "_run_trials", lambda session: "target")
    asked = load(
        case="small",
        backend="cpu",
        data="sample",
        loop="step,resident",
        full=True,
        profile=str(tmp_path),
        output=tmp_path,
    )
    (group,) = plan(["tabular"], asked)
    Session(group, asked, design, Recorder(asked)).run()
    assert sorted(done) == expected
