"""Signals during a measurement. They raise one exception, but not inside an uninterruptible block."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
from stand_in_nvml import Nvml

from bench.backends._nvml import open_sampler
from bench.errors import Interrupted
from bench.model.check import Check, run_check
from bench.registry import user_file
from bench.signals import interruptible, uninterrupted


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_raises_with_its_exit_code_and_later_signals_are_ignored(
    signum: signal.Signals,
) -> None:
    handlers = (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
    cleaned = False

    def work() -> None:
        nonlocal cleaned
        with interruptible():
            try:
                signal.raise_signal(signum)
            finally:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGTERM)
                cleaned = True

    with pytest.raises(Interrupted) as caught:
        work()
    assert cleaned
    assert caught.value.exit_code == 128 + signum
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers


def test_a_block_within_another_one_leaves_later_signals_ignored() -> None:
    cleaned = False

    def work() -> None:
        nonlocal cleaned
        with interruptible():
            try:
                with interruptible():
                    signal.raise_signal(signal.SIGINT)
            finally:
                signal.raise_signal(signal.SIGINT)
                cleaned = True

    with pytest.raises(Interrupted):
        work()
    assert cleaned


def test_an_uninterruptible_block_finishes_before_the_exception_is_raised() -> None:
    blocks: list[str] = []

    def work() -> None:
        with interruptible():
            with uninterrupted():
                with uninterrupted():
                    signal.raise_signal(signal.SIGINT)
                    blocks.append("inner")
                blocks.append("outer")
            blocks.append("after")

    with pytest.raises(Interrupted):
        work()
    assert blocks == ["inner", "outer"]


def test_an_error_in_an_uninterruptible_block_does_not_lose_the_signal() -> None:
    def work() -> None:
        with interruptible(), uninterrupted():
            signal.raise_signal(signal.SIGTERM)
            raise OSError("no more processes")

    with pytest.raises(Interrupted) as caught:
        work()
    assert caught.value.exit_code == 143
    assert isinstance(caught.value.__context__, OSError)


def checked() -> list[Check]:
    def check() -> Iterator[Check]:
        signal.raise_signal(signal.SIGINT)
        yield Check("GPU", "PASS", "")

    return list(run_check("GPU", check))


def sampled() -> object:
    return open_sampler({})


def called() -> object:
    module = ModuleType("mine")
    module.__file__ = "mine.py"
    module.total_steps = lambda: signal.raise_signal(signal.SIGINT)  # type: ignore[attr-defined]
    return user_file.call(module, "total_steps")


@pytest.mark.parametrize("work", [checked, sampled, called])
def test_a_signal_is_not_taken_for_an_error_of_the_code_in_which_it_arrives(
    work: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml = Nvml(["GPU-aaaa"])
    monkeypatch.setattr(nvml, "nvmlInit", lambda: signal.raise_signal(signal.SIGINT))
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    with pytest.raises(Interrupted), interruptible():
        work()


def test_signal_handlers_are_unchanged_outside_the_main_thread() -> None:
    handler, handlers = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with interruptible(), uninterrupted():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [handler]
