"""Programs are measured whatever form their data, their batches and their losses have. Wrong forms are explained."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from background_runs import SECONDS, Runs, start_runs
from warm_workers import WarmServer

from bench.model.facts import Epoch

pytestmark = pytest.mark.timeout(SECONDS)

FOLDER = Path(__file__).parent / "data_programs"
TOWERS, TWO_LOSSES, SENTENCES, WRONG = (
    str(FOLDER / name) for name in ("towers.py", "two_losses.py", "sentences.py", "wrong.py")
)
BARE = "as-written,step,resident,fused"
ASKED = {
    "dict": (TOWERS, "--loop", BARE, "--full"),
    "dataset": (TOWERS, "--param", "form=dataset", "--loop", BARE),
    "list": (TOWERS, "--param", "form=list", "--loop", "as-written,step"),
    "weights": (TOWERS, "--param", "form=weights", "--loop", "as-written,host-batches"),
    "sequence": (TOWERS, "--param", "form=sequence", "--loop", BARE),
    "two_losses": (TWO_LOSSES, "--loop", "as-written,step,fused"),
    "sentences": (SENTENCES, "--loop", "as-written,step,resident"),
    **{kind: (WRONG, "--param", f"kind={kind}") for kind in ("lengths", "numbers", "generator", "nothing", "empty")},
    "models": (WRONG, "--param", "kind=models"),
    "values": (WRONG, "--param", "kind=values"),
}
LOOPS = {name: words[words.index("--loop") + 1].split(",") for name, words in ASKED.items() if "--loop" in words}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, warm_server: WarmServer | None) -> Iterator[Runs]:
    with start_runs(tmp_path_factory.mktemp("data"), ASKED, lambda name: warm_server) as started:
        yield started


@pytest.mark.parametrize(("name", "loop"), [(name, loop) for name, loops in LOOPS.items() for loop in loops])
def test_each_loop_runs_on_data_of_any_form(runs: Runs, name: str, loop: str) -> None:
    result = runs.result(name, loop)
    assert (result.failure, result.status) == (None, "complete")
    assert result.placement is not None
    assert result.placement.verified
    assert not [note for note in result.samples[0].notes if "could not be measured" in note]


@pytest.mark.parametrize("name", LOOPS)
def test_first_losses_agree_between_loops_on_data_of_any_form(runs: Runs, name: str) -> None:
    first, *others = [runs.result(name, loop).samples[0].first_losses for loop in LOOPS[name]]
    for losses in others:
        assert losses == pytest.approx(first, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "batches", "remainder"),
    [("dict", 11, 6), ("list", 11, 6), ("weights", 11, 6), ("dataset", 11, 6), ("sequence", 11, 6)],
)
def test_the_epoch_is_counted_in_examples_and_not_in_inputs(
    runs: Runs, name: str, batches: int, remainder: int
) -> None:
    (sample,) = runs.result(name).samples
    assert sample.facts.epoch == Epoch(batches=batches, remainder=remainder)
    assert sample.facts.total_steps == 2 * (batches + bool(remainder))
    assert "epoch_end" in sample.phases


def test_the_partial_batch_of_a_keras_dataset_is_timed_apart(runs: Runs) -> None:
    for loop in ("as-written", "step"):
        (sample,) = runs.result("sequence", loop).samples
        assert {"partial_batch", "partial_batch_again"} <= sample.phases.keys()


def test_the_whole_training_on_nested_data_has_as_many_steps_as_projected(runs: Runs) -> None:
    projection = runs.result("dict").projection
    assert projection is not None
    assert projection.full_training is not None
    assert projection.full_training.steps == projection.steps == 24


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("lengths", "returned different numbers of examples: ({'rows': float32 (1024, 8), 'more': float32 (30, 8)}"),
        ("numbers", "returned more than arrays: ((int, int, int), float32 (1024,))"),
        ("generator", "returned a generator, which can be read only once"),
        ("nothing", "returned nothing"),
        ("models", "`model` of wrong returned a tuple, not a Keras model"),
    ],
)
def test_a_wrong_return_value_is_the_users_error_and_is_described(runs: Runs, kind: str, message: str) -> None:
    failure = runs.result(kind).failure
    assert failure is not None
    assert (runs[kind].code, failure.kind) == (2, "workload")
    assert message in failure.message
    assert failure.hint.startswith("Return ")


def test_data_without_a_batch_is_described(runs: Runs) -> None:
    failure = runs.result("empty").failure
    assert failure is not None
    assert (runs["empty"].code, failure.kind) == (2, "workload")
    assert failure.message == "`data` of wrong returned no batch"
    assert "drop_remainder" in failure.hint


def test_batches_of_varying_lengths_are_traced_a_few_times_only(runs: Runs) -> None:
    for loop in LOOPS["sentences"]:
        (sample,) = runs.result("sentences", loop).samples
        assert 1 <= (sample.facts.traces or 0) <= 5, loop


def test_an_error_names_the_programs_line_without_pages_of_values_or_frames_of_devbench(runs: Runs) -> None:
    failure = runs.result("values").failure
    assert failure is not None
    assert "wrong.py, line " in failure.message
    assert failure.hint == "The last lines below come from the program."
    text = "\n".join([failure.message, *failure.last_lines])
    assert "499" not in text
    assert "raise ValueError" in text
    assert "/bench/worker/" not in text
