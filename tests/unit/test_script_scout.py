"""Which updates of optimizers make one step together, and which loop of a script is the training."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from bench.model.facts import Epoch
from bench.model.recognition import StepKind, StepSource
from bench.worker.fit_epochs import Call
from bench.worker.script.calls import ScriptCall, Updated
from bench.worker.script.loop_choice import alternating, choose
from bench.worker.script.scout import Scout
from bench.worker.script.training_calls import contains_training
from bench.worker.timed_loop import Finished

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("runs", "groups"),
    [
        ([("d", 1), ("g", 1)] * 20, [["d", "g"]]),
        ([("d", 2), ("g", 1)] * 20, [["d", "g"]]),
        ([("critic", 5), ("g", 1)] * 20, [["critic", "g"]]),
        ([("a", 1), ("b", 1), ("c", 1)] * 20, [["a", "b", "c"]]),
        ([("first", 100), ("second", 100)], []),
        ([("first", 100), ("second", 1)], []),
        ([("a", 10), ("b", 10)] * 5, []),
        ([("often", 200), ("rare", 1)] * 5, []),
        ([("a", 60)], []),
        ([], []),
    ],
)
def test_optimizers_whose_updates_alternate_make_one_step(runs: list[tuple[str, int]], groups: list[list[str]]) -> None:
    assert alternating(runs) == groups


def test_lines_that_call_the_same_function_in_turn_are_not_one_step() -> None:
    runs = [("full", 20), ("rest", 1)] * 5
    assert alternating(runs) == [["full", "rest"]]
    assert alternating(runs, {"full": "step", "rest": "step"}) == []
    assert alternating(runs, {"full": "Adam 0", "rest": "Adam 1"}) == [["full", "rest"]]


@pytest.mark.parametrize(("functions", "loops"), [(2, 1), (1, 2)])
def test_functions_of_one_name_are_told_apart_by_what_they_change(functions: int, loops: int) -> None:
    scout = Scout(1e9, None, lambda event: None, lambda: None)
    changed = [Updated([]) for _ in range(functions)]
    for step in range(40):
        scout.step(ScriptCall("updates", "train", "a.py", step % 2 + 1), 1, None, changed[step % functions])
    assert len(scout.sources) == loops


def fits(*lengths: int) -> Scout:
    """Return a scout that has seen a call of `fit` for each of these numbers of steps."""
    scout = Scout(1e9, None, lambda event: None, lambda: None)
    for length in lengths:
        scout.fit(FIT, SimpleNamespace(epochs=None))  # type: ignore[arg-type]
        for _ in range(length):
            scout.step(FIT, 1, None, None)
        scout.step(ScriptCall("single-fit", "fit", "a.py", 7, "0"), 1, None, None)
    return scout


@pytest.mark.parametrize(
    ("lengths", "kind", "steps"),
    [
        ([1] * 20, "single-fit", 20),
        ([1] * 2, "fit", 2),
        ([8] * 5, "fit", 40),
        ([1] * 20 + [2], "fit", 22),
        ([1] * 3 + [50] * 4, "fit", 203),
    ],
)
def test_calls_of_fit_are_steps_if_each_has_one_step(lengths: list[int], kind: StepKind, steps: int) -> None:
    scout = fits(*lengths)
    (loop,) = scout.sources
    assert (loop.kind, loop.steps) == (kind, steps)
    assert scout.steps_run == sum(lengths)


GRADIENT = ScriptCall("gradients", "gradient", "a.py", 3, "0")
OTHER_GRADIENT = ScriptCall("gradients", "gradient", "a.py", 9, "1")
UPDATE = ScriptCall("updates", "SGD", "a.py", 4)
FIT = ScriptCall("fit", "fit", "a.py", 7)


@pytest.mark.parametrize(
    ("step", "loops"),
    [
        pytest.param([GRADIENT, "used"], [("gradients", 20)], id="variables-change"),
        pytest.param([GRADIENT], [], id="variables-stay"),
        pytest.param([GRADIENT, GRADIENT, "used"], [], id="gradients-are-added-up"),
        pytest.param([GRADIENT, "used", UPDATE], [("updates", 20)], id="an-optimizer-updates-too"),
        pytest.param([FIT, GRADIENT], [("fit", 20)], id="beside-fit"),
    ],
)
def test_gradients_are_steps_only_if_the_script_itself_changes_its_variables_after_each(
    step: list[ScriptCall | str], loops: list[tuple[StepKind, int]]
) -> None:
    scout = Scout(1e9, None, lambda event: None, lambda: None)
    for call in step * 20:
        if isinstance(call, ScriptCall):
            scout.step(call, 1, None, None)
        else:
            scout.assigned(GRADIENT)
    assert [(source.kind, source.steps) for source in scout.sources] == loops
    assert scout.only_fits == (loops == [("fit", 20)])


def test_gradients_that_alternate_make_one_step() -> None:
    scout = Scout(1e9, None, lambda event: None, lambda: None)
    for _ in range(20):
        for call in (GRADIENT, OTHER_GRADIENT):
            scout.step(call, 1, None, None)
            scout.assigned(call)
    assert [source.steps for source in scout.sources] == [20]


class Clock:
    """A clock that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("bench.worker.script.scout.time", SimpleNamespace(perf_counter=lambda: self.now))


INFERS = ScriptCall("model", "model", "a.py", 3)
TRAINS = ScriptCall("updates", "SGD", "a.py", 9)


