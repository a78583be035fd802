"""The checks of the directml backend on machines without DirectML."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.backends import directml
from bench.config.settings import load
from bench.errors import DeviceAbsent, NotApplicable
from bench.machine import installed
from bench.model.spec import Data, Spec, Threads
from bench.study.plan import groups


@pytest.mark.needs("linux", "no-directml-adapter")
def test_without_a_wsl_gpu_the_error_names_causes_and_fixes() -> None:
    with pytest.raises(DeviceAbsent) as caught:
        directml.require()
    assert caught.value.exit_code == 3
    for part in ("WSL GPU: /dev/dxg does not exist", "libd3d12.so", "libdxcore.so"):
        assert part in caught.value.message
    assert "WSL2" in caught.value.hint


@pytest.mark.needs("linux", "no-directml-adapter")
def test_in_a_container_the_fix_is_the_command_that_starts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("container", "podman")
    with pytest.raises(DeviceAbsent) as caught:
        directml.require()
    for part in ("--device=/dev/dxg", "-v /usr/lib/wsl:/usr/lib/wsl", "-e LD_LIBRARY_PATH=/usr/lib/wsl/lib"):
        assert part in caught.value.hint


@pytest.mark.needs("linux", "no-directml-adapter")
def test_a_library_that_does_not_load_is_named_with_the_loaders_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libd3d12.so").write_text("no library at all", encoding="utf-8")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    check = next(check for check in directml.checks() if check.name == "Direct3D 12")
    assert check.status == "FAIL"
    assert "libd3d12.so: " in check.detail


def test_doctor_shows_the_plug_in_or_how_to_install_it_and_that_it_is_paused() -> None:
    check = next(check for check in directml.checks() if check.name in ("DirectML plug-in", "platform"))
    if sys.platform == "darwin":
        assert "macOS" in check.detail
    elif installed.version(directml.PLUGIN):
        assert check.status == "PASS"
        assert "paused by Microsoft in October 2023" in check.detail
    else:
        assert check.status == "FAIL"
        assert "Microsoft paused it in October 2023" in check.detail
        assert "pip install '.[directml]' (with Python 3.10)" in check.fix


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"dtype": "float64"}, "directml computes only in float32 and float16"),
        ({"dtype": "mixed_bfloat16"}, "directml computes only in float32 and float16"),
        ({"xla": "on"}, "directml does not support XLA"),
    ],
)
def test_what_the_plug_in_cannot_do_is_refused_with_the_reason(options: dict[str, str], reason: str) -> None:
    with pytest.raises(NotApplicable, match=f"cifar on directml: not applicable, because {reason}"):
        groups(["cifar"], load(backend="directml", data="sample", **options))
    (group,) = groups(["cifar"], load(backend="cpu,directml", data="sample", **options))
    assert [planned.spec.backend for planned in group.planned] == ["cpu"]
    assert reason in group.not_applicable[0]


@pytest.mark.parametrize("options", [{}, {"dtype": "mixed_float16"}, {"xla": "off"}])
def test_what_the_plug_in_can_do_is_planned(options: dict[str, str]) -> None:
    (group,) = groups(["cifar"], load(backend="directml", data="sample", **options))
    assert group.not_applicable == ()


def test_cuda_devices_are_hidden_and_directml_devices_are_not() -> None:
    spec = Spec(workload="cifar", backend="directml", threads=Threads(intra=1, inter=1), data=Data(kind="own"))
    environment = directml.environment(spec)
    assert environment["CUDA_VISIBLE_DEVICES"] == "-1"
    assert "DML_VISIBLE_DEVICES" not in environment
