"""Sentences about comparisons: the verdict, what it means from a cold start, and what else differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from bench.model.comparison import BreakEven, Comparison, Difference
from bench.model.interval import Interval
from bench.model.result import Result
from bench.model.words import join_words
from bench.render import numbers
from bench.render.labels import quoted
from bench.render.sentences.result import failure

Labels = Mapping[str, str]
"""Labels by the result's id. A result without an entry has the label that its comparison gives it."""

OWN: Labels = MappingProxyType({})
"""No entries: every result has the label that its comparison gives it."""


def verdict(comparison: Comparison, labels: Labels = OWN) -> str:
    """Return verdict and ratio, such as "faster: B is 12.3 times [11.8, 12.9] as fast as A per step (6 trials)."."""
    base, other, ratio = *_sides(comparison, labels), comparison.ratio
    word, unit = comparison.verdict, comparison.unit
    if comparison.failed:
        names = {comparison.base.id: base, comparison.other.id: other}
        failures = [f"{names[side.id]} failed: {(side.failure or '').rstrip('.')}" for side in comparison.failed]
        return f"No verdict: {'; '.join(failures)}."
    if ratio is None:
        return f"No verdict: {other} and {base} have no step times to compare."
    if word == "not enough data":
        return f"{_too_few([comparison])} Observed ratio, {other} / {base}: {numbers.factor(ratio)}."
    evidence = units(comparison.paired, ratio.n)
    longer = f"{other} takes {numbers.times(ratio)} as long as {base} per {unit}"
    if word == "faster" and comparison.speedup is not None:
        return f"faster: {other} is {numbers.times(comparison.speedup)} as fast as {base} per {unit} ({evidence})."
    if word == "same":
        return f"same: {longer}, within the threshold of {numbers.percent(comparison.threshold)} ({evidence})."
    if word == "undecided":
        return f"undecided: {longer} ({evidence}). {_missing(comparison)}"
    return f"{word}: {longer} ({evidence})."


def over_epochs(comparison: Comparison) -> str:
    """Return what follows the word of the verdict if that over whole epochs is worth telling; otherwise empty."""
    return f"; over whole epochs {comparison.epoch_verdict}" if comparison.differs_over_epochs else ""


def _sides(comparison: Comparison, labels: Labels) -> tuple[str, str]:
    """Return the labels of the baseline and of the other."""
    base, other = comparison.base, comparison.other
    return quoted(labels.get(base.id, base.label)), quoted(labels.get(other.id, other.label))


def _too_few(comparisons: Iterable[Comparison]) -> str:
    """Say why there is no verdict."""
    if all(comparison.paired for comparison in comparisons):
        return "Too few trials for a verdict."
    return "Too few processes for a verdict, and the results are not interleaved."


def _missing(comparison: Comparison) -> str:
    """Say what would settle an undecided verdict."""
    if comparison.needed_units:
        more = "trials" if comparison.paired else "processes per result"
        return f"About {comparison.needed_units} {more} in total would settle it."
    return f"The ratio is too close to the threshold of {numbers.percent(comparison.threshold)} to be settled."


def units(paired: bool, count: int) -> str:
    """Say what a ratio is based on: trials, or processes that were measured apart."""
    if paired:
        return numbers.count(count, "trial")
    return f"{numbers.count(count, 'process', 'processes')} per result, not interleaved"


def details(comparison: Comparison, labels: Labels = OWN, brief: bool = False) -> list[str]:
    """Return the sentences that follow a verdict: on the mean step, whole epochs, the start, and the whole training.

    Args:
        comparison: the comparison.
        labels: by the result's id.
        brief: leave out the whole training.
    """
    sentences = [mean_step(comparison, labels), whole_epochs(comparison, labels), cold_start(comparison, labels)]
    if not brief:
        sentences.append(whole_training(comparison, labels))
    return [sentence for sentence in sentences if sentence]


