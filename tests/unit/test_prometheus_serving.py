"""Metrics over HTTP: served while there is something to serve, for a last scrape after it, pushed when it is over."""

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
from bench.cli.app import app
from bench.config.settings import RunSettings, load
from bench.errors import SettingsError
from bench.model.result import Failure, Result, Stop
from bench.model.run_state import Listener, LiveProgress, LiveResult
from bench.publish.prometheus.collector import Metrics
from bench.publish.prometheus.exporter import push, served
from bench.publish.prometheus.serving import linger_seconds, serving
from bench.publish.recorder import Recorder
from bench.store import files

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory without a settings file."""
    monkeypatch.chdir(tmp_path)


def get(url: str, **headers: str) -> tuple[Any, bytes]:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
        return answer.headers, answer.read()


def moment(*results: Result) -> LiveProgress:
    return LiveProgress(
        title="cifar on cpu", phase="steady state", results=tuple(LiveResult(each, 32) for each in results)
    )


def heard(*results: Result) -> Metrics:
    metrics = Metrics()
    metrics(moment(*results))
    return metrics


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.mark.parametrize("host", ["", "127.0.0.1", "localhost"])
def test_metrics_are_served_in_the_format_that_is_asked_for(host: str) -> None:
    with served(heard(measured("1", [0.01])), host, 0) as url:
        headers, text = get(url)
        assert headers["Content-Type"].startswith("text/plain; version=")
        assert b"# TYPE devbench_steps_total counter\n" in text
        headers, text = get(url, Accept="application/openmetrics-text; version=1.0.0")
        assert headers["Content-Type"].startswith("application/openmetrics-text")
        assert b"# UNIT devbench_step_seconds seconds\n" in text
        assert text.endswith(b"# EOF\n")
        headers, packed = get(url, Accept="application/openmetrics-text; version=1.0.0", **{"Accept-Encoding": "gzip"})
        assert gzip.decompress(packed) == text


def test_all_addresses_are_served_of_both_families_where_there_are_both() -> None:
    with served(heard(measured("1", [0.01])), "", 0) as url:
        port = url.rpartition(":")[2]
        families = ["127.0.0.1", *(["[::1]"] if socket.has_dualstack_ipv6() else [])]
        texts = [get(f"http://{host}:{port}")[1] for host in families]
    assert all(b"devbench_steps_total" in text for text in texts)


def test_a_port_that_is_taken_is_told_before_anything_is_measured() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = load(metrics_port=str(port), metrics_host="127.0.0.1")
        with pytest.raises(SettingsError) as caught, serving(settings, print):
            raise AssertionError("it began all the same")
    assert str(port) in caught.value.message
    assert "--metrics-port" in caught.value.hint


def test_an_address_that_is_none_is_told() -> None:
    with (
        pytest.raises(SettingsError, match="cannot serve metrics at 192\\.0\\.2\\.1:0"),
        served(Metrics(), "192.0.2.1", 0),
    ):
        raise AssertionError("it began all the same")


def test_after_the_run_nobody_listens() -> None:
    with served(heard(measured("1", [0.01])), "127.0.0.1", 0) as url:
        get(url)
    with pytest.raises(urllib.error.URLError):
        get(url)


def test_a_client_that_hangs_up_or_says_nothing_does_not_keep_others_from_their_metrics(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with served(heard(measured("1", [0.01])), "127.0.0.1", 0) as url:
        address = ("127.0.0.1", int(url.rpartition(":")[2].partition("/")[0]))
        silent = socket.create_connection(address)
        rude = socket.create_connection(address)
        rude.sendall(b"GET /metrics HTTP/1.1\r\n")
        rude.close()
        assert b"devbench_steps_total" in get(url)[1]
        silent.close()
    assert capsys.readouterr().err == ""


def test_without_metrics_asked_for_nothing_of_prometheus_is_loaded() -> None:
    code = (
        "import sys, bench, bench.cli.app, bench.cli.list, bench.cli.run, bench.cli.explain\n"
        "from bench.publish.prometheus.serving import serving\nfrom bench.config.settings import load\n"
        "with serving(load(), len) as made: print(made, 'prometheus_client' in sys.modules)\n"
        "with serving(load(metrics_port='0', linger='0'), len) as made: print('prometheus_client' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=here())
    assert ran.stdout == "None False\nTrue\n"


def here() -> dict[str, str]:
    import bench

    return {**os.environ, "PYTHONPATH": str(Path(bench.__file__).parent.parent)}


def test_a_recorder_passes_progress_and_results_to_the_metrics_the_disk_and_its_listeners(tmp_path: Path) -> None:
    one, moments = result(samples=[], stop=None), list[LiveProgress]()
    settings = load(metrics_port="0", metrics_host="127.0.0.1", linger="0", output=tmp_path)
    with serving(settings, lambda line: None) as metrics:
        assert metrics is not None
        recorder = Recorder(settings, metrics)
        recorder.listeners.append(moments.append)
        recorder.progress(moment(one))
        one.stop = Stop(reason="target", trials=5)
        path = recorder.save(one)
        assert moments == [moment(one)]
        assert files.read(path).id == one.id
        assert metrics.collector.over


def test_metrics_linger_for_what_was_asked_or_twice_the_scrape_interval() -> None:
    assert linger_seconds(load()) == 60
    assert linger_seconds(load(scrape_interval="15s")) == 30
    assert linger_seconds(load(scrape_interval="15s", linger="2m")) == 120
    assert linger_seconds(load(linger="0")) == 0


HOUR: dict[str, Any] = {"metrics_port": "0", "metrics_host": "127.0.0.1", "linger": "1h"}
"""Whoever lingered by mistake would do so until the test's own limit."""


