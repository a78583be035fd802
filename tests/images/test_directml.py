"""The directml image on a machine without WSL2: it reports what is missing and its fix, and measures the CPU."""

from __future__ import annotations

import pytest

from images.engine import check_complete, run, run_all

pytestmark = [
    pytest.mark.once,
    pytest.mark.needs("container-engine", "tensorflow-2.10", "no-directml-adapter"),
    pytest.mark.group("directml-image"),
    pytest.mark.timeout(3600),
]

WSL2 = "--device=/dev/dxg -v /usr/lib/wsl:/usr/lib/wsl -e LD_LIBRARY_PATH=/usr/lib/wsl/lib"


def test_without_an_adapter_the_exit_code_is_3_and_the_message_has_the_command_line(directml: str) -> None:
    completed = run(directml, "run", "cifar")
    assert completed.code == 3
    for part in ("/dev/dxg does not exist", WSL2):
        assert part in completed.text()


def test_doctor_says_that_the_plugin_is_paused_and_how_to_start_the_container(directml: str) -> None:
    completed = run(directml, "doctor")
    assert completed.code == 3
    for part in ("paused by Microsoft in October 2023", "0.4.0.dev230202 on TensorFlow 2.10", WSL2):
        assert part in completed.text()


def test_every_workload_measures_the_cpu_with_tensorflow_2_10(directml: str) -> None:
    results = check_complete(run_all(directml))
    assert {result.environment.tensorflow for result in results} == {"2.10.0"}
