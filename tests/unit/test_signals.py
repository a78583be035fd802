"""Signals while something is measured: one exception, held back where it must not come."""

from __future__ import annotations

import signal
import threading

import pytest

from bench.errors import Interrupted
from bench.signals import interruptible, uninterrupted


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_raises_with_the_exit_code_of_a_shell_and_later_signals_are_ignored(
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


def test_an_uninterruptible_block_finishes_before_the_exception_is_raised() -> None:
    done: list[str] = []

    def work() -> None:
        with interruptible():
            with uninterrupted():
                with uninterrupted():
                    signal.raise_signal(signal.SIGINT)
                    done.append("inner")
                done.append("outer")
            done.append("after")

    with pytest.raises(Interrupted):
        work()
    assert done == ["inner", "outer"]


def test_an_error_in_an_uninterruptible_block_does_not_lose_the_signal() -> None:
    def work() -> None:
        with interruptible(), uninterrupted():
            signal.raise_signal(signal.SIGTERM)
            raise OSError("no more processes")

    with pytest.raises(Interrupted) as caught:
        work()
    assert caught.value.exit_code == 143
    assert isinstance(caught.value.__context__, OSError)


def test_outside_the_main_thread_nothing_changes() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with interruptible(), uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
