"""A hub, its sender and `devbench push`, killed at random times: no result is lost or stored twice."""

from __future__ import annotations

import json
import random
import secrets
import socket
from pathlib import Path

import pytest
import urllib3

from bench.hub.db import exchange, queries, records
from bench.hub.db.database import Database
from bench.model.run_state import RunState
from bench.publish.hub.outbox import Outbox
from bench.store import files as store
from bench.store import headers

pytestmark = [pytest.mark.once, pytest.mark.needs("posix", "changed-hub-kills")]

KILLS = 100
"""Per database."""

LONGEST = 0.1
"""Maximum time from a new result until one of the processes is killed, in seconds."""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def wait_until_ready(url: str) -> None:
    again = urllib3.Retry(total=200, backoff_factor=0.02, backoff_max=0.2, status_forcelist=[503])
    assert urllib3.request("GET", f"{url}/readyz", retries=again, timeout=30).status == 200


def stored(database: str) -> dict[str, bytes]:
    """Return the stored results and explanations by their ids."""
    opened = Database(database)
    with opened.read() as connection:
        rows = queries.results(connection, {}, 100_000).items
        found = {row.id: queries.result_body(connection, row.id) for row in rows}
        why = queries.explanations(connection, 100_000).items
        documents = {row.id: queries.explanation(connection, row.id).model_dump_json().encode() for row in why}
    opened.close()
    assert len(rows) == len(found)
    assert len(why) == len(documents)
    return {**found, **documents}


def ended(database: str) -> list[RunState]:
    """Return the runs that reported their end."""
    opened = Database(database)
    with opened.read() as connection:
        runs = queries.runs(connection, records.now(), 100_000).items
    opened.close()
    assert len({each.run.id for each in runs}) == len(runs)
    return [each.run for each in runs if each.run.state == "finished"]


def written(folder: Path) -> dict[str, Path]:
    """Return the files of results and explanations by their ids."""
    why = (folder / store.EXPLANATIONS).glob(f"*{store.SUFFIX}")
    return {headers.entry(path).id: path for path in store.files(folder)} | {path.stem: path for path in why}


def same(stored: bytes | None, path: Path) -> bool:
    """Return whether a stored document equals its file."""
    if path.parent.name != store.EXPLANATIONS:
        return stored == path.read_bytes()
    return stored is not None and json.loads(stored) == json.loads(path.read_bytes())


@pytest.mark.timeout(600)
def test_killing_either_side_at_any_point_loses_and_duplicates_nothing(database_url: str, tmp_path: Path) -> None:
    import killing

    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    folder = tmp_path / "results"
    folder.mkdir()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    hub = killing.start(killing.serve, database_url, str(port))
    sender = killing.start(killing.measure, str(folder), url)
    killed = {"hub": 0, "sender": 0, "push": 0}
    for _ in range(KILLS):
        enough = len(store.files(folder)) + chance.randrange(3)
        while len(store.files(folder)) < enough:
            sender.join(0.01)
        sender.join(chance.uniform(0, LONGEST))
        assert sender.is_alive()
        victim = chance.choice(["hub", "sender", "push"])
        if victim == "push":
            push = killing.start(killing.push, str(folder), url)
            push.join(chance.uniform(0, 10 * LONGEST))
            push.kill()
            push.join()
        elif victim == "hub":
            hub.kill()
            hub.join()
            hub = killing.start(killing.serve, database_url, str(port))
        else:
            sender.kill()
            sender.join()
            sender = killing.start(killing.measure, str(folder), url)
        killed[victim] += 1
    sender.kill()
    sender.join()
    wait_until_ready(url)
    files = written(folder)
    waiting = {each.path for each in Outbox(folder, url).pending()}
    there = stored(database_url)
    # What is not in the outbox is stored as it is in its file.
    settled = {name: path for name, path in files.items() if path not in waiting}
    assert {name for name, path in settled.items() if not same(there.get(name), path)} == set()
    last = killing.start(killing.finish, str(folder), url)
    last.join()
    assert last.exitcode == 0
    there = stored(database_url)
    assert there.keys() == files.keys()
    assert {name for name, path in files.items() if not same(there[name], path)} == set()
    runs = ended(database_url)
    assert runs
    assert {name for run in runs for name in run.results} <= there.keys()
    assert sum(len(run.results) == killing.RESULTS for run in runs) == len(runs) - 1  # the last run measured nothing
    assert Outbox(folder, url).pending() == []
    assert min(killed.values()) > 0
    assert len(there) > KILLS / 5
    hub.kill()
    hub.join()
    opened = Database(database_url)
    assert exchange.export_to(opened, tmp_path / "all.jsonl") >= len(files)
    opened.close()
