"""Delivery from a run to a hub: documents are written to disk, and sent until the hub has stored them once."""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hubs import OTHER_TOKEN, TOKEN, RunningHub
from synthetic import explanation, ladder_results, measured

from bench.config.settings import load
from bench.errors import Interrupted, OutputError, SettingsError
from bench.model.result import Result, Stop
from bench.model.run_state import Estimate, Progress, RunState
from bench.publish.hub.client import BRIEF, PATIENT, Client
from bench.publish.hub.delivery import deliveries
from bench.publish.hub.errors import HubBusy, HubRefused, HubUnavailable
from bench.publish.hub.outbox import Outbox
from bench.publish.hub.reporter import Reporter
from bench.publish.hub.token import token
from bench.publish.recorder import Recorder
from bench.store import atomic, files
from bench.store.ids import namer as make_namer

pytestmark = pytest.mark.once

DONE = Stop(reason="target", trials=1)
STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


def ok(body: bytes, *headers: str) -> bytes:
    """Return an answer of HTTP with status 200."""
    head = "\r\n".join(["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers])
    return f"{head}\r\n\r\n".encode() + body


def receipt(name: str) -> bytes:
    """Return a hub's answer to a document."""
    return ok(json.dumps({"id": name, "outcome": "created"}).encode())


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Serve HTTP with a function that answers each request, in a thread of its own. Yield the address."""
    stop = threading.Event()

    def handle(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while part := connection.recv(65536):
                if part.rstrip().endswith(b"}"):
                    answer(connection)

    def accept() -> None:
        while not stop.is_set():
            with suppress(OSError):
                threading.Thread(target=handle, args=(listener.accept()[0],), daemon=True).start()

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        stop.set()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def unreachable_address() -> str:
    """Return an address where no hub listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture
def valid_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a valid token in the environment, and shorten the wait between attempts."""
    monkeypatch.setenv("DEVBENCH_HUB_TOKEN", TOKEN)
    monkeypatch.setattr("bench.publish.hub.client.BACKOFF", 0.01)


@contextmanager
def reporting(folder: Path, hub: str, warnings: list[str], **options: Any) -> Iterator[Recorder]:
    settings = load(hub=hub, output=folder, **options)
    files.prepare(folder)
    recorder = Recorder(settings, warn=warnings.append)
    with recorder.reporting("cifar"):
        yield recorder


def change(outbox: Outbox, result: Result) -> None:
    with outbox.writing(outbox.folder / files.file_name(result)):
        files.write(result, outbox.folder)


def ids(hub: RunningHub) -> list[str]:
    return sorted(result["id"] for result in hub.get("/api/v1/results")["results"])


@pytest.mark.usefixtures("valid_token")
def test_a_run_reports_its_start_its_results_and_its_end(hub: RunningHub, tmp_path: Path) -> None:
    warnings: list[str] = []
    with reporting(tmp_path, hub.url, warnings, run_id="job-0", attempt="2") as recorder:
        started = hub.get("/api/v1/runs/job-0")
        assert (started["state"], started["run"]["attempt"], started["run"]["title"]) == ("running", 2, "cifar")
        recorder.save(measured("1", [0.1], status="partial", stop=None))
        assert ids(hub) == []  # while more trials follow, the result waits
        recorder.save(measured("1", [0.1, 0.1], stop=DONE))
        assert ids(hub) == ["1"]
    ended = hub.get("/api/v1/runs/job-0")
    assert (ended["state"], ended["run"]["results"]) == ("finished", ["1"])
    assert warnings == [f"This run at the hub: {hub.url}/runs/{hub.get('/api/v1/runs')['runs'][0]['run']['id']}"]
    assert Outbox(tmp_path, hub.url).pending() == []
    assert list((tmp_path / "outbox" / "runs").iterdir()) == []


@pytest.mark.usefixtures("valid_token")
@pytest.mark.parametrize("name", ["runs", "explanations"])
def test_a_folder_of_results_may_have_any_name(hub: RunningHub, tmp_path: Path, name: str) -> None:
    with reporting(tmp_path / name, hub.url, []) as recorder:
        recorder.save(measured("1", [0.1], stop=DONE))
        recorder.save_explanation(explanation(ladder_results()))
    assert ids(hub) == ["1"]
    assert len(hub.get("/api/v1/explanations")["explanations"]) == 1
    assert Outbox(tmp_path / name, hub.url).pending() == []


@pytest.mark.usefixtures("valid_token")
def test_a_signal_during_the_last_delivery_keeps_the_outcome_and_the_rest_stays_in_the_outbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any) -> str:
        raise Interrupted(15)

    def run() -> str:
        with reporting(tmp_path, address, warnings) as recorder:
            recorders.append(recorder)
            saved.append(recorder.save(measured("1", [0.1], status="partial", stop=None)))
            monkeypatch.setattr(Client, "put", interrupted)  # a signal during the wait before the next attempt
        return "outcome"

    address, saved, recorders, warnings = unreachable_address(), list[Path](), list[Recorder](), list[str]()
    assert run() == "outcome"
    assert recorders[0].cut_short == 15
    assert "2 documents have not been sent." in warnings[-1]
    assert saved[0] in [entry.path for entry in Outbox(tmp_path, address).pending()]


@pytest.mark.usefixtures("valid_token")
def test_an_interrupted_run_does_not_wait_for_a_hub_that_never_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def serve() -> None:
        connection, _ = listener.accept()
        while not connection.recv(65536).endswith(b"}"):
            pass
        connection.sendall(receipt("r"))
        connections.append(connection)

    def run() -> None:
        with suppress(Interrupted), reporting(tmp_path, hub, warnings, run_id="r") as recorder:
            recorder.save(measured("1", [0.1], status="partial", stop=Stop(reason="interrupted", trials=1)))
            raise Interrupted(15)

    warnings: list[str] = []
    connections: list[socket.socket] = []
    monkeypatch.setattr("bench.publish.hub.client.READ", 3600.0)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        hub = f"http://127.0.0.1:{listener.getsockname()[1]}"
        threads = [threading.Thread(target=target, daemon=True) for target in (serve, run)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    connections[0].close()
    assert warnings[-1].startswith("2 documents have not been sent")


@pytest.mark.usefixtures("valid_token")
def test_an_interrupted_run_is_reported_as_interrupted(hub: RunningHub, tmp_path: Path) -> None:
    stop = Interrupted(signal.SIGTERM)
    with pytest.raises(Interrupted), reporting(tmp_path, hub.url, [], run_id="job-0"):
        raise stop
    ended = hub.get("/api/v1/runs/job-0")
    assert (ended["state"], ended["run"]["reason"]) == ("interrupted", stop.message)


@pytest.mark.usefixtures("valid_token")
def test_a_removed_file_is_reported_but_a_file_that_was_never_written_is_not(hub: RunningHub, tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, hub.url)
    outbox.prepare()
    change(outbox, removed := measured("1", [0.1], stop=DONE))
    for result in (removed, measured("2", [0.1], stop=DONE)):
        with pytest.raises(KeyboardInterrupt), outbox.writing(tmp_path / files.file_name(result)):
            raise KeyboardInterrupt
    (tmp_path / files.file_name(removed)).unlink()
    warnings: list[str] = []
    with reporting(tmp_path, hub.url, warnings):
        pass
    assert [warning for warning in warnings if "is gone" in warning] == [
        f"{tmp_path / files.file_name(removed)} is gone, so it cannot be sent to the hub."
    ]
    assert outbox.pending() == []
    assert [path.name for path in (tmp_path / "outbox").iterdir() if path.suffix != ".writing"] == ["runs"]


@pytest.mark.usefixtures("valid_token")
def test_the_heartbeat_carries_progress(hub: RunningHub, tmp_path: Path) -> None:
    client = Client(hub.url, TOKEN)
    run = RunState(id="r", state="running", title="cifar", started=STARTED, devbench="0.1.0")
    reporter = Reporter(client, Outbox(tmp_path, hub.url), run, lambda _: None, heartbeat_seconds=0.05)
    reporter.start()
    estimate = Estimate(title="cifar", step_seconds=0.1, relative_error=0.02)
    reporter.progress(Progress(title="cifar on cpu", phase="steady state", trial=4, estimates=[estimate]))
    while (progress := hub.get("/api/v1/runs/r")["run"]["progress"]) is None:
        pass
    assert (progress["phase"], progress["trial"], progress["estimates"][0]["step_seconds"]) == ("steady state", 4, 0.1)
    reporter.end("finished")


@pytest.mark.usefixtures("valid_token")
def test_results_that_an_unreachable_hub_missed_are_sent_by_the_next_run(hub: RunningHub, tmp_path: Path) -> None:
    warnings: list[str] = []
    with reporting(tmp_path, address := unreachable_address(), warnings, run_id="first") as recorder:
        recorder.save(measured("1", [0.1], stop=DONE))
        recorder.save(measured("2", [0.1], stop=DONE))
    assert any("cannot reach the hub" in warning and "refused" in warning for warning in warnings)
    assert warnings[-1].startswith("3 documents have not been sent")
    for note in (tmp_path / "outbox").glob("*.note"):  # the hub is reachable again, here at another address
        note.write_text(note.read_text(encoding="utf-8").replace(address, hub.url), encoding="utf-8")
    with reporting(tmp_path, hub.url, warnings, run_id="second"):
        assert ids(hub) == ["1", "2"]
    states = {item["run"]["id"]: item["state"] for item in hub.get("/api/v1/runs")["runs"]}
    assert states == {"first": "finished", "second": "finished"}
    assert [path.name for path in (tmp_path / "outbox").iterdir()] == ["runs"]


@pytest.mark.usefixtures("valid_token")
def test_hub_wait_makes_a_run_wait_at_its_end_until_the_hub_is_reachable_again(
    hub: RunningHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.publish.hub.reporter.RETRY_SECONDS", 0.01)
    put, tries = Client.put, itertools.count()

    def unreachable_at_first(
        self: Client, kind: str, name: str, body: bytes, retries: int = 0, limit: float = math.inf
    ) -> str:
        if next(tries) < 10:
            raise HubUnavailable("cannot reach the hub")
        return put(self, kind, name, body, retries, limit)

    monkeypatch.setattr(Client, "put", unreachable_at_first)
    with reporting(tmp_path, hub.url, [], hub_wait="1h") as recorder:
        recorder.save(measured("1", [0.1], stop=DONE))
    assert ids(hub) == ["1"]
    assert Outbox(tmp_path, hub.url).pending() == []


@pytest.mark.usefixtures("valid_token")
def test_the_next_run_sends_the_last_state_of_a_result_whose_run_was_killed(hub: RunningHub, tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, hub.url)
    outbox.prepare()
    change(outbox, measured("1", [0.1, 0.2], status="partial"))
    with reporting(tmp_path, hub.url, []):
        assert hub.get("/api/v1/results/1")["status"] == "partial"


@pytest.mark.usefixtures("valid_token")
def test_a_file_that_changes_during_its_delivery_is_still_pending(hub: RunningHub, tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, hub.url)
    outbox.prepare()
    change(outbox, measured("1", [0.1], status="partial"))
    (before,) = outbox.pending()
    change(outbox, measured("1", [0.1, 0.2], status="partial"))
    outbox.confirm(before)
    (after,) = outbox.pending()
    assert after.path == before.path


@pytest.mark.parametrize("existed", [False, True])
def test_a_file_whose_writer_was_killed_after_the_change_is_pending(tmp_path: Path, existed: bool) -> None:
    outbox = Outbox(tmp_path, "http://hub")
    outbox.prepare()
    if existed:
        files.write(measured("1", [0.2]), tmp_path)
    killed = outbox.writing(tmp_path / files.file_name(measured("1", [0.1])))
    killed.__enter__()
    assert outbox.pending() == []
    path = files.write(measured("1", [0.1]), tmp_path)
    (pending,) = outbox.pending()
    assert pending.path == path
    outbox.confirm(pending)
    assert outbox.pending() == []


def test_a_delivery_before_the_change_does_not_remove_the_announcement_of_the_writer(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, "http://hub")
    outbox.prepare()
    change(outbox, measured("1", [0.1]))
    other = Outbox(tmp_path, "http://hub")
    with other.writing(tmp_path / files.file_name(measured("1", [0.1]))):
        (before,) = outbox.pending()
        outbox.confirm(before)
        assert outbox.pending() == []
        files.write(measured("1", [0.2]), tmp_path)
        (changed,) = outbox.pending()
    outbox.confirm(changed)
    (after,) = outbox.pending()  # the outbox cannot know whether the delivery came before or after the change
    assert after.path == before.path


def test_two_writers_of_one_file_both_leave_a_note(tmp_path: Path) -> None:
    first, second = Outbox(tmp_path, "http://hub"), Outbox(tmp_path, "http://hub")
    first.prepare()
    with first.writing(tmp_path / files.file_name(measured("1", [0.1]))):
        change(second, measured("1", [0.2]))
        (pending,) = second.pending()
        second.confirm(pending)
        files.write(measured("1", [0.1]), tmp_path)
    assert [pending.path.name for pending in second.pending()] == [pending.path.name]


def test_an_announcement_without_a_change_is_removed_after_minutes(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, "http://hub")
    outbox.prepare()
    path = files.write(measured("1", [0.1]), tmp_path)
    outbox.writing(path).__enter__()
    (note,) = (tmp_path / "outbox").glob("*.writing")
    assert outbox.pending() == []
    assert note.exists()
    os.utime(note, (0, 0))
    assert outbox.pending() == []
    assert not note.exists()


def test_a_result_that_is_saved_many_times_has_one_note(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, "http://hub")
    outbox.prepare()
    for step in (0.1, 0.2, 0.3):
        change(outbox, measured("1", [step]))
    (pending,) = outbox.pending()
    assert len(pending.notes) == 1


@pytest.mark.usefixtures("valid_token")
def test_an_interruption_and_a_failure_are_reported_as_different_states(hub: RunningHub, tmp_path: Path) -> None:
    with pytest.raises(Interrupted), reporting(tmp_path, hub.url, [], run_id="a"):
        raise Interrupted(15)
    with pytest.raises(ZeroDivisionError), reporting(tmp_path, hub.url, [], run_id="b"):
        raise ZeroDivisionError
    ends = {item["run"]["id"]: (item["state"], item["run"]["reason"]) for item in hub.get("/api/v1/runs")["runs"]}
    assert ends["a"][0] == "interrupted"
    assert ends["b"] == ("failed", "internal error of devbench")


def test_documents_with_an_invalid_token_are_reported_and_stay_in_the_outbox(
    hub: RunningHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVBENCH_HUB_TOKEN", "an invalid token")
    warnings: list[str] = []
    with reporting(tmp_path, hub.url, warnings) as recorder:
        recorder.save(measured("1", [0.1], stop=DONE))
    assert any("the token is not valid" in warning for warning in warnings)
    assert "have not been sent" in warnings[-1]
    assert len(Outbox(tmp_path, hub.url).pending()) == 2


def test_a_token_that_is_rotated_during_a_run_is_read_again(
    serve: Callable[..., RunningHub], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.publish.hub.reporter.RETRY_SECONDS", 0.01)
    hub_tokens, token_file = tmp_path / "rotated", tmp_path / "token"
    for path in (hub_tokens, token_file):
        path.write_text(f"{TOKEN}\n", encoding="utf-8")
    hub = serve(tokens_file=hub_tokens)
    folder, warnings = tmp_path / "results", list[str]()
    with reporting(folder, hub.url, warnings, run_id="r", hub_token_file=token_file, hub_wait="1h") as recorder:
        recorder.save(measured("1", [0.1], stop=DONE))
        hub_tokens.write_text(f"{OTHER_TOKEN}\n", encoding="utf-8")
        recorder.save(measured("2", [0.1], stop=DONE))
        assert ids(hub) == ["1"]
        threading.Timer(
            0.1, token_file.write_text, [OTHER_TOKEN]
        ).start()  # a cluster mounts the new token with a delay
    assert ids(hub) == ["1", "2"]
    assert hub.get("/api/v1/runs/r")["state"] == "finished"
    assert Outbox(folder, hub.url).pending() == []
    assert any("the token is not valid" in warning for warning in warnings)


def test_a_request_is_repeated_with_a_token_that_another_thread_has_renewed(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = Client._send
    client = Client(hub.url, "the previous token", lambda: TOKEN)

    def send_and_renew(self: Client, *arguments: Any) -> Any:
        response = send(self, *arguments)
        self.token = TOKEN
        return response

    monkeypatch.setattr(Client, "_send", send_and_renew)
    assert client.put("results", "1", measured("1", [0.1], stop=DONE).model_dump_json().encode()) == "created"


@pytest.mark.usefixtures("valid_token")
def test_a_result_that_the_hub_rejects_for_good_is_reported_once_and_not_sent_again(
    hub: RunningHub, tmp_path: Path
) -> None:
    hub.send(measured("1", [0.2]))
    warnings: list[str] = []
    with reporting(tmp_path, hub.url, warnings) as recorder:
        path = recorder.save(measured("1", [0.1], stop=DONE))
    assert len([warning for warning in warnings if "that differs from this one" in warning]) == 1
    assert path.exists()
    second_warnings: list[str] = []
    with reporting(tmp_path, hub.url, second_warnings, run_id="second"):
        pass
    assert second_warnings == [f"This run at the hub: {hub.url}/runs/second"]


@pytest.mark.usefixtures("valid_token")
def test_a_run_on_a_full_disk_still_sends_its_end_and_its_pending_results(
    hub: RunningHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OutputError("the disk is full")

    def run() -> None:
        with reporting(tmp_path, hub.url, [], run_id="r") as recorder:
            change(Outbox(tmp_path, hub.url), measured("1", [0.1], stop=DONE))
            monkeypatch.setattr(atomic, "write_text", full)
            recorder.save(measured("2", [0.1], stop=DONE))

    with pytest.raises(OutputError):
        run()
    assert ids(hub) == ["1"]
    status = hub.get("/api/v1/runs/r")
    assert (status["state"], status["run"]["reason"]) == ("failed", "the disk is full")
    assert not [thread for thread in threading.enumerate() if "_beat" in thread.name]


@pytest.mark.usefixtures("valid_token")
def test_a_document_that_another_process_delivered_meanwhile_is_not_an_error(hub: RunningHub, tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, hub.url)
    outbox.prepare()
    outbox.keep_run_state(RunState(id="r", state="finished", title="x", started=STARTED, devbench="0"))
    client, queue = Client(hub.url, TOKEN), outbox.pending()
    assert [outcome for _, outcome in deliveries(client, outbox, outbox.pending())] == ["created"]
    assert [outcome for _, outcome in deliveries(client, outbox, queue)] == ["same"]


@pytest.mark.usefixtures("valid_token")
def test_a_document_that_the_hub_cannot_take_does_not_delay_the_others(
    hub: RunningHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, warnings = Client.put, list[str]()

    def refuse_one(self: Client, kind: str, name: str, body: bytes, retries: int = 0, limit: float = math.inf) -> str:
        if name == "1":
            raise HubBusy("the hub cannot take 1 now: it answered 500")
        return put(self, kind, name, body, retries, limit)

    monkeypatch.setattr(Client, "put", refuse_one)
    with reporting(tmp_path, hub.url, warnings, run_id="r") as recorder:
        for name in "123":
            recorder.save(measured(name, [0.1], stop=DONE))
    assert ids(hub) == ["2", "3"]
    assert hub.get("/api/v1/runs/r")["state"] == "finished"
    assert [warning for warning in warnings if "cannot take 1" in warning] == [
        "the hub cannot take 1 now: it answered 500."
    ]
    assert [entry.path.stem.rsplit("-", 1)[1] for entry in Outbox(tmp_path, hub.url).pending()] == ["1"]


@pytest.mark.usefixtures("valid_token")
def test_delivery_stops_after_the_hub_was_busy_for_ten_documents(
    hub: RunningHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[tuple[str, int]] = []

    def refuse_all(self: Client, kind: str, name: str, body: bytes, retries: int = 0, limit: float = math.inf) -> str:
        requests.append((name, retries))
        raise HubBusy("the hub does not answer now")

    outbox = Outbox(tmp_path, hub.url)
    outbox.prepare()
    for number in range(30):
        change(outbox, measured(str(number), [0.1], stop=DONE))
    monkeypatch.setattr(Client, "put", refuse_all)
    with pytest.raises(HubBusy):
        list(deliveries(Client(hub.url, TOKEN), outbox, outbox.pending()))
    assert [retries for _, retries in requests] == [PATIENT] + [BRIEF] * 9
    assert len(outbox.pending()) == 30


@pytest.mark.usefixtures("valid_token")
@pytest.mark.parametrize("started_first", [False, True])
def test_the_heartbeat_continues_while_pending_documents_are_delivered(
    hub: RunningHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started_first: bool
) -> None:
    put, beats = Client.put, threading.Semaphore(0)
    outcomes: list[bool] = []

    def wait_for_heartbeats(
        self: Client, kind: str, name: str, body: bytes, retries: int = 0, limit: float = math.inf
    ) -> str:
        if kind == "results":
            outcomes.append(all(beats.acquire(timeout=20) for _ in range(3)))
        elif b'"running"' in body:
            beats.release()
        return put(self, kind, name, body, retries, limit)

    outbox = Outbox(tmp_path, hub.url)
    outbox.prepare()
    run = RunState(id="r", state="running", title="cifar", started=STARTED, devbench="0.1.0")
    reporter = Reporter(Client(hub.url, TOKEN), outbox, run, lambda _: None, heartbeat_seconds=0.02)
    monkeypatch.setattr(Client, "put", wait_for_heartbeats)
    if started_first:
        reporter.start()
    change(outbox, measured("1", [0.1], stop=DONE))
    if not started_first:
        reporter.start()
    reporter.end("finished")
    assert outcomes == [True]
    assert (ids(hub), hub.get("/api/v1/runs/r")["state"]) == (["1"], "finished")


@pytest.mark.usefixtures("valid_token")
def test_a_request_to_a_busy_hub_is_repeated(tmp_path: Path) -> None:
    """The server responds with 503 twice, then closes the connection, then accepts the document."""
    responses = [b"HTTP/1.1 503 HubBusy\r\nContent-Length: 0\r\n\r\n"] * 2 + [b""]
    responses.append(receipt("a"))
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()

    def serve() -> None:
        for response in responses:
            connection, _ = listener.accept()
            with connection:
                while not connection.recv(65536).endswith(b"{}"):
                    pass
                connection.sendall(response)

    thread = threading.Thread(target=serve)
    thread.start()
    client = Client(f"http://127.0.0.1:{listener.getsockname()[1]}", TOKEN)
    assert client.put("results", "a", b"{}") == "created"
    thread.join()
    listener.close()
    with pytest.raises(HubUnavailable):
        client.put("results", "a", b"{}", retries=0)


@pytest.mark.usefixtures("valid_token")
def test_an_address_without_a_hub_is_an_error(hub: RunningHub) -> None:
    with pytest.raises(HubRefused) as error:
        Client(hub.url + "/elsewhere", TOKEN).put("results", "a", b"{}")
    assert error.value.message.startswith("the hub ")


@pytest.mark.usefixtures("valid_token")
@pytest.mark.parametrize(
    "body",
    [
        b"<html>Please log in</html>",
        b"",
        b"{}",
        b'{"outcome": "created"}',
        b'{"id": "2", "outcome": "created"}',
        b'{"id": "1", "outcome": "login required"}',
        b'{"id": "1"}',
        b'["id", "outcome"]',
    ],
)
def test_only_a_receipt_for_the_document_counts_as_delivered(tmp_path: Path, body: bytes) -> None:
    """A proxy may answer 200 with a page that asks for a login."""
    outbox = Outbox(tmp_path, "http://hub")
    outbox.prepare()
    change(outbox, measured("1", [0.1], stop=DONE))
    with answering(lambda connection: connection.sendall(ok(body))) as address:
        client = Client(address, TOKEN)
        with pytest.raises(HubUnavailable, match="gave no receipt for 1") as caught:
            list(deliveries(client, outbox, outbox.pending()))
    assert "Does a proxy ask for a login?" in caught.value.hint
    assert len(outbox.pending()) == 1


def drip(connection: socket.socket) -> None:
    """Answer with a header that never ends, a byte at a time."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-A: ")
    while True:
        connection.sendall(b"a")
        threading.Event().wait(0.05)


@pytest.mark.usefixtures("valid_token")
@pytest.mark.parametrize("answer", [lambda _: None, drip], ids=["silent", "dripping"])
def test_a_run_waits_a_limited_time_for_a_hub_that_never_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Callable[[socket.socket], None]
) -> None:
    """Without the limits, this test takes longer than a test may take."""
    for name, seconds in {"client.SHORT": 0.5, "reporter.WAIT_MEASURING": 1.0, "reporter.LEAST_WAIT_END": 1.0}.items():
        monkeypatch.setattr(f"bench.publish.hub.{name}", seconds)
    monkeypatch.setattr("bench.publish.hub.client.READ", 3600.0)
    warnings: list[str] = []
    with answering(answer) as address, reporting(tmp_path, address, warnings, hub_wait="1s") as recorder:
        for number in range(300):
            recorder.save(measured(str(number), [0.1], stop=DONE))
            assert recorder._reporter
            recorder._reporter.unavailable = False  # as after each heartbeat
    assert any("did not answer in time" in warning for warning in warnings)
    assert any(warning.startswith("Trying to reach the hub for up to 1 s") for warning in warnings)
    assert warnings[-1].startswith("301 documents have not been sent")


