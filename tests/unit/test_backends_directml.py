"""What the directml backend says where there is no DirectML."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.backends import directml
from bench.errors import DeviceAbsent
from bench.machine import installed
from bench.model.spec import Data, Spec, Threads


@pytest.mark.needs("linux", "no-directml-adapter")
def test_without_a_wsl_gpu_the_cause_and_the_fix_are_told() -> None:
    with pytest.raises(DeviceAbsent) as caught:
        directml.require()
    assert caught.value.exit_code == 3
    for part in ("no WSL GPU", "/dev/dxg", "libd3d12.so", "libdxcore.so"):
        assert part in caught.value.message
    assert "WSL2" in caught.value.hint


@pytest.mark.needs("linux", "no-directml-adapter")
def test_in_a_container_the_fix_is_its_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("container", "podman")
    with pytest.raises(DeviceAbsent) as caught:
        directml.require()
    for part in ("--device=/dev/dxg", "-v /usr/lib/wsl:/usr/lib/wsl", "-e LD_LIBRARY_PATH=/usr/lib/wsl/lib"):
        assert part in caught.value.hint


@pytest.mark.needs("linux", "no-directml-adapter")
def test_a_library_that_the_loader_refuses_is_named_with_the_loaders_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libd3d12.so").write_text("no library at all", encoding="utf-8")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    check = next(check for check in directml.checks() if check.name == "Direct3D 12")
    assert check.status == "FAIL"
    assert "libd3d12.so: " in check.found


def test_the_plug_in_is_told_or_how_to_get_it_and_that_it_is_paused() -> None:
    check = next(check for check in directml.checks() if check.name in ("DirectML plug-in", "platform"))
    if sys.platform == "darwin":
        assert "macOS" in check.found
    elif installed.version(directml.PLUGIN):
        assert check.status == "PASS"
        assert "paused by Microsoft in October 2023" in check.found
    else:
        assert check.status == "FAIL"
        assert "Microsoft paused it in October 2023" in check.found
        assert "Python 3.10: pip install devbench[directml]" in check.fix


def test_a_cuda_device_can_not_pass_for_a_directml_one() -> None:
    spec = Spec(workload="cifar", backend="directml", threads=Threads(intra=1, inter=1), data=Data(kind="own"))
    environment = directml.environment(spec)
    assert environment["CUDA_VISIBLE_DEVICES"] == "-1"
    assert "DML_VISIBLE_DEVICES" not in environment
