"""Metrics over HTTP: served during a run and for a last scrape after it, or pushed to a gateway at its end."""

from __future__ import annotations

import gzip
import http.server
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from synthetic import measured, result

from bench import api
from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair_groups
from bench.cli.app import app
from bench.config.settings import RunSettings, load
from bench.errors import SettingsError
from bench.model.failure import Failure
from bench.model.result import Result, Stop
from bench.model.run_state import LiveProgress, LiveResult
from bench.publish.prometheus.collector import Metrics
from bench.publish.prometheus.exporter import push, serve
from bench.publish.prometheus.serving import serving
from bench.publish.recorder import Recorder
from bench.store import files

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to an empty folder, so that no settings file is read."""
    monkeypatch.chdir(tmp_path)


def get(url: str, **headers: str) -> tuple[Any, bytes]:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as response:
        return response.headers, response.read()


def progress_of(*results: Result) -> LiveProgress:
    return LiveProgress(
        title="cifar on cpu", phase="steady state", results=tuple(LiveResult(result, 32) for result in results)
    )


def metrics_of(*results: Result) -> Metrics:
    metrics = Metrics()
    metrics(progress_of(*results))
    return metrics


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.parametrize("host", ["", "127.0.0.1", "localhost"])
def test_metrics_are_served_in_the_requested_format(host: str) -> None:
    with serve(metrics_of(measured("1", [0.01])), host, 0) as url:
        headers, text = get(url)
        assert headers["Content-Type"].startswith("text/plain; version=")
        assert b"# TYPE devbench_steps_total counter\n" in text
        headers, text = get(url, Accept="application/openmetrics-text; version=1.0.0")
        assert headers["Content-Type"].startswith("application/openmetrics-text")
        assert b"# UNIT devbench_step_seconds seconds\n" in text
        assert text.endswith(b"# EOF\n")
        headers, compressed = get(
            url, Accept="application/openmetrics-text; version=1.0.0", **{"Accept-Encoding": "gzip"}
        )
        assert gzip.decompress(compressed) == text


def test_by_default_metrics_are_served_on_ipv4_and_on_ipv6_if_available() -> None:
    with serve(metrics_of(measured("1", [0.01])), "", 0) as url:
        port = url.rpartition(":")[2]
        hosts = ["127.0.0.1", *(["[::1]"] if socket.has_dualstack_ipv6() else [])]
        texts = [get(f"http://{host}:{port}")[1] for host in hosts]
    assert all(b"devbench_steps_total" in text for text in texts)


def test_a_port_in_use_is_an_error_before_the_run_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        settings = load(metrics_port=str(port), metrics_host="127.0.0.1")
        with pytest.raises(SettingsError) as caught, serving(settings, print):
            pytest.fail("it is served all the same")
    assert str(port) in caught.value.message
    assert "--metrics-port" in caught.value.hint


def test_an_address_of_another_machine_is_an_error() -> None:
    with (
        pytest.raises(SettingsError, match="cannot serve metrics at 192\\.0\\.2\\.1:0"),
        serve(Metrics(), "192.0.2.1", 0),
    ):
        pytest.fail("it is served all the same")


def test_the_port_is_closed_after_the_run() -> None:
    with serve(metrics_of(measured("1", [0.01])), "127.0.0.1", 0) as url:
        get(url)
    with pytest.raises(urllib.error.URLError):
        get(url)


def test_a_client_that_hangs_up_or_stays_silent_does_not_block_other_clients(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serve(metrics_of(measured("1", [0.01])), "127.0.0.1", 0) as url:
        address = ("127.0.0.1", int(url.rpartition(":")[2].partition("/")[0]))
        silent = socket.create_connection(address)
        aborted = socket.create_connection(address)
        aborted.sendall(b"GET /metrics HTTP/1.1\r\n")
        aborted.close()
        assert b"devbench_steps_total" in get(url)[1]
        silent.close()
    assert capsys.readouterr().err == ""


def test_the_prometheus_client_is_loaded_only_if_metrics_are_served() -> None:
    code = (
        "import sys, bench, bench.cli.app, bench.cli.list, bench.cli.run, bench.cli.explain\n"
        "from bench.publish.prometheus.serving import serving\nfrom bench.config.settings import load\n"
        "with serving(load(), len) as metrics: print(metrics, 'prometheus_client' in sys.modules)\n"
        "with serving(load(metrics_port='0', linger='0'), len) as metrics: print('prometheus_client' in sys.modules)\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment()
    )
    assert process.stdout == "None False\nTrue\n"


def environment() -> dict[str, str]:
    import bench

    return {**os.environ, "PYTHONPATH": str(Path(bench.__file__).parent.parent)}


def test_a_recorder_passes_progress_and_results_to_metrics_disk_and_listeners(tmp_path: Path) -> None:
    run, reports = result(samples=[], stop=None), list[LiveProgress]()
    settings = load(metrics_port="0", metrics_host="127.0.0.1", linger="0", output=tmp_path)
    with serving(settings, lambda line: None) as metrics:
        assert metrics is not None
        recorder = Recorder(settings, metrics)
        recorder.listeners.append(reports.append)
        recorder.progress(progress_of(run))
        run.stop = Stop(reason="target", trials=5)
        path = recorder.save(run)
        assert reports == [progress_of(run)]
        assert files.read(path).id == run.id
        assert metrics.collector.all_ended


HOUR: dict[str, Any] = {"metrics_port": "0", "metrics_host": "127.0.0.1", "linger": "1h"}
"""With these settings a run that lingers by mistake exceeds the time limit of its test."""


def serve_run(
    settings: RunSettings, run: Result, at_linger: Callable[[str], None], end: type[BaseException] | None
) -> list[str]:
    """Serve the metrics of a run to its end, and return the messages.

    Args:
        settings: The settings of the run.
        run: The result of the run.
        at_linger: Called with the URL of the metrics when they start to linger.
        end: The exception that the run raises. None if it completes.
    """
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        if "for a last scrape" in line:
            at_linger(lines[0].partition(" ")[2])

    with serving(settings, say) as metrics:
        assert metrics is not None
        metrics.progress(progress_of(run))
        if end is not None:
            raise end
    return lines


def test_without_linger_the_metrics_are_served_until_the_next_scrape() -> None:
    began = time.monotonic()
    settings = load(metrics_port="0", metrics_host="127.0.0.1", scrape_interval="1h")
    lines = serve_run(settings, result(), lambda url: threading.Thread(target=get, args=[url]).start(), None)
    assert time.monotonic() - began < 60
    assert lines[1] == "metrics: served for at most 7200 s, for a last scrape. Ctrl-C or SIGTERM ends this."


def test_the_metrics_of_a_failed_run_are_served_longer_than_one_scrape_so_that_an_alert_sees_them() -> None:
    began = time.monotonic()
    settings = load(metrics_port="0", metrics_host="127.0.0.1", scrape_interval="200ms")
    failed = result(status="failed", failure=Failure(kind="error", message="it broke"))
    lines = serve_run(settings, failed, lambda url: threading.Thread(target=get, args=[url]).start(), None)
    assert time.monotonic() - began >= 0.4
    assert "for another 0.4 s" in lines[1]


def test_a_scrape_before_the_end_of_the_run_is_not_the_last_one() -> None:
    settings = load(metrics_port="0", metrics_host="127.0.0.1", scrape_interval="200ms")
    with serving(settings, lambda line: None) as metrics:
        assert metrics is not None
        metrics.progress(progress_of(result()))
        metrics.scraped(time.monotonic())
        ended = time.monotonic()
    assert time.monotonic() - ended >= 0.4


def test_a_run_that_nothing_scraped_for_two_intervals_does_not_linger() -> None:
    settings = load(metrics_port="0", metrics_host="127.0.0.1", scrape_interval="50ms")
    lines: list[str] = []
    with serving(settings, lines.append) as metrics:
        assert metrics is not None
        metrics.progress(progress_of(result()))
        began = time.monotonic()
        while time.monotonic() - began < 0.1:
            pass
    assert len(lines) == 1


@pytest.mark.needs("posix")
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_the_last_values_can_be_scraped_after_a_run_until_a_signal(signum: signal.Signals) -> None:
    texts: list[bytes] = []

    def scrape_and_end(url: str) -> None:
        def work() -> None:
            texts.append(get(url)[1])
            while threading.main_thread().is_alive() and not is_lingering():
                pass
            os.kill(os.getpid(), signum)

        threading.Thread(target=work).start()

    handler = signal.getsignal(signum)
    lines = serve_run(load(**HOUR), result(), scrape_and_end, None)
    assert b'state="complete"} 1.0' in texts[0]
    assert lines[1] == "metrics: served for another 3600 s, for a last scrape. Ctrl-C or SIGTERM ends this."
    assert signal.getsignal(signum) == handler


def is_lingering() -> bool:
    """Return whether the main thread lingers and its signal handlers are installed."""
    frame = sys._current_frames()[threading.main_thread().ident or 0]
    return frame.f_code.co_name == "linger" and signal.getsignal(signal.SIGTERM) != signal.SIG_DFL


def test_metrics_linger_after_a_run_with_a_failed_result_and_its_exit_code_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    failed = result(status="failed", failure=Failure(kind="error", message="it broke"))

    def run(workloads: list[str], settings: RunSettings, *, recorder: Recorder) -> Outcome:
        recorder.progress(progress_of(failed))
        return Outcome.of(pair_groups([failed]), settings.threshold)

    monkeypatch.setattr(api, "run", run)
    options = ["--metrics-port", "0", "--metrics-host", "127.0.0.1", "--linger", "10ms", "--output", str(tmp_path)]
    with pytest.raises(SystemExit) as error:
        app(["run", "cifar", *options])
    output = capsys.readouterr()
    assert error.value.code == 1
    assert "it broke" in output.out
    assert "for a last scrape" in output.err


@pytest.mark.needs("posix")
def test_a_run_without_its_device_is_scraped_as_failed_and_keeps_its_exit_code() -> None:
    options = ["--metrics-port", "0", "--metrics-host", "127.0.0.1", "--linger", "1h"]
    command = [sys.executable, "-m", "bench", "run", "cifar", "--backend", "cuda", *options]
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    with subprocess.Popen(command, env=hidden, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        lines: list[str] = []
        for line in run.stderr:
            lines.append(line)
            if "for a last scrape" in line:
                break
        assert any(line.startswith("error: no CUDA device") for line in lines), lines
        url = next(line for line in lines if line.startswith("metrics: http")).split()[1]
        states = [
            (sample.labels["state"], sample.value)
            for family in text_string_to_metric_families(get(url)[1].decode())
            for sample in family.samples
            if sample.name == "devbench_run_state"
        ]
        run.terminate()
        remaining = run.stderr.read()
    assert ("failed", 1.0) in states
    assert run.returncode == 3, remaining


@pytest.mark.parametrize(
    ("stop", "end"),
    [
        (Stop(reason="interrupted", trials=1), None),
        (None, None),
        (Stop(reason="target", trials=5), ValueError),
        (Stop(reason="target", trials=5), KeyboardInterrupt),
    ],
)
def test_metrics_do_not_linger_after_an_interruption_or_an_error(
    stop: Stop | None, end: type[BaseException] | None
) -> None:
    try:
        serve_run(load(**HOUR), result(stop=stop), pytest.fail, end)
    except (ValueError, KeyboardInterrupt):
        assert end is not None


def test_a_run_without_served_metrics_does_not_linger() -> None:
    settings = load(pushgateway=f"http://127.0.0.1:{free_port()}", linger="1h")
    assert serve_run(settings, result(), pytest.fail, None) == []


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[str]:
    """Yield the URL of a running Pushgateway."""
    address = f"127.0.0.1:{free_port()}"
    program = shutil.which("prometheus-pushgateway") or ""
    command = [program, f"--web.listen-address={address}", f"--persistence.file={tmp_path / 'metrics'}"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, stderr=log)
    try:
        while True:
            try:
                get(f"http://{address}/-/ready")
                break
            except OSError:
                assert process.poll() is None, (tmp_path / "log").read_text(encoding="utf-8")
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait()


def groups_of(gateway: str) -> dict[str, dict[str, Any]]:
    """Return the labels of each metric of each run that a Pushgateway has."""
    families = text_string_to_metric_families(get(f"{gateway}/metrics")[1].decode())
    groups: dict[str, dict[str, Any]] = {}
    for family in families:
        for sample in family.samples:
            if "run" in sample.labels:
                groups.setdefault(sample.labels["run"], {})[sample.name] = sample.labels
    return groups


@pytest.mark.needs("pushgateway")
def test_a_finished_run_is_pushed_once_in_its_own_group(gateway: str) -> None:
    environment = {"host": {"deployment": {"pool": "t4"}}}
    finished = measured("1", [0.01], environment=environment, workload="my/own model")
    unfinished = measured("2", [0.02], backend="cuda", stop=None)
    point = measured("3", [0.03], purpose="sweep")
    lines: list[str] = []
    with serving(load(pushgateway=gateway), lines.append) as metrics:
        assert metrics is not None
        metrics.progress(progress_of(finished, unfinished, point))
        for run in (finished, unfinished, point, finished):
            metrics.saved(run)
        assert set(groups_of(gateway)) == {"1"}, "the second run is not finished, and the third is a point of a sweep"
        unfinished.stop = finished.stop
        metrics.saved(unfinished)
    assert lines == []
    groups = groups_of(gateway)
    assert set(groups) == {"1", "2"}
    group = {name: groups["1"]["devbench_steps_total"][name] for name in ("job", "workload", "backend", "pool")}
    assert group == {"job": "devbench", "workload": "my/own model", "backend": "cpu", "pool": "t4"}
    assert groups["2"]["devbench_run_info"]["loop"] == "as-written"
    assert "push_time_seconds" in groups["2"], "the alert of a failed run ends by this time"


def test_the_user_and_password_in_the_url_of_a_gateway_are_sent_as_basic_authentication() -> None:
    requests: list[tuple[str, str | None]] = []

    class Gateway(http.server.BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            requests.append((self.path, self.headers["Authorization"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Gateway) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        push(metrics_of(result("1")), f"http://me:p%40ss@127.0.0.1:{server.server_port}/behind", {"run": "1"})
        thread.join()
    assert requests == [("/behind/metrics/job/devbench/run/1", "Basic " + b64encode(b"me:p@ss").decode())]


def test_an_unreachable_gateway_gives_a_warning_without_the_password() -> None:
    url = f"http://user:geheim@127.0.0.1:{free_port()}"
    lines: list[str] = []
    run = result()
    with serving(load(pushgateway=url), lines.append) as metrics:
        assert metrics is not None
        metrics.progress(progress_of(run))
        metrics.saved(run)
    (warning,) = lines
    assert warning.startswith("warning: cannot push the metrics of cifar on cpu, as-written: ")
    assert "geheim" not in warning
