"""Recording and alerting rules: valid, told apart from what is fine, and each tried."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from pages import ROOT

pytestmark = [pytest.mark.once, pytest.mark.needs("prometheus")]

RULES = sorted((ROOT / "charts" / "devbench" / "rules").glob("*.yaml"))
TRIED = ROOT / "tests" / "rules" / "rules.yaml"


def promtool(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([shutil.which("promtool") or "", *words], capture_output=True, text=True)


def test_promtool_finds_nothing_wrong_with_the_rules() -> None:
    assert len(RULES) == 2
    ran = promtool("check", "rules", "--lint=all", "--lint-fatal", *map(str, RULES))
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_each_rule_says_what_it_should_of_series_made_up_for_it() -> None:
    ran = promtool("test", "rules", str(TRIED))
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_prometheus_takes_the_configuration_of_compose_with_all_rules(tmp_path: Path) -> None:
    mounted = "/etc/prometheus/rules/*.yaml"
    given = (ROOT / "observe" / "prometheus.yaml").read_text(encoding="utf-8")
    assert f"rule_files: [{mounted}]" in given
    assert "./charts/devbench/rules:/etc/prometheus/rules:ro" in (ROOT / "compose.yaml").read_text(encoding="utf-8")
    here = tmp_path / "prometheus.yaml"
    here.write_text(given.replace(mounted, str(RULES[0].parent / "*.yaml")), encoding="utf-8")
    ran = promtool("check", "config", "--lint=all", "--lint-fatal", str(here))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 rule files found" in ran.stdout


def test_no_rule_is_untried_and_each_alert_is_once_silent_and_once_heard() -> None:
    rules = "".join(path.read_text(encoding="utf-8") for path in RULES)
    tried = TRIED.read_text(encoding="utf-8")
    for name in re.findall(r"- record: (\S+)", rules):
        assert f"expr: {name}\n" in tried
    alerts = re.findall(r"- alert: (\S+)", rules)
    assert len(alerts) == 6
    for name in alerts:
        cases = re.findall(rf"alertname: {name}\n +eval_time: \S+\n( +exp_alerts:\n)?", tried)
        assert any(cases), f"{name} is never heard"
        assert name == "DevbenchRunThrottled" or not all(cases), f"{name} is never silent"


def test_no_rule_names_what_only_one_kind_of_prometheus_has() -> None:
    for path in RULES:
        assert not re.findall(r"\b(job|instance|pod|namespace)\b *=", path.read_text(encoding="utf-8"))
