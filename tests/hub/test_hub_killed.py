"""A hub, its sender and `devbench push`, killed at random times: no result is lost or stored twice."""

from __future__ import annotations

import json
import random
import secrets
import socket
from pathlib import Path

import pytest
import urllib3

from bench.hub.db import exchange, explanation_queries, records, result_queries, run_queries
from bench.hub.db.database import Database
from bench.model.run_state import RunState
from bench.publish.hub.outbox import Outbox
from bench.store import files as store
from bench.store import headers

pytestmark = [pytest.mark.once, pytest.mark.needs("posix"), pytest.mark.group("hub-kills")]

KILLS = 100
"""Number of kills per database."""

MAX_DELAY = 0.1
"""Maximum time from a new result to a kill, in seconds."""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def wait_until_ready(url: str) -> None:
    retries = urllib3.Retry(total=200, backoff_factor=0.02, backoff_max=0.2, status_forcelist=[503])
    assert urllib3.request("GET", f"{url}/readyz", retries=retries, timeout=30).status == 200


def stored_documents(database: str) -> dict[str, bytes]:
    """Return the stored results and explanations by their ids."""
    connected = Database(database)
    with connected.read() as connection:
        rows = result_queries.results(connection, {}, 100_000).items
        results = {row.id: result_queries.result_body(connection, row.id) for row in rows}
        ids = [row.id for row in explanation_queries.explanations(connection, 100_000).items]
        explanations = [explanation_queries.explanation(connection, id_) for id_ in ids]
    connected.close()
    assert len(rows) == len(results)
    assert len(set(ids)) == len(ids)
    return results | {explanation.id: explanation.model_dump_json().encode() for explanation in explanations}


def finished_runs(database: str) -> list[RunState]:
    """Return the runs that reported their end."""
    connected = Database(database)
    with connected.read() as connection:
        runs = run_queries.runs(connection, records.now(), 100_000).items
    connected.close()
    assert len({entry.run.id for entry in runs}) == len(runs)
    return [entry.run for entry in runs if entry.run.state == "finished"]


def written_files(folder: Path) -> dict[str, Path]:
    """Return the files of results and explanations by their ids."""
    explanations = (folder / store.EXPLANATIONS).glob(f"*{store.SUFFIX}")
    return {headers.index_entry(path).id: path for path in store.files(folder)} | {
        path.stem: path for path in explanations
    }


def is_equal(stored: bytes | None, path: Path) -> bool:
    """Return whether a stored document equals its file."""
    if path.parent.name != store.EXPLANATIONS:
        return stored == path.read_bytes()
    return stored is not None and json.loads(stored) == json.loads(path.read_bytes())


@pytest.mark.timeout(600)
def test_killing_the_hub_or_a_sender_at_any_point_neither_loses_nor_duplicates_results(
    database_url: str, tmp_path: Path
) -> None:
    import killable

    seed = secrets.randbits(32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    folder = tmp_path / "results"
    folder.mkdir()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    hub = killable.start(killable.serve, database_url, str(port))
    sender = killable.start(killable.measure, str(folder), url)
    kills = {"hub": 0, "sender": 0, "push": 0}
    for _ in range(KILLS):
        target = len(store.files(folder)) + rng.randrange(3)
        while len(store.files(folder)) < target:
            sender.join(0.01)
        sender.join(rng.uniform(0, MAX_DELAY))
        assert sender.is_alive()
        victim = rng.choice(["hub", "sender", "push"])
        if victim == "push":
            push = killable.start(killable.push, str(folder), url)
            push.join(rng.uniform(0, 10 * MAX_DELAY))
            push.kill()
            push.join()
        elif victim == "hub":
            hub.kill()
            hub.join()
            hub = killable.start(killable.serve, database_url, str(port))
        else:
            sender.kill()
            sender.join()
            sender = killable.start(killable.measure, str(folder), url)
        kills[victim] += 1
    sender.kill()
    sender.join()
    wait_until_ready(url)
    files = written_files(folder)
    pending = {entry.path for entry in Outbox(folder, url).pending()}
    documents = stored_documents(database_url)
    # A document that is not in the outbox is stored as in its file.
    delivered = {name: path for name, path in files.items() if path not in pending}
    assert {name for name, path in delivered.items() if not is_equal(documents.get(name), path)} == set()
    final_run = killable.start(killable.finish, str(folder), url)
    final_run.join()
    assert final_run.exitcode == 0
    documents = stored_documents(database_url)
    assert documents.keys() == files.keys()
    assert {name for name, path in files.items() if not is_equal(documents[name], path)} == set()
    runs = finished_runs(database_url)
    assert runs
    assert {name for run in runs for name in run.results} <= documents.keys()
    assert sum(len(run.results) == killable.RESULTS for run in runs) == len(runs) - 1  # the last run measured nothing
    assert Outbox(folder, url).pending() == []
    assert min(kills.values()) > 0
    assert len(documents) > KILLS / 5
    hub.kill()
    hub.join()
    database = Database(database_url)
    assert exchange.export_to(database, tmp_path / "all.jsonl") >= len(files)
    database.close()
