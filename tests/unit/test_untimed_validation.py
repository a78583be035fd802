"""A validation of `fit` that was not timed: it is told, and does not count as none."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic import result
from test_analyse_compare import sample

from bench.analyse.explain.caveats import caveats
from bench.analyse.explain.findings import findings
from bench.analyse.warnings import add_warnings
from bench.model.causes import BETWEEN_EPOCHS
from bench.model.explanation import Finding
from bench.model.result import Result

PHASES = {"first_step": 0.1, "epoch_end": 0.9, "epoch_start": 0.02}


def program(validated: float | None, *phases: dict[str, float], **changes: Any) -> Result:
    """Return a result whose processes have these phases beside those of every epoch."""
    facts = {"epoch": {"batches": 8, "remainder": 0}, "validated_epochs": validated}
    samples = [sample(n, 0.01, phases=PHASES | more, facts=facts) for n, more in enumerate(phases or [{}], 1)]
    return result(samples=samples, **changes)


def between(measured: Result) -> Finding:
    return next(finding for finding in findings([measured]) if finding.cause == BETWEEN_EPOCHS)


@pytest.mark.parametrize("validated", [None, 1.0])
def test_fit_is_not_blamed_for_a_validation_that_was_not_timed(validated: float | None) -> None:
    finding = between(program(validated))
    assert "the work of fit itself" not in finding.sentence
    assert finding.sentence.endswith("It is not known whether a validation belongs to it.")
    assert finding.fix == ""
    assert "the work of fit itself" in between(program(0.0)).sentence


def test_a_validation_that_one_process_timed_counts_for_all() -> None:
    finding = between(program(1.0, {"validation": 2.0}, {}, {}))
    assert "Longest: validation 2 s" in finding.sentence
    assert "2.92 s pass" in finding.sentence


def test_a_projection_without_the_validation_has_a_warning() -> None:
    def keys(validated: float, full: bool = False, **changes: Any) -> set[str]:
        measured = program(validated, **changes)
        assert measured.projection is not None
        if not full:
            measured.projection.full_training = None
        add_warnings(measured)
        return {warning.key for warning in measured.warnings}

    assert "validation" in keys(1.0)
    assert "validation" not in keys(0.0)
    assert "validation" not in keys(1.0, full=True)  # the training was timed with it
    assert "validation" not in keys(1.0, purpose="level")  # only the first process of an explanation is diagnosed


def test_an_explanation_says_that_the_validation_was_not_timed() -> None:
    assert any("The validation of fit was not timed by itself." in caveat for caveat in caveats([program(1.0)]))
    assert caveats([program(1.0, {"validation": 2.0})]) == caveats([program(0.0)])