def told(
    settings: RunSettings, one: Result, at_linger: Callable[[str], None], end: type[BaseException] | None
) -> list[str]:
    """What is said while a run's metrics are served; `at_linger` is called with their URL once they linger."""
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if "for a last scrape" in line:
            at_linger(said[0].partition(" ")[2])

    with serving(settings, say) as metrics:
        assert metrics is not None
        metrics.progress(moment(one))
        if end is not None:
            raise end
    return said


@pytest.mark.needs("posix")
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_after_a_run_its_last_values_can_be_scraped_until_a_signal_ends_it_at_once(signum: signal.Signals) -> None:
    seen: list[bytes] = []

    def scrape_and_end(url: str) -> None:
        def work() -> None:
            seen.append(get(url)[1])
            while threading.main_thread().is_alive() and not sleeping():
                pass
            os.kill(os.getpid(), signum)

        threading.Thread(target=work).start()

    before = signal.getsignal(signum)
    said = told(load(**HOUR), result(), scrape_and_end, None)
    assert b'state="complete"} 1.0' in seen[0]
    assert said[1] == "metrics: served for another 3600 s, for a last scrape. Ctrl-C or SIGTERM ends this."
    assert signal.getsignal(signum) == before


def sleeping() -> bool:
    """Whether the main thread has come to where it waits, its handlers in place."""
    frame = sys._current_frames()[threading.main_thread().ident or 0]
    return frame.f_code.co_name == "linger" and signal.getsignal(signal.SIGTERM) != signal.SIG_DFL


def test_a_run_with_a_failed_result_shows_it_lingers_and_keeps_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    failed = result(status="failed", failure=Failure(kind="error", message="it broke"))

    def run(workloads: list[str], settings: RunSettings, *, listener: Listener, recorder: Recorder) -> Outcome:
        recorder.progress(moment(failed))
        return Outcome.of([failed], settings.threshold)

    monkeypatch.setattr(api, "run", run)
    options = ["--metrics-port", "0", "--metrics-host", "127.0.0.1", "--linger", "10ms", "--output", str(tmp_path)]
    with pytest.raises(SystemExit) as ended:
        app(["run", "cifar", *options])
    shown = capsys.readouterr()
    assert ended.value.code == 1
    assert "it broke" in shown.out
    assert "for a last scrape" in shown.err


