"""The way from a run to a hub: on disk first, then sent, and sent again until the hub has it, once."""

from __future__ import annotations

import itertools
import json
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
from hubs import OTHER_TOKEN, TOKEN, Served
from synthetic import explanation, ladder_results, measured

from bench.config.settings import load
from bench.errors import Interrupted, OutputError, SettingsError
from bench.model.result import Result, Stop
from bench.model.run_state import Estimate, Progress, RunState
from bench.publish.hub.client import BRIEF, PATIENT, Client, HubBusy, HubRefused, HubUnavailable, token
from bench.publish.hub.delivery import deliveries
from bench.publish.hub.outbox import Outbox
from bench.publish.hub.reporter import Reporter
from bench.publish.recorder import Recorder
from bench.store import files

pytestmark = pytest.mark.once

DONE = Stop(reason="target", trials=1)
STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


def nowhere() -> str:
    """The address of a hub that is away."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has the token, and no wish to wait long."""
    monkeypatch.setenv("DEVBENCH_HUB_TOKEN", TOKEN)
    monkeypatch.setattr("bench.publish.hub.client.BACKOFF", 0.01)


@contextmanager
def linked(folder: Path, hub: str, told: list[str], **given: Any) -> Iterator[Recorder]:
    settings = load(hub=hub, output=folder, **given)
    files.prepare(folder)
    recorder = Recorder(settings, warn=told.append)
    with recorder.reporting("cifar"):
        yield recorder


def change(outbox: Outbox, result: Result) -> None:
    with outbox.writing(outbox.folder / files.file_name(result)):
        files.write(result, outbox.folder)


def ids(hub: Served) -> list[str]:
    return sorted(each["id"] for each in hub.get("/api/v1/results")["results"])


@pytest.mark.usefixtures("known")
def test_a_run_tells_of_its_start_its_results_and_its_end(hub: Served, tmp_path: Path) -> None:
    told: list[str] = []
    with linked(tmp_path, hub.url, told, run_id="job-0", attempt="2") as link:
        started = hub.get("/api/v1/runs/job-0")
        assert (started["state"], started["run"]["attempt"], started["run"]["title"]) == ("running", 2, "cifar")
        link.save(measured("1", [0.1], status="partial", stop=None))
        assert ids(hub) == []  # a trial of several is not worth a disturbance
        link.save(measured("1", [0.1, 0.1], stop=DONE))
        assert ids(hub) == ["1"]
    ended = hub.get("/api/v1/runs/job-0")
    assert (ended["state"], ended["run"]["results"]) == ("finished", ["1"])
    assert told == [f"This run at the hub: {hub.url}/runs/{hub.get('/api/v1/runs')['runs'][0]['run']['id']}"]
    assert Outbox(tmp_path, hub.url).pending() == []
    assert list((tmp_path / "outbox" / "runs").iterdir()) == []


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("name", ["runs", "explanations"])
def test_a_folder_of_results_may_have_any_name(hub: Served, tmp_path: Path, name: str) -> None:
    with linked(tmp_path / name, hub.url, []) as link:
        link.save(measured("1", [0.1], stop=DONE))
        link.save_explanation(explanation(ladder_results()))
    assert ids(hub) == ["1"]
    assert len(hub.get("/api/v1/explanations")["explanations"]) == 1
    assert Outbox(tmp_path / name, hub.url).pending() == []


@pytest.mark.usefixtures("known")
def test_a_signal_while_the_last_is_sent_ends_the_run_and_what_was_not_sent_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: Any) -> str:
        raise Interrupted(15)

    def run() -> None:
        with linked(tmp_path, away, []) as link:
            saved.append(link.save(measured("1", [0.1], status="partial", stop=None)))
            monkeypatch.setattr(Client, "put", interrupted)  # a signal that comes while it waits to send again

    away, saved = nowhere(), list[Path]()
    with pytest.raises(Interrupted):
        run()
    assert saved[0] in [each.path for each in Outbox(tmp_path, away).pending()]


