"""The images as users run them: as any user, on a read-only root, without capabilities and without a network."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from bench.store import files
from images.engine import (
    BRIEF,
    RESTRICTED,
    CompletedContainer,
    Container,
    check_complete,
    inspect,
    run,
    run_all,
    variables,
)

pytestmark = [pytest.mark.once, pytest.mark.needs("container-engine"), pytest.mark.timeout(3600)]

SCRIPTS = Path(__file__).parents[1] / "scripts" / "programs"

PROGRAM = """def as_written():
    import tensorflow as tf
    while True:
        yield tf.constant(1.0) + 1.0
"""


@pytest.fixture(scope="module")
def all_runs(cpu: str) -> list[CompletedContainer]:
    """Every workload, run once in the cpu image. A variable has the digest of the image, as on Kubernetes."""
    return run_all(cpu, "--user=4711", f"--env=DEVBENCH_IMAGE_DIGEST={inspect(cpu)['Digest']}")


def test_every_workload_runs_restricted_as_any_user(
    all_runs: list[CompletedContainer],
) -> None:
    assert check_complete(all_runs)


def test_a_result_has_the_image_version_revision_and_digest(all_runs: list[CompletedContainer], cpu: str) -> None:
    environ, result = variables(cpu), all_runs[0].results[0]
    deployment = result.environment.host.deployment
    assert deployment.image == "devbench:cpu"
    assert deployment.image_version == environ["DEVBENCH_IMAGE_VERSION"]
    assert deployment.revision == environ["DEVBENCH_REVISION"]
    assert deployment.image_digest == inspect(cpu)["Digest"] != ""
    assert result.environment.host.system.container == "podman"


def test_without_a_mount_a_warning_says_that_results_end_with_the_container(all_runs: list[CompletedContainer]) -> None:
    assert "results: results" in all_runs[0].err
    assert 'docker run -v "$PWD/results:/results"' in all_runs[0].err


def test_results_are_written_to_the_mounted_folder_and_belong_to_the_user(cpu: str, tmp_path: Path) -> None:
    shutil.chown(tmp_path, 4711, 4711)
    options = (*RESTRICTED, "--user=4711:4711", f"--volume={tmp_path}:/results")
    completed = run(cpu, "run", "matmul", "--param", "n=64", *BRIEF, options=options)
    assert completed.code == 0, completed.err
    (result,) = files.results(tmp_path)
    assert result.status == "complete"
    assert {path.stat().st_uid for path in tmp_path.iterdir()} == {4711}
    assert "results: /results" in completed.err
    assert "deleted with the container" not in completed.err


def test_an_unwritable_mounted_folder_is_an_error_that_names_the_user_option(cpu: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    completed = run(cpu, "run", "matmul", options=(*RESTRICTED, f"--volume={tmp_path}:/results"))
    assert completed.code == 2
    assert "cannot write results to /results" in completed.err
    assert "--user $(id -u):$(id -g)" in completed.err


def test_a_program_of_a_user_is_mounted_and_run(cpu: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM)
    tmp_path.chmod(0o755)
    options = (*RESTRICTED, f"--volume={tmp_path / 'mine.py'}:/mine.py:ro")
    completed = run(cpu, "run", "/mine.py", *BRIEF, "--json", options=options)
    assert completed.code == 0, completed.err
    assert [result.spec.workload for result in completed.results] == ["mine"]


def test_a_script_in_a_mounted_folder_that_cannot_be_written_runs_unchanged(cpu: str, tmp_path: Path) -> None:
    shutil.copy(SCRIPTS / "fit_files.py", tmp_path / "train.py")  # it writes checkpoints and a log
    tmp_path.chmod(0o755)
    options = (*RESTRICTED, f"--volume={tmp_path}:/work:ro", "--workdir=/work")
    completed = run(cpu, "run", "train.py", *BRIEF, "--json", options=options)
    assert completed.code == 0, completed.err
    (result,) = completed.results
    assert result.status == "complete"
    assert result.recognition is not None
    assert (result.recognition.chosen.kind, result.recognition.chosen.steps) == ("fit", 64)
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("run", "cifa"), 2, "Did you mean cifar?"),
        (("run", "cifar", "--backend", "cuda"), 3, "Use the image devbench:cuda"),
        (("compare", "/opt", "/opt"), 2, "folder /opt holds no result"),
    ],
)
def test_the_container_has_the_exit_code_of_devbench(
    cpu: str, arguments: tuple[str, ...], code: int, text: str
) -> None:
    completed = run(cpu, *arguments)
    assert (completed.code, text in completed.text()) == (code, True), completed.text()


def test_a_failed_run_gives_exit_code_1(cpu: str, tmp_path: Path) -> None:
    (tmp_path / "aborts.py").write_text(PROGRAM.replace("yield tf", "__import__('os').abort(); yield tf"))
    tmp_path.chmod(0o755)
    completed = run(cpu, "run", "/aborts.py", options=(*RESTRICTED, f"--volume={tmp_path / 'aborts.py'}:/aborts.py:ro"))
    assert completed.code == 1
    assert "SIGABRT" in completed.text()


def test_a_stop_keeps_what_was_measured_and_takes_at_most_two_seconds(cpu: str, tmp_path: Path) -> None:
    shutil.chown(tmp_path, 1000, 1000)
    options = (*RESTRICTED, f"--volume={tmp_path}:/results")
    arguments = ("run", "tabular", "--case", "small", "--target-error", "0.1%", "--max-time", "10m")
    with Container(cpu, *arguments, options=options) as container:
        container.wait_for("process 2")
        assert container.stop(seconds=2) == 143  # 137 if it was killed
    (result,) = files.results(tmp_path)
    assert (result.status, result.stop and result.stop.reason) == ("partial", "interrupted")
    assert result.summary.step_seconds is not None


def test_a_stop_before_the_measurement_also_gives_exit_code_143(cpu: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(600)\n")
    tmp_path.chmod(0o755)
    options = (*RESTRICTED, f"--volume={tmp_path / 'slow.py'}:/programs/slow.py:ro")
    with Container(
        cpu, "run", "/programs/slow.py", options=options
    ) as container:  # in /, the script's folder is too large
        assert container.stop(seconds=2) == 143


def test_a_stop_before_python_has_started_also_gives_exit_code_143(cpu: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(600)\n")
    tmp_path.chmod(0o755)
    options = (*RESTRICTED, f"--volume={tmp_path / 'slow.py'}:/slow.py:ro")
    with Container(cpu, "run", "/slow.py", options=options, suspended=True) as container:
        os.kill(container.begin("/opt/devbench/bin/python"), signal.SIGTERM)
        assert container.wait() == 143  # without a handler, process 1 ignores the signal and sleeps
