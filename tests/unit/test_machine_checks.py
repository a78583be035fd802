"""The machine checks of `devbench doctor`, on this machine and on prepared trees of system files."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.machine.checks import checks
from bench.model.check import Check, run_check


def by_name(output: Path, data_dir: Path | None = None, root: Path = Path("/")) -> dict[str, Check]:
    return {check.name: check for check in checks(output, data_dir, root, backends=["cpu"])}


def group(root: Path, **files: str) -> Path:
    """Write the system files of a machine with one control group of version 2."""
    mount = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
    texts = {"proc/self/mountinfo": mount, "proc/self/cgroup": "0::/"}
    texts |= {f"sys/fs/cgroup/{name.replace('_', '.', 1)}": text for name, text in files.items()}
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_every_failure_and_warning_has_a_fix(tmp_path: Path) -> None:
    for check in checks(tmp_path / "results", tmp_path, backends=["cpu"]):
        assert check.detail, check
        assert check.fix or check.status in ("PASS", "SKIP"), check


def test_the_installed_python_and_tensorflow_pass(tmp_path: Path) -> None:
    checks = by_name(tmp_path)
    assert checks["Python"].status == "PASS"
    assert checks["TensorFlow"].status == "PASS"
    assert checks["TensorFlow"].detail.startswith("tensorflow")


def test_a_fractional_cpu_quota_is_a_warning_that_recommends_whole_cpus(tmp_path: Path) -> None:
    check = by_name(tmp_path, root=group(tmp_path, cpu_max="50000 100000"))["CPUs"]
    assert check.status == "WARN"
    assert "CPU quota of 0.5 on" in check.detail
    assert "stops for a part of every period" in check.detail
    assert "whole CPUs" in check.fix


def test_past_throttling_is_a_warning(tmp_path: Path) -> None:
    root = group(tmp_path, cpu_stat="nr_periods 9\nnr_throttled 4\nthrottled_usec 2500000")
    check = by_name(tmp_path, root=root)["throttling"]
    assert check.status == "WARN"
    assert "2.5 s in 4 periods" in check.detail


def test_little_memory_is_a_warning(tmp_path: Path) -> None:
    check = by_name(tmp_path, root=group(tmp_path, memory_max=str(2**30), memory_current="0"))["memory"]
    assert check.status == "WARN"
    assert "limit of 1.0 GiB" in check.detail


def test_a_governor_that_changes_the_clock_is_a_warning(tmp_path: Path) -> None:
    folder = tmp_path / "sys/devices/system/cpu/cpu0/cpufreq"
    folder.mkdir(parents=True)
    (folder / "scaling_governor").write_text("powersave", encoding="utf-8")
    assert by_name(tmp_path, root=tmp_path)["CPU clock"].status == "WARN"


def test_an_output_folder_that_does_not_exist_yet_passes_and_is_not_created(tmp_path: Path) -> None:
    output = tmp_path / "new" / "results"
    assert by_name(output)["output folder"].status == "PASS"
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_the_output_folder_fails(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("", encoding="utf-8")
    check = by_name(tmp_path / "results")["output folder"]
    assert check.status == "FAIL"
    assert "--output" in check.fix


@pytest.mark.needs("linux")
def test_an_output_folder_that_is_not_writable_fails_even_for_root() -> None:
    assert by_name(Path("/proc/results"))["output folder"].status == "FAIL"


def test_an_output_folder_that_cannot_be_looked_up_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "exists", refused)
    check = by_name(Path("secret/results"))["output folder"]
    assert (check.status, check.detail) == ("FAIL", "secret/results is not writable: Permission denied")


def test_a_data_folder_that_does_not_exist_fails(tmp_path: Path) -> None:
    assert by_name(tmp_path, tmp_path / "absent")["data folder"].status == "FAIL"
    assert by_name(tmp_path, tmp_path)["data folder"].status == "PASS"
    assert by_name(tmp_path, None)["data folder"].status == "SKIP"


def test_a_check_that_raises_becomes_a_warning() -> None:
    def check() -> Iterator[Check]:
        yield Check("first", "PASS", "fine")
        raise OSError("an unforeseen file")

    first, second = run_check("second", check)
    assert first.status == "PASS"
    assert second.status == "WARN"
    assert "an unforeseen file" in second.detail


def test_checking_the_machine_does_not_import_tensorflow(tmp_path: Path) -> None:
    list(checks(tmp_path, None, backends=["cpu"]))
    assert "tensorflow" not in sys.modules
