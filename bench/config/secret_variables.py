"""Environment variables that hold secrets. A program that is measured does not see them."""

from __future__ import annotations

TOKEN = "DEVBENCH_HUB_TOKEN"
"""The token that a run sends to a hub."""

TOKENS = "DEVBENCH_HUB_TOKENS"
"""The tokens that a hub accepts."""

READERS = "DEVBENCH_HUB_READERS"
"""The users and passwords that a hub lets read."""

PUSHGATEWAY = "DEVBENCH_PUSHGATEWAY"
"""The Pushgateway's URL, which may hold a password."""

SECRETS = (TOKEN, TOKENS, READERS, PUSHGATEWAY)
