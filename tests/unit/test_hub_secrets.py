"""The files of tokens and users that the hub reads."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from bench.hub.web.auth import TOKEN, Secrets

pytestmark = pytest.mark.once


def test_a_file_that_becomes_unreadable_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "tokens"
    file.write_text("a-token-of-16-characters\n", encoding="utf-8")
    secrets = Secrets(file, "UNSET", TOKEN)
    for _ in range(2):
        file.unlink()
        with caplog.at_level(logging.ERROR):
            assert [secrets.contains("a-token-of-16-characters") for _ in range(3)] == [True] * 3
        file.write_text("another-token-of-16-characters\na-token-of-16-characters\n", encoding="utf-8")
        assert secrets.contains("another-token-of-16-characters")
    assert len(caplog.records) == 2