@pytest.mark.needs("posix")
def test_a_run_whose_device_is_not_there_is_scraped_as_failed_and_keeps_its_exit_code() -> None:
    asked = ["--metrics-port", "0", "--metrics-host", "127.0.0.1", "--linger", "1h"]
    words = [sys.executable, "-m", "bench", "run", "cifar", "--backend", "cuda", *asked]
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    with subprocess.Popen(words, env=hidden, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        said: list[str] = []
        for line in run.stderr:
            said.append(line)
            if "for a last scrape" in line:
                break
        assert any(line.startswith("error: no CUDA device") for line in said), said
        url = next(line for line in said if line.startswith("metrics: http")).split()[1]
        states = [
            (each.labels["state"], each.value)
            for family in text_string_to_metric_families(get(url)[1].decode())
            for each in family.samples
            if each.name == "devbench_run_state"
        ]
        run.terminate()
        rest = run.stderr.read()
    assert ("failed", 1.0) in states
    assert run.returncode == 3, rest


@pytest.mark.parametrize(
    ("stop", "end"),
    [
        (Stop(reason="interrupted", trials=1), None),
        (None, None),
        (Stop(reason="target", trials=5), ValueError),
        (Stop(reason="target", trials=5), KeyboardInterrupt),
    ],
)
def test_nobody_waits_after_an_interruption_or_an_error(stop: Stop | None, end: type[BaseException] | None) -> None:
    try:
        told(load(**HOUR), result(stop=stop), pytest.fail, end)
    except (ValueError, KeyboardInterrupt):
        assert end is not None


def test_nobody_waits_where_nothing_is_served() -> None:
    settings = load(pushgateway=f"http://127.0.0.1:{free_port()}", linger="1h")
    assert told(settings, result(), pytest.fail, None) == []


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[str]:
    """A Pushgateway's URL."""
    address = f"127.0.0.1:{free_port()}"
    program = shutil.which("prometheus-pushgateway") or ""
    words = [program, f"--web.listen-address={address}", f"--persistence.file={tmp_path / 'kept'}"]  # Debian has one
    with (tmp_path / "log").open("w") as log:
        running = subprocess.Popen(words, stderr=log)
    try:
        while True:
            try:
                get(f"http://{address}/-/ready")
                break
            except OSError:
                assert running.poll() is None, (tmp_path / "log").read_text(encoding="utf-8")
        yield f"http://{address}"
    finally:
        running.terminate()
        running.wait()


def pushed(gateway: str) -> dict[str, dict[str, Any]]:
    """What a Pushgateway holds of ours: run: metric: labels."""
    families = text_string_to_metric_families(get(f"{gateway}/metrics")[1].decode())
    found: dict[str, dict[str, Any]] = {}
    for family in families:
        for sample in family.samples:
            if "run" in sample.labels:
                found.setdefault(sample.labels["run"], {})[sample.name] = sample.labels
    return found


@pytest.mark.needs("pushgateway")
def test_a_run_that_is_over_is_pushed_in_a_group_of_its_own_and_replaces_what_was_there(gateway: str) -> None:
    deployed = {"host": {"deployment": {"pool": "t4"}}}
    one = measured("1", [0.01], environment=deployed, workload="my/own model")
    two = measured("2", [0.02], backend="cuda", stop=None)
    point = measured("3", [0.03], purpose="sweep")
    said: list[str] = []
    with serving(load(pushgateway=gateway), said.append) as metrics:
        assert metrics is not None
        metrics.progress(moment(one, two, point))
        for each in (one, two, point, one):
            metrics.saved(each)
        assert set(pushed(gateway)) == {"1"}, "the second goes on, and the third is a sweep's point"
        two.stop = one.stop
        metrics.saved(two)
    assert said == []
    found = pushed(gateway)
    assert set(found) == {"1", "2"}
    group = {name: found["1"]["devbench_steps_total"][name] for name in ("job", "workload", "backend", "pool")}
    assert group == {"job": "devbench", "workload": "my/own model", "backend": "cpu", "pool": "t4"}
    assert found["2"]["devbench_run_info"]["loop"] == "as-written"
    assert "push_time_seconds" in found["2"], "by which the alert of a failed run ends"


def test_a_user_and_a_password_in_the_gateways_url_are_sent_as_such() -> None:
    seen: list[tuple[str, str | None]] = []

    class Gateway(http.server.BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((self.path, self.headers["Authorization"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Gateway) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        push(heard(result("1")), f"http://me:p%40ss@127.0.0.1:{server.server_port}/behind", {"run": "1"})
        thread.join()
    assert seen == [("/behind/metrics/job/devbench/run/1", "Basic " + b64encode(b"me:p@ss").decode())]


def test_a_gateway_that_is_not_there_costs_a_warning_and_nothing_else() -> None:
    url = f"http://user:geheim@127.0.0.1:{free_port()}"
    said: list[str] = []
    one = result()
    with serving(load(pushgateway=url), said.append) as metrics:
        assert metrics is not None
        metrics.progress(moment(one))
        metrics.saved(one)
    (warning,) = said
    assert warning.startswith("warning: cannot push the metrics of cifar on cpu, as-written: ")
    assert "geheim" not in warning
