"""Progress: a live view on a terminal, and a few plain lines elsewhere."""

from __future__ import annotations

import errno
import io
import threading

import pytest
from synthetic import explanation, ladder_results, result

from bench.model.interval import Interval
from bench.model.plan import Planned
from bench.model.run_state import Estimate, LargestPart, LiveProgress
from bench.render.sentences import progress as phrases
from bench.render.terminal.explanation import text
from bench.render.terminal.progress import SILENCE_SECONDS, ProgressDisplay, line, view
from bench.session.progress import ProgressReporter

PHASES = ("starting", "import", "device_init", "data", "build", "first_step", "warm_up", "steady state", "latency")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def progress_of(**changes: object) -> LiveProgress:
    fields: dict[str, object] = {
        "title": "cifar on cpu, fit",
        "phase": "steady state",
        "trial": 4,
        "planned": 7,
        "elapsed": 30.0,
        "earlier_trials": 24.0,
        "budget": 120.0,
        "estimates": [Estimate(title="cifar on cpu, fit", step_seconds=0.0184, relative_error=0.021)],
    }
    return LiveProgress(**{**fields, **changes})


def test_a_plain_line_has_the_phase_the_process_the_estimate_and_the_time_left() -> None:
    assert line(progress_of()) == (
        "cifar on cpu, fit, process 4 of about 7: steady state, step 18.4 ms ± 2.1% (about 26 s left)"
    )


def test_before_the_trials_of_a_script_the_line_says_what_is_looked_for() -> None:
    progress = progress_of(title="train on cpu", phase="starting", trial=0, planned=None, estimates=[])
    assert line(progress) == "train on cpu, finding its steps: starting"
    assert view(progress).plain == "train on cpu, finding its steps\n  starting"


@pytest.mark.parametrize(
    ("elapsed", "trial", "planned", "left"),
    [
        (0.0, 1, None, "at most 2 min 0 s left"),
        (30.0, 4, None, "at most 1 min 30 s left"),
        (30.0, 4, 7, "about 26 s left"),
        (32.0, 4, 7, "about 24 s left"),
        (37.0, 4, 4, "at most 1 min 23 s left"),
        (30.0, 4, 30, "at most 1 min 30 s left"),
        (121.0, 4, 7, "the time limit is reached, so this trial is the last"),
        (30.0, 4, 3, "more trials than planned, at most 1 min 30 s left"),
        (121.0, 4, 3, "the time limit is reached, so this trial is the last"),
    ],
)
def test_the_time_left_follows_the_pace_but_never_exceeds_the_budget(
    elapsed: float, trial: int, planned: int | None, left: str
) -> None:
    assert line(progress_of(elapsed=elapsed, trial=trial, planned=planned)).endswith(f"({left})")


def test_without_a_terminal_a_process_gets_two_lines_without_control_codes() -> None:
    stream = io.StringIO()
    with ProgressDisplay(stream) as draw:
        for trial in (1, 2, 3):
            for phase in PHASES:
                draw(progress_of(trial=trial, phase=phase))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 6
    assert [line for line in lines if "\x1b" in line or "\r" in line] == []
    assert ["starting" in line for line in lines] == [True, False] * 3


def test_interleaved_specs_add_no_lines() -> None:
    stream = io.StringIO()
    with ProgressDisplay(stream) as draw:
        for _ in range(50):
            draw(progress_of(title="a"))
            draw(progress_of(title="b"))
    assert len(stream.getvalue().splitlines()) == 2


def test_a_note_is_written_once() -> None:
    stream = io.StringIO()
    with ProgressDisplay(stream) as draw:
        draw(progress_of(phase="starting"))
        for trial in (4, 4, 4):
            draw(progress_of(phase="device_init", note="may compile for minutes", trial=trial))
    assert stream.getvalue().count("device init (may compile for minutes)") == 1


def test_a_terminal_is_redrawn_at_most_four_times_a_second() -> None:
    stream, clock = io.StringIO(), Clock()
    with ProgressDisplay(stream, tty=True, clock=clock) as draw:
        for number in range(21):
            clock.now = 100.0 + number * 0.05
            draw(progress_of(phase=f"phase {number}"))
        numbers = [number for number in range(21) if f"phase {number}," in stream.getvalue()]
    assert numbers == [0, 5, 10, 15, 20]


def test_a_note_is_drawn_immediately_and_stays_until_the_progress_has_none() -> None:
    stream = io.StringIO()
    with ProgressDisplay(stream, tty=True, clock=Clock()) as draw:
        draw(progress_of(phase="import"))
        for phase in ("device_init", "first_step"):
            draw(progress_of(phase=phase, note="may compile for minutes"))
        draw(progress_of(phase="warm_up"))
    text = stream.getvalue()
    assert "device init (may compile for minutes)" in text
    assert text.rindex("warm-up") > text.rindex("may compile for minutes")


def test_the_display_draws_only_when_it_is_called_and_starts_no_thread() -> None:
    stream, before = io.StringIO(), set(threading.enumerate())
    with ProgressDisplay(stream, tty=True, clock=Clock()) as draw:
        draw(progress_of())
        assert set(threading.enumerate()) <= before
    assert "process 4 of about 7" in stream.getvalue()
    assert "step 18.4 ms ± 2.1%" in stream.getvalue()


def interrupt_a_drawer(stream: io.StringIO) -> None:
    with ProgressDisplay(stream, tty=True) as draw:
        draw(progress_of())
        raise KeyboardInterrupt


def test_the_live_view_is_removed_at_the_end_and_the_cursor_is_restored_even_after_an_error() -> None:
    stream = io.StringIO()
    with pytest.raises(KeyboardInterrupt):
        interrupt_a_drawer(stream)
    hide, back = "\x1b[?25l", "\x1b[?25h"
    assert stream.getvalue().startswith(hide)
    assert stream.getvalue().rindex(back) > stream.getvalue().rindex("process 4")
    assert "\x1b[2K" in stream.getvalue()