@pytest.mark.parametrize(("may_train", "longest"), [(False, 30), (True, 300)])
def test_the_scout_waits_longer_for_a_training_that_the_script_contains(
    may_train: bool, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    scout = Scout(10.0, None, lambda event: None, lambda: None)
    scout.may_train = lambda: may_train
    for number in range(longest):
        clock.now = 100.0 + number
        scout.step(INFERS, 1, None, None)
    clock.now = 101.0 + longest
    with pytest.raises(Finished):
        scout.step(INFERS, 1, None, None)


def test_the_time_for_a_training_starts_with_its_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    scout = Scout(10.0, None, lambda event: None, lambda: None)
    scout.step(INFERS, 1, None, None)
    for clock.now in (112.0, 121.0):
        scout.step(TRAINS, 1, None, None)
    clock.now = 123.0
    with pytest.raises(Finished):
        scout.step(TRAINS, 1, None, None)
    assert [found.steps for found in scout.sources] == [3]


def test_a_training_that_follows_a_warm_up_and_the_loading_of_data_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    scout = Scout(10.0, None, lambda event: None, lambda: None)
    warm_up = ScriptCall("updates", "SGD", "a.py", 3)
    for clock.now in (100.0, 101.0, 101.1, 101.2):
        scout.step(warm_up, 1, None, None)
    for number in range(50):
        clock.now = 131.0 + 0.1 * number
        scout.step(TRAINS, 1, None, None)
    found = scout.recognition(False)
    assert found is not None
    assert (found.chosen.line, found.chosen.steps) == (9, 50)


def test_regular_pauses_between_steps_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    scout = Scout(10.0, None, lambda event: None, lambda: None)
    for clock.now in (100.0, 106.0, 112.0):
        scout.step(TRAINS, 1, None, None)
    clock.now = 118.0
    with pytest.raises(Finished):
        scout.step(TRAINS, 1, None, None)


@pytest.mark.parametrize(
    ("planned", "seen"),
    [(1000, 24), (100, 102), (None, 102)],
)
def test_the_scout_stops_in_a_fit_that_goes_on_for_longer_than_it_would_wait(
    planned: int | None, seen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    scout = Scout(10.0, None, lambda event: None, lambda: None)
    hook = SimpleNamespace(epochs=None)
    observer = scout.fit(FIT, hook)  # type: ignore[arg-type]
    assert hook.epochs is not None
    hook.epochs.begin_fit()
    hook.epochs.begin_epoch(Epoch(batches=planned, remainder=0) if planned else None, 1)

    def run() -> None:
        for _ in range(200):
            clock.now += 0.1
            observer.after(Call(1), None)

    with pytest.raises(Finished):
        run()
    assert scout.steps_run == seen


@pytest.mark.parametrize(
    ("calls", "trains", "may_train", "may_need_more"),
    [
        (6, True, True, True),
        (7, True, True, False),
        (7, False, False, False),
        (7, False, True, True),
        (0, True, True, True),
    ],
)
def test_more_steps_may_follow_few_ones_or_an_inference_before_a_training(
    calls: int, trains: bool, may_train: bool, may_need_more: bool
) -> None:
    scout = Scout(1e9, None, lambda event: None, lambda: None)
    scout.may_train = lambda: may_train
    for _ in range(calls):
        scout.step(TRAINS if trains else INFERS, 1, None, None)
    assert scout.may_need_more == may_need_more


@pytest.mark.parametrize(
    ("text", "trains"),
    [
        ("model.fit(x, y)", True),
        ("optimizer.apply (grads)", True),
        ("self.g_optimizer.apply(grads)", True),
        ("w.assign_sub(0.1 * g)", True),
        ("model.predict(x)", False),
        ("fit = 3", False),
        ("# model.fit(x, y)", False),
        ("from sklearn.preprocessing import StandardScaler\nscaler = StandardScaler()\nscaler.fit(x)", False),
        ("model.fit(", False),
    ],
)
def test_a_training_is_found_in_the_source_of_a_script(
    text: str, trains: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("mine")
    module.__file__ = str(tmp_path / "mine.py")
    (tmp_path / "mine.py").write_text(text)
    monkeypatch.setitem(sys.modules, "mine", module)
    assert contains_training(lambda path: path == module.__file__) == trains
    assert not contains_training(lambda path: False)
    assert contains_training(lambda path: False, [text]) == trains


@pytest.mark.parametrize(("calls", "ended", "total"), [(1, False, 50), (2, False, None), (2, True, 3)])
def test_the_steps_of_a_training_are_known_unless_fit_may_be_called_again(
    calls: int, ended: bool, total: int | None
) -> None:
    scout = Scout(1e9, None, lambda event: None, lambda: None)
    fit = ScriptCall("fit", "fit", "a.py", 9)
    for _ in range(calls):
        hook = SimpleNamespace(epochs=None)
        observer = scout.fit(fit, hook)  # type: ignore[arg-type]
        hook.epochs.begin_fit()
        hook.epochs.begin_epoch(Epoch(batches=10, remainder=0), 5)
    for _ in range(3):
        observer._scout.step(fit, 1, None, None)
    found = scout.recognition(ended)
    assert found is not None
    assert found.total_steps == total


def source(kind: StepKind, steps: int, planned: int | None = None) -> StepSource:
    """Return a loop of a script."""
    return StepSource(kind=kind, name="", file="", line=0, token="", steps=steps, planned=planned)


def test_the_loop_that_trains_most_steps_is_chosen() -> None:
    inference, short, long = source("model", 900), source("fit", 30), source("fit", 20, planned=400)
    assert choose([inference, short, long]) is long
    assert choose([inference, short]) is short
    assert choose([inference]) is inference