def mean_step(comparison: Comparison, labels: Labels = OWN) -> str:
    """Say that the mean step is faster or slower, if the typical step has another verdict; otherwise empty."""
    ratio, word = comparison.mean_ratio, comparison.mean_verdict
    if ratio is None or word not in ("faster", "slower") or word == comparison.verdict:
        return ""
    _, other = _sides(comparison, labels)
    return f"By the mean step, which includes rare slow steps, {other} is {word}: {numbers.times(ratio)} as long."


def whole_epochs(comparison: Comparison, labels: Labels = OWN) -> str:
    """Say which side is faster over whole epochs, if the steps have another verdict; otherwise empty."""
    ratio, word = comparison.epoch_ratio, comparison.epoch_verdict
    if ratio is None or not comparison.differs_over_epochs:
        return ""
    base, other = _sides(comparison, labels)
    evidence = units(comparison.paired, ratio.n)
    start = f"Over whole epochs, with validations and callbacks spread over the {comparison.unit}s, {other}"
    if word == "faster":
        return f"{start} is {numbers.times(ratio.inverse)} as fast as {base} ({evidence})."
    longer = f"{start} takes {numbers.times(ratio)} as long as {base}"
    if word == "same":
        return f"{longer}, within the threshold of {numbers.percent(comparison.threshold)} ({evidence})."
    return f"{longer} ({evidence}){': undecided' if word == 'undecided' else ''}."


def stopped_by_epochs(results: Iterable[Result], threshold: float) -> str:
    """Say how to settle the steps of a run that stopped because a comparison is clear over whole epochs; or empty."""
    if not any(result.stop and result.stop.reason == "target" and result.stop.by_epochs for result in results):
        return ""
    option = f"--threshold {numbers.percent(threshold)}"
    return f"The run stopped because a comparison is clear over whole epochs. To settle its steps too, add {option}."


def cold_start(comparison: Comparison, labels: Labels = OWN) -> str:
    """Say when the side with the faster steps is ahead from a cold start; empty if that is unknown or never."""
    even = comparison.break_even
    if even is None:
        return ""
    base, other = _sides(comparison, labels)
    winner, loser = (base, other) if even.winner == "base" else (other, base)
    if steps := break_even(even):
        epochs = f" ({_epochs(even.epochs)})" if even.epochs is not None else ""
        return f"From a cold start, {winner} is ahead of {loser} after {steps}{epochs}."
    if even.immediate:
        if even.start_uncertain:
            return f"From a cold start, {winner} is probably ahead from the first step. Its start may be slower."
        return f"From a cold start, {winner} is ahead from the first step."
    return ""


def whole_training(comparison: Comparison, labels: Labels = OWN) -> str:
    """Say how long the whole training takes on both sides; empty if that is unknown."""
    even = comparison.break_even
    if even is None or not even.training_seconds:
        return ""
    base, other = _sides(comparison, labels)
    first, second = map(numbers.time, even.training_seconds)
    steps = f" of {even.training_steps:,} steps" if even.training_steps else ""
    return f"Whole training{steps} from a cold start: {second} for {other}; {first} for {base}."


def break_even(even: BreakEven) -> str:
    """Return after how many steps or examples the side with the faster steps is ahead; empty if never or at once."""
    if even.steps is not None:
        return _count(even.steps, "steps")
    return _count(even.examples, "examples") if even.examples is not None else ""


def _count(interval: Interval, unit: str) -> str:
    if interval.low is None:
        return f"about {numbers.count(round(interval.value), unit.removesuffix('s'))} (one start each)"
    unit = unit.removesuffix("s") if round(interval.value) == 1 else unit
    if interval.high is None:
        return f"{interval.value:,.0f} {unit} [{interval.low:,.0f}, never]"
    return f"{interval.value:,.0f} {unit} [{interval.low:,.0f}, {interval.high:,.0f}]"


def _epochs(interval: Interval) -> str:
    value, unit = numbers.rounded(interval.value, 2), "epochs"
    if interval.low is None or interval.high is None:
        return f"{value} {'epoch' if value == '1' else unit}"
    return f"{value} [{numbers.rounded(interval.low, 2)}, {numbers.rounded(interval.high, 2)}] {unit}"