@contextmanager
def closing(answered: int = 0) -> Iterator[tuple[str, list[int]]]:
    """Serve a hub that takes some documents and then closes each connection. Yield its address and the requests."""

    def answer(connection: socket.socket) -> None:
        requests.append(len(requests))
        if len(requests) <= answered:
            connection.sendall(receipt("r"))
        else:
            connection.shutdown(socket.SHUT_RDWR)

    requests: list[int] = []
    with answering(answer) as address:
        yield address, requests


@pytest.mark.usefixtures("valid_token")
def test_a_run_whose_hub_never_answered_tries_once_at_its_end_and_says_how_to_send_the_rest(tmp_path: Path) -> None:
    warnings: list[str] = []
    with closing() as (address, requests), reporting(tmp_path, address, warnings) as recorder:
        recorder.save(measured("1", [0.1], stop=DONE))
        before = len(requests)
    assert (before, len(requests)) == (1, 2)
    assert f"`devbench push {tmp_path} --hub {address}`" in warnings[-1]
    assert len(Outbox(tmp_path, address).pending()) == 2


@pytest.mark.usefixtures("valid_token")
def test_a_run_waits_for_a_hub_that_stopped_to_answer_a_short_time_ago(tmp_path: Path) -> None:
    warnings: list[str] = []
    with closing(answered=1) as (address, requests), reporting(tmp_path, address, warnings, run_id="r") as recorder:
        recorder.save(measured("1", [0.1], stop=DONE))
        before = len(requests)
    assert (before, len(requests)) == (2, 2 + 1 + 1 + PATIENT)
    assert any(warning.startswith("Trying to reach the hub for up to 60 s") for warning in warnings)


