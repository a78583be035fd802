"""The directml image where there is no WSL2: it says what is missing and how to get it, and still measures the CPU."""

from __future__ import annotations

import pytest

from images.engine import complete, run, run_all

pytestmark = [
    pytest.mark.once,
    pytest.mark.needs("container-engine", "tensorflow-2.10", "no-directml-adapter", "changed-directml-image"),
    pytest.mark.timeout(3600),
]

WSL2 = "--device=/dev/dxg -v /usr/lib/wsl:/usr/lib/wsl -e LD_LIBRARY_PATH=/usr/lib/wsl/lib"


def test_without_an_adapter_it_ends_with_3_and_the_command_line_that_gives_it_one(directml: str) -> None:
    ended = run(directml, "run", "cifar")
    assert ended.code == 3
    for part in ("/dev/dxg does not exist", WSL2):
        assert part in ended.said()


def test_doctor_says_plainly_that_it_is_paused_and_how_to_start_it(directml: str) -> None:
    ended = run(directml, "doctor")
    assert ended.code == 3
    for part in ("paused by Microsoft in October 2023", "0.4.0.dev230202 on TensorFlow 2.10", WSL2):
        assert part in ended.said()


def test_every_workload_measures_the_cpu_with_tensorflow_2_10(directml: str) -> None:
    results = complete(run_all(directml))
    assert {each.environment.tensorflow for each in results} == {"2.10.0"}