def difference(aspect: Difference, most: int | None = None) -> str:
    """Return one difference with both values, and why it makes a comparison unfair if it does.

    Args:
        aspect: the difference.
        most: how many entries of a list, such as packages, to name. Default: all.
    """
    values = f"{aspect.name}: {_first(_value(aspect.base), most)} vs. {_first(_value(aspect.other), most)}"
    return f"unfair: {values}: {aspect.reason}" if aspect.kind == "unfair" else f"differs: {values}"


def _first(text: str, most: int | None) -> str:
    """Return the first entries of a list, and how many more there are."""
    entries = text.split(", ")
    if most is None or len(entries) <= most + 1:
        return text
    return f"{', '.join(entries[:most])} and {len(entries) - most} more"


def _value(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict):
        return ", ".join(f"{key}={part}" for key, part in value.items()) or "none"
    return str(value)


def not_comparable(labels: Sequence[str], base: str, reason: str = "") -> str:
    """Say that results cannot be compared fairly with a baseline, and why if a reason is given."""
    names = join_words(list(map(quoted, labels)))
    return f"{names} cannot be compared fairly with {quoted(base)}{': ' if reason else ''}{reason.rstrip('.')}."


def summary(comparisons: Sequence[Comparison], results: Mapping[str, Result], labels: Labels) -> Iterator[str]:
    """Summarize a group's comparisons: a sentence each, and one sentence for what several have in common.

    Args:
        comparisons: at least one.
        results: by id.
        labels: of all results.
    """
    labels = {id_: quoted(label) for id_, label in labels.items()}
    yield from _failures(results.values(), labels)
    by_base: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        by_base.setdefault(comparison.base.id, []).append(comparison)
    for base, others in by_base.items():
        yield from _against(base, others, results, labels)


def _against(
    base: str, comparisons: Sequence[Comparison], results: Mapping[str, Result], labels: Labels
) -> Iterator[str]:
    """Summarize the comparisons with one baseline."""
    working = [comparison for comparison in comparisons if results[comparison.other.id].status != "failed"]
    if results[base].status == "failed":
        if working:
            others = join_words([labels[comparison.other.id] for comparison in working])
            yield f"There is nothing to compare {others} with."
        return
    fair = [comparison for comparison in working if not comparison.unfair]
    for comparison in fair:
        if comparison.verdict != "not enough data":
            told = [sentence(comparison, labels) for sentence in (verdict, mean_step, whole_epochs)]
            yield " ".join(filter(None, told))
    yield from _without_verdict([comparison for comparison in fair if comparison.verdict == "not enough data"], labels)
    unfair: dict[str, list[str]] = {}
    for comparison in working:
        if comparison.unfair:
            unfair.setdefault(comparison.unfair[0].reason, []).append(labels[comparison.other.id])
    for reason, unfair_labels in unfair.items():
        yield not_comparable(unfair_labels, labels[base], reason)


def _failures(results: Iterable[Result], labels: Labels) -> Iterator[str]:
    by_message: dict[str, list[str]] = {}
    for result in results:
        if message := failure(result):
            by_message.setdefault(message, []).append(labels[result.id])
    for message, failed in by_message.items():
        yield f"{join_words(failed)} {message}."


def _without_verdict(comparisons: Sequence[Comparison], labels: Labels) -> Iterator[str]:
    """Summarize comparisons that have too little data for a verdict."""
    observed = [comparison for comparison in comparisons if comparison.ratio is not None]
    if len(observed) == 1:
        yield verdict(observed[0], labels)
    elif observed:
        base = labels[observed[0].base.id]
        ratios = "; ".join(
            f"{labels[comparison.other.id]} {numbers.factor(comparison.ratio)}"
            for comparison in observed
            if comparison.ratio
        )
        yield f"{_too_few(observed)} Observed ratios to {base}: {ratios}."
    if nothing := [labels[comparison.other.id] for comparison in comparisons if comparison.ratio is None]:
        yield f"{join_words(nothing)} and {labels[comparisons[0].base.id]} have no step times to compare."