@pytest.mark.usefixtures("known")
def test_a_run_that_is_interrupted_waits_for_no_hub_that_never_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def serve() -> None:
        connection, _ = bound.accept()
        while not connection.recv(65536).endswith(b"}"):
            pass
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n{"outcome":"created"}')
        kept.append(connection)

    def run() -> None:
        with suppress(Interrupted), linked(tmp_path, hub, told) as link:
            link.save(measured("1", [0.1], status="partial", stop=Stop(reason="interrupted", trials=1)))
            raise Interrupted(15)

    told: list[str] = []
    kept: list[socket.socket] = []
    monkeypatch.setattr("bench.publish.hub.client.READ", 3600.0)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        hub = f"http://127.0.0.1:{bound.getsockname()[1]}"
        threads = [threading.Thread(target=each, daemon=True) for each in (serve, run)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    kept[0].close()
    assert told[-1].startswith("2 documents have not been sent")


@pytest.mark.usefixtures("known")
def test_an_interrupted_run_is_reported_as_interrupted(hub: Served, tmp_path: Path) -> None:
    stop = Interrupted(signal.SIGTERM)
    with pytest.raises(Interrupted), linked(tmp_path, hub.url, [], run_id="job-0"):
        raise stop
    ended = hub.get("/api/v1/runs/job-0")
    assert (ended["state"], ended["run"]["reason"]) == ("interrupted", stop.message)


@pytest.mark.usefixtures("known")
def test_a_file_that_its_writer_was_killed_before_writing_is_not_missed_and_one_that_was_removed_is(
    hub: Served, tmp_path: Path
) -> None:
    outbox = Outbox(tmp_path, hub.url)
    outbox.prepare()
    change(outbox, removed := measured("1", [0.1], stop=DONE))
    for result in (removed, measured("2", [0.1], stop=DONE)):
        with pytest.raises(KeyboardInterrupt), outbox.writing(tmp_path / files.file_name(result)):
            raise KeyboardInterrupt
    (tmp_path / files.file_name(removed)).unlink()
    told: list[str] = []
    with linked(tmp_path, hub.url, told):
        pass
    assert [each for each in told if "is gone" in each] == [
        f"{tmp_path / files.file_name(removed)} is gone, so it cannot be sent to the hub."
    ]
    assert outbox.pending() == []
    assert [path.name for path in (tmp_path / "outbox").iterdir() if path.suffix != ".writing"] == ["runs"]


@pytest.mark.usefixtures("known")
def test_the_heartbeat_carries_progress(hub: Served, tmp_path: Path) -> None:
    client = Client(hub.url, TOKEN)
    run = RunState(id="r", state="running", title="cifar", started=STARTED, devbench="0.1.0")
    sender = Reporter(client, Outbox(tmp_path, hub.url), run, lambda _: None, every=0.05)
    sender.start()
    estimate = Estimate(title="cifar", step_seconds=0.1, relative_error=0.02)
    sender.progress(Progress(title="cifar on cpu", phase="steady state", trial=4, estimates=[estimate]))
    while (now := hub.get("/api/v1/runs/r")["run"]["progress"]) is None:
        pass
    assert (now["phase"], now["trial"], now["estimates"][0]["step_seconds"]) == ("steady state", 4, 0.1)
    sender.end("finished")


@pytest.mark.usefixtures("known")
def test_while_the_hub_is_away_results_wait_and_go_with_the_next_run(hub: Served, tmp_path: Path) -> None:
    told: list[str] = []
    with linked(tmp_path, away := nowhere(), told, run_id="first") as link:
        link.save(measured("1", [0.1], stop=DONE))
        link.save(measured("2", [0.1], stop=DONE))
    assert any("cannot reach the hub" in each and "refused" in each for each in told)
    assert told[-1].startswith("3 documents have not been sent")
    for note in (tmp_path / "outbox").glob("*.note"):  # the hub comes back, here under another address
        note.write_text(note.read_text(encoding="utf-8").replace(away, hub.url), encoding="utf-8")
    with linked(tmp_path, hub.url, told, run_id="second"):
        assert ids(hub) == ["1", "2"]
    states = {each["run"]["id"]: each["state"] for each in hub.get("/api/v1/runs")["runs"]}
    assert states == {"first": "finished", "second": "finished"}
    assert [each.name for each in (tmp_path / "outbox").iterdir()] == ["runs"]


@pytest.mark.usefixtures("known")
def test_at_its_end_a_run_waits_for_a_hub_that_comes_back_as_long_as_it_is_told(
    hub: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.publish.hub.reporter.AGAIN", 0.01)
    put, tries = Client.put, itertools.count()

    def away_at_first(self: Client, kind: str, name: str, body: bytes, retries: int = 0) -> str:
        if next(tries) < 10:
            raise HubUnavailable("cannot reach the hub")
        return put(self, kind, name, body, retries)

    monkeypatch.setattr(Client, "put", away_at_first)
    with linked(tmp_path, hub.url, [], hub_wait="1h") as link:
        link.save(measured("1", [0.1], stop=DONE))
    assert ids(hub) == ["1"]
    assert Outbox(tmp_path, hub.url).pending() == []


@pytest.mark.usefixtures("known")
def test_a_run_that_was_killed_leaves_its_last_state_to_the_next(hub: Served, tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, hub.url)
    outbox.prepare()
    change(outbox, measured("1", [0.1, 0.2], status="partial"))
    with linked(tmp_path, hub.url, []):
        assert hub.get("/api/v1/results/1")["status"] == "partial"


@pytest.mark.usefixtures("known")
def test_a_change_that_comes_while_a_file_is_sent_is_sent_too(hub: Served, tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, hub.url)
    outbox.prepare()
    change(outbox, measured("1", [0.1], status="partial"))
    (before,) = outbox.pending()
    change(outbox, measured("1", [0.1, 0.2], status="partial"))
    outbox.done(before)
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
    outbox.done(pending)
    assert outbox.pending() == []


def test_a_delivery_before_the_change_leaves_the_announcement_to_its_writer(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, "http://hub")
    outbox.prepare()
    change(outbox, measured("1", [0.1]))
    other = Outbox(tmp_path, "http://hub")
    with other.writing(tmp_path / files.file_name(measured("1", [0.1]))):
        (before,) = outbox.pending()
        outbox.done(before)
        assert outbox.pending() == []
        files.write(measured("1", [0.2]), tmp_path)
        (changed,) = outbox.pending()
    outbox.done(changed)
    (again,) = outbox.pending()  # it cannot be told whether the delivery was before or after the change
    assert again.path == before.path


def test_two_writers_of_one_file_both_leave_a_note(tmp_path: Path) -> None:
    first, second = Outbox(tmp_path, "http://hub"), Outbox(tmp_path, "http://hub")
    first.prepare()
    with first.writing(tmp_path / files.file_name(measured("1", [0.1]))):
        change(second, measured("1", [0.2]))
        (pending,) = second.pending()
        second.done(pending)
        files.write(measured("1", [0.1]), tmp_path)
    assert [pending.path.name for pending in second.pending()] == [pending.path.name]


def test_an_announcement_is_removed_when_its_writer_has_changed_nothing_for_minutes(tmp_path: Path) -> None:
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


@pytest.mark.usefixtures("known")
def test_an_interruption_and_a_failure_are_told_as_such(hub: Served, tmp_path: Path) -> None:
    with pytest.raises(Interrupted), linked(tmp_path, hub.url, [], run_id="a"):
        raise Interrupted(15)
    with pytest.raises(ZeroDivisionError), linked(tmp_path, hub.url, [], run_id="b"):
        raise ZeroDivisionError
    told = {each["run"]["id"]: (each["state"], each["run"]["reason"]) for each in hub.get("/api/v1/runs")["runs"]}
    assert told["a"][0] == "interrupted"
    assert told["b"] == ("failed", "internal error of devbench")


def test_what_the_hub_refuses_is_told_and_kept(hub: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVBENCH_HUB_TOKEN", "no token that it knows")
    told: list[str] = []
    with linked(tmp_path, hub.url, told) as link:
        link.save(measured("1", [0.1], stop=DONE))
    assert any("the token is not valid" in each for each in told)
    assert "have not been sent" in told[-1]
    assert len(Outbox(tmp_path, hub.url).pending()) == 2


def test_a_token_that_is_rotated_while_a_run_goes_on_is_read_again(
    serve: Callable[..., Served], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.publish.hub.reporter.AGAIN", 0.01)
    known, file = tmp_path / "rotated", tmp_path / "token"
    for each in (known, file):
        each.write_text(f"{TOKEN}\n", encoding="utf-8")
    hub = serve(tokens_file=known)
    folder, told = tmp_path / "results", list[str]()
    with linked(folder, hub.url, told, run_id="r", hub_token_file=file, hub_wait="1h") as link:
        link.save(measured("1", [0.1], stop=DONE))
        known.write_text(f"{OTHER_TOKEN}\n", encoding="utf-8")
        link.save(measured("2", [0.1], stop=DONE))
        assert ids(hub) == ["1"]
        threading.Timer(0.1, file.write_text, [OTHER_TOKEN]).start()  # a cluster takes its time to mount it
    assert ids(hub) == ["1", "2"]
    assert hub.get("/api/v1/runs/r")["state"] == "finished"
    assert Outbox(folder, hub.url).pending() == []
    assert any("the token is not valid" in each for each in told)


def test_a_token_that_another_thread_has_renewed_meanwhile_is_used_too(
    hub: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Client._put
    client = Client(hub.url, "what it was until now", lambda: TOKEN)

    def while_the_heartbeat_renews(self: Client, kind: str, name: str, body: bytes, retries: int) -> Any:
        answer = put(self, kind, name, body, retries)
        self.token = TOKEN
        return answer

    monkeypatch.setattr(Client, "_put", while_the_heartbeat_renews)
    assert client.put("results", "1", measured("1", [0.1], stop=DONE).model_dump_json().encode()) == "created"


@pytest.mark.usefixtures("known")
def test_what_the_hub_will_never_take_is_told_once_and_not_sent_by_every_later_run(hub: Served, tmp_path: Path) -> None:
    hub.send(measured("1", [0.2]))
    told: list[str] = []
    with linked(tmp_path, hub.url, told) as link:
        path = link.save(measured("1", [0.1], stop=DONE))
    assert len([each for each in told if "that differs from this one" in each]) == 1
    assert path.exists()
    later: list[str] = []
    with linked(tmp_path, hub.url, later, run_id="second"):
        pass
    assert later == [f"This run at the hub: {hub.url}/runs/second"]


@pytest.mark.usefixtures("known")
def test_a_disk_that_is_full_at_the_end_keeps_neither_the_end_nor_what_waits_from_the_hub(
    hub: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OutputError("the disk is full")

    def run() -> None:
        with linked(tmp_path, hub.url, [], run_id="r") as link:
            change(Outbox(tmp_path, hub.url), measured("1", [0.1], stop=DONE))
            monkeypatch.setattr(files, "write_text", full)
            link.save(measured("2", [0.1], stop=DONE))

    with pytest.raises(OutputError):
        run()
    assert ids(hub) == ["1"]
    told = hub.get("/api/v1/runs/r")
    assert (told["state"], told["run"]["reason"]) == ("failed", "the disk is full")
    assert not [each for each in threading.enumerate() if "_beat" in each.name]


@pytest.mark.usefixtures("known")
def test_what_another_process_delivered_meanwhile_is_no_fault(hub: Served, tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, hub.url)
    outbox.prepare()
    outbox.keep_run_state(RunState(id="r", state="finished", title="x", started=STARTED, devbench="0"))
    client, listed = Client(hub.url, TOKEN), outbox.pending()
    assert [outcome for _, outcome in deliveries(client, outbox, outbox.pending())] == ["created"]
    assert [outcome for _, outcome in deliveries(client, outbox, listed)] == ["same"]


@pytest.mark.usefixtures("known")
def test_one_document_that_the_hub_always_puts_off_holds_up_no_other(
    hub: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, told = Client.put, list[str]()

    def but_one(self: Client, kind: str, name: str, body: bytes, retries: int = 0) -> str:
        if name == "1":
            raise HubBusy("the hub cannot take 1 now: it answered 500")
        return put(self, kind, name, body, retries)

    monkeypatch.setattr(Client, "put", but_one)
    with linked(tmp_path, hub.url, told, run_id="r") as link:
        for name in "123":
            link.save(measured(name, [0.1], stop=DONE))
    assert ids(hub) == ["2", "3"]
    assert hub.get("/api/v1/runs/r")["state"] == "finished"
    assert [each for each in told if "cannot take 1" in each] == ["the hub cannot take 1 now: it answered 500."]
    assert [each.path.stem.rsplit("-", 1)[1] for each in Outbox(tmp_path, hub.url).pending()] == ["1"]


@pytest.mark.usefixtures("known")
def test_a_hub_that_puts_off_everything_is_left_alone_after_some(
    hub: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []

    def never(self: Client, kind: str, name: str, body: bytes, retries: int = 0) -> str:
        asked.append((name, retries))
        raise HubBusy("the hub does not answer now")

    outbox = Outbox(tmp_path, hub.url)
    outbox.prepare()
    for number in range(30):
        change(outbox, measured(str(number), [0.1], stop=DONE))
    monkeypatch.setattr(Client, "put", never)
    with pytest.raises(HubBusy):
        list(deliveries(Client(hub.url, TOKEN), outbox, outbox.pending()))
    assert [retries for _, retries in asked] == [PATIENT] + [BRIEF] * 9
    assert len(outbox.pending()) == 30


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("late", [False, True])
def test_the_heartbeat_goes_on_while_what_waits_is_delivered(
    hub: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    put, beats = Client.put, threading.Semaphore(0)
    seen: list[bool] = []

    def slow(self: Client, kind: str, name: str, body: bytes, retries: int = 0) -> str:
        if kind == "results":
            seen.append(all(beats.acquire(timeout=20) for _ in range(3)))
        elif b'"running"' in body:
            beats.release()
        return put(self, kind, name, body, retries)

    outbox = Outbox(tmp_path, hub.url)
    outbox.prepare()
    run = RunState(id="r", state="running", title="cifar", started=STARTED, devbench="0.1.0")
    sender = Reporter(Client(hub.url, TOKEN), outbox, run, lambda _: None, every=0.02)
    monkeypatch.setattr(Client, "put", slow)
    if late:
        sender.start()
    change(outbox, measured("1", [0.1], stop=DONE))
    if not late:
        sender.start()
    sender.end("finished")
    assert seen == [True]
    assert (ids(hub), hub.get("/api/v1/runs/r")["state"]) == (["1"], "finished")


@pytest.mark.usefixtures("known")
def test_a_hub_that_is_busy_is_asked_again(tmp_path: Path) -> None:
    """A server of our own that answers 503 twice, then breaks off, then takes it."""
    answers = [b"HTTP/1.1 503 HubBusy\r\nContent-Length: 0\r\n\r\n"] * 2 + [b""]
    answers.append(b'HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n{"outcome":"created"}')
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    bound.listen()

    def serve() -> None:
        for answer in answers:
            connection, _ = bound.accept()
            with connection:
                while not connection.recv(65536).endswith(b"{}"):
                    pass
                connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    client = Client(f"http://127.0.0.1:{bound.getsockname()[1]}", TOKEN)
    assert client.put("results", "a", b"{}") == "created"
    thread.join()
    bound.close()
    with pytest.raises(HubUnavailable):
        client.put("results", "a", b"{}", retries=0)


@pytest.mark.usefixtures("known")
def test_an_address_that_is_no_hub_is_told(hub: Served) -> None:
    with pytest.raises(HubRefused) as caught:
        Client(hub.url + "/elsewhere", TOKEN).put("results", "a", b"{}")
    assert caught.value.message.startswith("the hub ")


def test_the_token_stands_in_a_file_or_in_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    called = [sys.executable, "-m", "bench", "push", str(folder), "--hub", hub, "--json", *words]
    return subprocess.run(called, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("known")
def test_push_sends_a_folder_with_its_explanations_once(hub: Served, tmp_path: Path) -> None:
    results = ladder_results()
    for each in results:
        files.write(each, tmp_path)
    files.write_explanation(explanation(results), tmp_path)
    outbox = Outbox(tmp_path, hub.url)
    outbox.prepare()
    outbox.keep_run_state(RunState(id="r", state="finished", title="x", started=STARTED, devbench="0"))
    first = push(tmp_path, hub.url)
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["push"]["created"] == len(results) + 2
    assert ids(hub) == sorted(each.id for each in results)
    assert hub.get("/api/v1/explanations/why")["label"] == "cifar on cpu, as-written"
    assert hub.get("/api/v1/runs/r")["state"] == "finished"
    assert json.loads(push(tmp_path, hub.url).stdout)["push"]["same"] == len(results) + 1
    assert outbox.pending() == []


@pytest.mark.usefixtures("known")
def test_push_says_what_was_not_taken_and_that_the_hub_is_away(hub: Served, tmp_path: Path) -> None:
    files.write(measured("1", [0.1]), tmp_path)
    hub.send(measured("1", [0.2]))
    refused = push(tmp_path, hub.url)
    assert (refused.returncode, json.loads(refused.stdout)["push"]["refused"]) == (1, 1)
    assert "A complete result is final" in refused.stderr
    without = subprocess.run(
        [sys.executable, "-m", "bench", "push", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (without.returncode, "--hub" in without.stderr) == (2, True)


def test_ids_after_what_asked_for_a_run_are_the_same_at_each_attempt() -> None:
    made: list[Callable[[], str]] = [files.namer("uid-0"), files.namer("uid-0")]
    assert [[new() for _ in range(3)] for new in made] == [["uid-0-001", "uid-0-002", "uid-0-003"]] * 2
    assert len({files.namer(None)() for _ in range(9)}) == 9
