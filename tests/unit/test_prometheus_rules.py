"""Recording and alerting rules: each is valid and has a test, and each alert is tested both firing and silent."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from pages import ROOT

pytestmark = [pytest.mark.once, pytest.mark.needs("prometheus")]

RULES = sorted((ROOT / "charts" / "devbench" / "rules").glob("*.yaml"))
TESTS = sorted((ROOT / "tests" / "rules").glob("*.yaml"))


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([shutil.which("promtool") or "", *arguments], capture_output=True, text=True)


def test_promtool_accepts_the_rules() -> None:
    assert len(RULES) == 2
    process = promtool("check", "rules", "--lint=all", "--lint-fatal", *map(str, RULES))
    assert process.returncode == 0, process.stdout + process.stderr


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_the_tests_of_the_rules_pass(path: Path) -> None:
    process = promtool("test", "rules", str(path))
    assert process.returncode == 0, process.stdout + process.stderr


def test_the_prometheus_configuration_of_compose_is_valid_and_has_all_rules(tmp_path: Path) -> None:
    mounted = "/etc/prometheus/rules/*.yaml"
    text = (ROOT / "observe" / "prometheus.yaml").read_text(encoding="utf-8")
    assert f"rule_files: [{mounted}]" in text
    assert "./charts/devbench/rules:/etc/prometheus/rules:ro" in (ROOT / "compose.yaml").read_text(encoding="utf-8")
    path = tmp_path / "prometheus.yaml"
    path.write_text(text.replace(mounted, str(RULES[0].parent / "*.yaml")), encoding="utf-8")
    process = promtool("check", "config", "--lint=all", "--lint-fatal", str(path))
    assert process.returncode == 0, process.stdout + process.stderr
    assert "2 rule files found" in process.stdout


def test_every_rule_has_a_test_and_every_alert_is_tested_firing_and_silent() -> None:
    rules = "".join(path.read_text(encoding="utf-8") for path in RULES)
    tests = "".join(path.read_text(encoding="utf-8") for path in TESTS)
    for name in re.findall(r"- record: (\S+)", rules):
        assert f"expr: {name}\n" in tests
    alerts = re.findall(r"- alert: (\S+)", rules)
    assert len(alerts) == 6
    for name in alerts:
        cases = re.findall(rf"alertname: {name}\n +eval_time: \S+\n( +exp_alerts:\n)?", tests)
        assert any(cases), f"{name} is never tested firing"
        assert name == "DevbenchRunThrottled" or not all(cases), f"{name} is never tested silent"


def test_no_rule_uses_a_label_that_depends_on_the_setup_of_prometheus() -> None:
    for path in RULES:
        assert not re.findall(r"\b(job|instance|pod|namespace)\b *=", path.read_text(encoding="utf-8"))