@pytest.mark.usefixtures("valid_token")
def test_a_run_waits_briefly_at_its_end_for_a_hub_that_never_answered_and_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.publish.hub.client.READ", 3600.0)
    monkeypatch.setattr("bench.publish.hub.client.SHORT", 0.1)
    monkeypatch.setattr("bench.publish.hub.reporter.KNOCK", 0.1)
    warnings: list[str] = []
    with answering(lambda _: None) as address, reporting(tmp_path, address, warnings) as recorder:
        recorder.save(measured("1", [0.1], stop=DONE))
        monkeypatch.setattr("bench.publish.hub.client.SHORT", 3600.0)
    assert not any("Trying to reach the hub" in warning for warning in warnings)
    assert warnings[-1].startswith("2 documents have not been sent")


@pytest.mark.usefixtures("valid_token")
def test_a_run_that_should_be_short_says_that_it_waits_and_waits_no_longer_than_its_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.publish.hub.reporter.LEAST_WAIT_END", 0.1)
    warnings: list[str] = []
    with closing(answered=1) as (hub, _), reporting(tmp_path, hub, warnings, run_id="r", max_time="1s") as recorder:
        recorder.save(measured("1", [0.1], stop=DONE))
    assert any(warning.startswith("Trying to reach the hub for up to 1 s") for warning in warnings)


