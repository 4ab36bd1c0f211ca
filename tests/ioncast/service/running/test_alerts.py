"""Alerts and dashboard are well formed; test_check_slurm.py asks their queries at a Prometheus."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.prometheus import ALERTS, PANELS, QUERIES, RULES

PAIRS = {"(": ")", "{": "}", "[": "]"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_is_complete(rule: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"Ioncast[A-Za-z]+", rule["alert"])
    assert re.fullmatch(r"[0-9]+[smhd]", rule.get("for", "1m"))
    assert rule["labels"] in ({"severity": "warning"}, {"severity": "critical"})
    assert set(rule["annotations"]) == {"summary", "description"}


@pytest.mark.parametrize("query", [*(rule["expr"] for rule in RULES), *QUERIES])
def test_a_query_has_balanced_brackets(query: str) -> None:
    opened: list[str] = []
    for character in re.sub(r'"[^"]*"', "", query):
        if character in PAIRS:
            opened.append(PAIRS[character])
        elif character in PAIRS.values():
            assert opened.pop() == character
    assert opened == []


def test_panels_do_not_overlap() -> None:
    places = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in PANELS
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]
    assert len(places) == len(set(places))
    assert {x for x, _ in places} == set(range(24))


def test_names_are_not_repeated() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(names) == len(set(names))


def test_promtool_takes_all_queries(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    subprocess.run([promtool, "check", "rules", ALERTS], check=True)
    shown = [{"record": f"panel:{n}", "expr": query} for n, query in enumerate(QUERIES)]
    rules = tmp_path / "dashboard.yml"
    rules.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": shown}]}))
    subprocess.run([promtool, "check", "rules", rules], check=True)
