"""The images as users run them: as anybody, on a root that can't be written, without rights and without a network."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from bench.store import files
from images.engine import BRIEF, RESTRICTED, Container, Ended, complete, inspect, run, run_all, variables

pytestmark = [pytest.mark.once, pytest.mark.needs("container-engine"), pytest.mark.timeout(3600)]

MINE = """def as_written():
    import tensorflow as tf
    while True:
        yield tf.constant(1.0) + 1.0
"""


@pytest.fixture(scope="module")
def everything(cpu: str) -> list[Ended]:
    """Every workload, run once in the cpu image, whose digest the platform tells."""
    return run_all(cpu, "--user=4711", f"--env=DEVBENCH_IMAGE_DIGEST={inspect(cpu)['Digest']}")


def test_every_workload_runs_as_any_user_without_rights_network_or_a_root_that_can_be_written(
    everything: list[Ended],
) -> None:
    assert complete(everything)


def test_a_result_says_which_image_of_which_version_revision_and_digest_it_comes_from(
    everything: list[Ended], cpu: str
) -> None:
    given, result = variables(cpu), everything[0].results[0]
    deployment = result.environment.host.deployment
    assert deployment.image == "devbench:cpu"
    assert deployment.image_version == given["DEVBENCH_IMAGE_VERSION"]
    assert deployment.revision == given["DEVBENCH_REVISION"]
    assert deployment.image_digest == inspect(cpu)["Digest"] != ""
    assert result.environment.host.system.container == "podman"


def test_without_a_mount_the_results_end_with_the_container_and_it_says_so(everything: list[Ended]) -> None:
    assert "results: results" in everything[0].err
    assert 'docker run -v "$PWD/results:/results"' in everything[0].err


def test_results_go_where_a_folder_is_mounted_and_belong_to_whoever_ran_it(cpu: str, tmp_path: Path) -> None:
    shutil.chown(tmp_path, 4711, 4711)
    options = (*RESTRICTED, "--user=4711:4711", f"--volume={tmp_path}:/results")
    ended = run(cpu, "run", "matmul", "--param", "n=64", *BRIEF, options=options)
    assert ended.code == 0, ended.err
    (result,) = files.results(tmp_path)
    assert result.status == "complete"
    assert {path.stat().st_uid for path in tmp_path.iterdir()} == {4711}
    assert "results: /results" in ended.err
    assert "deleted with the container" not in ended.err


def test_a_mounted_folder_that_can_not_be_written_is_an_error_that_says_as_whom_to_run(
    cpu: str, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    ended = run(cpu, "run", "matmul", options=(*RESTRICTED, f"--volume={tmp_path}:/results"))
    assert ended.code == 2
    assert "cannot write results to /results" in ended.err
    assert "--user $(id -u):$(id -g)" in ended.err


def test_a_users_own_file_is_mounted_and_run(cpu: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    tmp_path.chmod(0o755)
    options = (*RESTRICTED, f"--volume={tmp_path / 'mine.py'}:/mine.py:ro")
    ended = run(cpu, "run", "/mine.py", *BRIEF, "--json", options=options)
    assert ended.code == 0, ended.err
    assert [each.spec.workload for each in ended.results] == ["mine"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("run", "cifa"), 2, "Did you mean cifar?"),
        (("run", "cifar", "--backend", "cuda"), 3, "Use the image devbench:cuda"),
        (("compare", "/opt", "/opt"), 2, "folder /opt holds no result"),
    ],
)
def test_exit_codes_pass_through(cpu: str, words: tuple[str, ...], code: int, said: str) -> None:
    ended = run(cpu, *words)
    assert (ended.code, said in ended.said()) == (code, True), ended.said()


def test_a_failed_run_ends_with_1(cpu: str, tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text(MINE.replace("yield tf", "__import__('os').abort(); yield tf"))
    tmp_path.chmod(0o755)
    ended = run(cpu, "run", "/dies.py", options=(*RESTRICTED, f"--volume={tmp_path / 'dies.py'}:/dies.py:ro"))
    assert ended.code == 1
    assert "SIGABRT" in ended.said()


def test_stopping_keeps_what_was_measured_and_ends_within_two_seconds(cpu: str, tmp_path: Path) -> None:
    shutil.chown(tmp_path, 1000, 1000)
    options = (*RESTRICTED, f"--volume={tmp_path}:/results")
    words = ("run", "tabular", "--case", "small", "--target-error", "0.1%", "--max-time", "10m")
    with Container(cpu, *words, options=options) as container:
        container.until("process 2")
        assert container.stop(seconds=2) == 143  # else it would have been killed: 137
    (result,) = files.results(tmp_path)
    assert (result.status, result.stop and result.stop.reason) == ("partial", "interrupted")
    assert result.summary.step_seconds is not None


def test_stopping_it_before_it_measures_ends_with_143_too(cpu: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(600)\n")
    tmp_path.chmod(0o755)
    options = (*RESTRICTED, f"--volume={tmp_path / 'slow.py'}:/slow.py:ro")
    with Container(cpu, "run", "/slow.py", options=options) as container:
        assert container.stop(seconds=2) == 143


def test_stopping_it_before_python_is_up_ends_with_143_too(cpu: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(600)\n")
    tmp_path.chmod(0o755)
    options = (*RESTRICTED, f"--volume={tmp_path / 'slow.py'}:/slow.py:ro")
    with Container(cpu, "run", "/slow.py", options=options, waits=True) as container:
        os.kill(container.begin("/opt/devbench/bin/python"), signal.SIGTERM)
        assert container.wait() == 143  # a signal that nobody minds is lost, and it would sleep on