def test_several_specs_have_their_step_times_in_one_line_for_each_trial_and_few_other_lines() -> None:
    estimates = [
        Estimate(title="a on cpu, fit", step_seconds=0.001),
        Estimate(title="a on cuda, fit", step_seconds=0.0005, relative_error=0.5),
    ]
    stream, clock = io.StringIO(), Clock()
    with ProgressDisplay(stream, tty=False, clock=clock) as draw:
        draw(progress_of(title="a on cpu, fit", phase="starting", estimates=[], trial=1))
        for phase in ("starting", "steady state"):
            draw(progress_of(title="a on cpu, fit", phase=phase, estimates=estimates, trial=2))
        clock.now += SILENCE_SECONDS
        draw(progress_of(title="a on cuda, fit", phase="starting", estimates=estimates, trial=2))
    assert stream.getvalue().splitlines() == [
        "a on cpu, fit, process 1 of about 7: starting (at most 1 min 30 s left)",
        "step times so far: a on cpu, fit: 1.00 ms; a on cuda, fit: 500 µs ± 50%",
        "a on cuda, fit, process 2 of about 7: starting (at most 1 min 30 s left)",
    ]
    assert view(progress_of(estimates=estimates)).plain.endswith(
        "\n  a on cpu, fit: step 1.00 ms\n  a on cuda, fit: step 500 µs ± 50%"
    )


def test_specs_that_differ_only_in_a_parameter_or_setting_are_told_apart() -> None:
    heard: list[LiveProgress] = []
    sides = [
        result(str(n), params={"batch": batch, "epochs": 10}, dtype=dtype)
        for n, (batch, dtype) in enumerate([(32, "float32"), (64, "float32"), (64, "float64")])
    ]
    plan = {side.key: Planned(side.spec, (), None, 32) for side in sides}
    ProgressReporter(sides, plan, heard.append).report(sides[1], "warm_up")
    assert heard[0].title == "cifar on cpu, as-written, batch 64, float32"
    assert [estimate.title for estimate in heard[0].estimates] == [
        "cifar on cpu, as-written, batch 32, float32",
        "cifar on cpu, as-written, batch 64, float32",
        "cifar on cpu, as-written, batch 64, float64",
    ]


def input_share(value: float, low: float | None = None, high: float | None = None, n: int = 1) -> LargestPart:
    return LargestPart(name="input", share=Interval(value=value, low=low, high=high, n=n))


def test_the_largest_part_so_far_has_its_interval_and_the_number_of_trials() -> None:
    assert phrases.largest_part(input_share(0.93)) == "the largest part so far is input: 93% of the step (1 trial)"
    sure = phrases.largest_part(input_share(0.93, 0.85, 0.97, 2))
    assert sure == "the largest part so far is input: 93% of the step (85–97%, 2 trials)"


def test_without_a_terminal_the_largest_part_is_told_again_only_if_it_changes_or_is_known_better() -> None:
    stream = io.StringIO()
    dispatch = LargestPart(name="dispatch", share=Interval(value=0.5, low=0.4, high=0.6, n=5))
    told = [
        input_share(0.9), input_share(0.9), input_share(0.93, 0.83, 1.03, 2), input_share(0.93, 0.84, 1.02, 3),
        input_share(0.93, 0.9, 0.96, 4), dispatch,
    ]  # fmt: skip
    with ProgressDisplay(stream) as draw:
        for part in told:
            draw(progress_of(largest_part=part))
    lines = [line for line in stream.getvalue().splitlines() if "largest part" in line]
    assert [line.rpartition("(")[2] for line in lines] == [
        "1 trial)",
        "83–100%, 2 trials)",
        "90–96%, 4 trials)",
        "40–60%, 5 trials)",
    ]


def test_a_terminal_shows_the_largest_part_so_far() -> None:
    stream = io.StringIO()
    with ProgressDisplay(stream, tty=True) as draw:
        draw(progress_of(largest_part=input_share(0.93)))
    assert "the largest part so far is input: 93% of the step (1 trial)" in stream.getvalue()


def test_a_terminal_shows_the_explanation_so_far_above_what_runs_as_far_as_there_is_room() -> None:
    document = explanation(ladder_results())
    progress = progress_of(explanation=document, largest_part=input_share(0.93))
    lines = view(progress, width=80, height=60).plain.splitlines()
    complete = text(document, 80).splitlines()
    assert lines[: len(complete)] == complete
    assert lines[len(complete) :] == [
        "",
        "cifar on cpu, fit, process 4 of about 7",
        "  steady state, about 26 s left",
        "  cifar on cpu, fit: step 18.4 ms ± 2.1%",
    ]
    short = view(progress, width=80, height=20).plain.splitlines()
    assert len(short) < 20
    assert short[:10] == complete[:10]
    assert short[-3] == "cifar on cpu, fit, process 4 of about 7"


class Gone(io.StringIO):
    """A stream that nobody reads any more.

    Args:
        error: what writing raises: `BrokenPipeError` for a pipe, EIO for a terminal.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def write(self, text: str) -> int:
        raise self.error

    def flush(self) -> None:
        raise self.error


@pytest.mark.parametrize(("tty", "error"), [(False, BrokenPipeError()), (True, OSError(errno.EIO, "gone"))])
def test_a_run_goes_on_if_nobody_reads_its_progress(tty: bool, error: OSError) -> None:
    with ProgressDisplay(Gone(error), tty=tty) as display:
        for trial in range(3):
            display(progress_of(trial=trial))