@pytest.mark.usefixtures("valid_token")
@pytest.mark.parametrize("seconds", [b"31536000", b"9" * 5000, b"soon"], ids=["a-year", "5000-digits", "a-word"])
def test_the_client_waits_a_limited_time_whatever_the_hub_asks_for(
    monkeypatch: pytest.MonkeyPatch, seconds: bytes
) -> None:
    monkeypatch.setattr("bench.publish.hub.client.RETRY_AFTER", 0.01)
    busy = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nRetry-After: " + seconds + b"\r\n\r\n"
    answers = iter([busy, receipt("a")])
    with answering(lambda connection: connection.sendall(next(answers))) as address:
        assert Client(address, TOKEN).put("results", "a", b"{}") == "created"


def test_the_token_comes_from_a_file_or_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert token(None) is None
    monkeypatch.setenv("DEVBENCH_HUB_TOKEN", " by-variable\n")
    assert token(None) == "by-variable"
    (tmp_path / "token").write_text("# ours\nby-file\n", encoding="utf-8")
    assert token(tmp_path / "token") == "by-file"
    for text in (None, "# nothing\n"):
        if text:
            (tmp_path / "other").write_text(text, encoding="utf-8")
        with pytest.raises(SettingsError):
            token(tmp_path / "other")


def push(folder: Path, hub: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", "push", str(folder), "--hub", hub, "--json", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("valid_token")
def test_push_sends_a_folder_with_its_explanations_once(hub: RunningHub, tmp_path: Path) -> None:
    results = ladder_results()
    for result in results:
        files.write(result, tmp_path)
    files.write_explanation(explanation(results), tmp_path)
    outbox = Outbox(tmp_path, hub.url)
    outbox.prepare()
    outbox.keep_run_state(RunState(id="r", state="finished", title="x", started=STARTED, devbench="0"))
    first = push(tmp_path, hub.url)
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["push"]["created"] == len(results) + 2
    assert ids(hub) == sorted(result.id for result in results)
    assert hub.get("/api/v1/explanations/why")["label"] == "cifar on cpu, as-written"
    assert hub.get("/api/v1/runs/r")["state"] == "finished"
    assert json.loads(push(tmp_path, hub.url).stdout)["push"]["same"] == len(results) + 1
    assert outbox.pending() == []


@pytest.mark.usefixtures("valid_token")
def test_push_ends_with_the_address_of_the_hub_only_if_it_stored_something(hub: RunningHub, tmp_path: Path) -> None:
    def push_for_people() -> str:
        words = [sys.executable, "-m", "bench", "push", str(tmp_path), "--hub", hub.url]
        return subprocess.run(words, capture_output=True, text=True, check=True).stderr

    assert push_for_people() == ""
    files.write(measured("1", [0.1]), tmp_path)
    assert push_for_people() == f"next:\n  {hub.url}/  # the results, in a browser\n"


@pytest.mark.usefixtures("valid_token")
def test_push_reports_rejected_results_and_a_missing_address(hub: RunningHub, tmp_path: Path) -> None:
    files.write(measured("1", [0.1]), tmp_path)
    hub.send(measured("1", [0.2]))
    refused = push(tmp_path, hub.url)
    assert (refused.returncode, json.loads(refused.stdout)["push"]["refused"]) == (1, 1)
    assert "A complete result is final" in refused.stderr
    without = subprocess.run(
        [sys.executable, "-m", "bench", "push", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (without.returncode, "--hub" in without.stderr) == (2, True)


def test_ids_that_start_with_a_run_id_are_the_same_in_each_attempt() -> None:
    namers: list[Callable[[], str]] = [make_namer("uid-0"), make_namer("uid-0")]
    assert [[namer() for _ in range(3)] for namer in namers] == [["uid-0-001", "uid-0-002", "uid-0-003"]] * 2
    assert len({make_namer(None)() for _ in range(9)}) == 9
