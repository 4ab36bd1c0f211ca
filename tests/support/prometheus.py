"""A real Prometheus for tests, and the alerts and the dashboard that ioncast ships."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from tests.support.services import use
from tests.support.serving import PATIENCE_S, free_port, wait_for

PROJECT = Path(__file__).resolve().parents[2]
DEPLOY = PROJECT / "ioncast" / "service" / "running" / "deploy"
ALERTS = DEPLOY / "alerts.yml"
PANELS = json.loads((DEPLOY / "grafana.json").read_text())["panels"]
QUERIES = [target["expr"] for panel in PANELS for target in panel.get("targets", ())]
GROUPS = yaml.safe_load(ALERTS.read_text())["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus."""

    port: int

    def ask(self, path: str, **fields: str) -> Any:
        """The data of an answer of its HTTP API."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        with closing(connection):
            connection.request("GET", f"/api/v1/{path}?{urlencode(fields)}")
            answer = json.loads(connection.getresponse().read())
        assert answer["status"] == "success", (fields, answer)
        return answer["data"]

    def series(self, query: str) -> list[dict[str, Any]]:
        """The series that a query gives now."""
        found: list[dict[str, Any]] = self.ask("query", query=query)["result"]
        return found

    def firing(self) -> set[str]:
        """The names of the alerts that fire now."""
        alerts = self.ask("alerts")["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}


def documented_job() -> dict[str, Any]:
    """The scrape job that docs/service.md shows."""
    text = (PROJECT / "docs" / "service.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```yaml\n(scrape_configs:\n.*?)```", text, re.DOTALL)
    [job] = yaml.safe_load(block)["scrape_configs"]
    return dict(job)


@contextmanager
def running_prometheus(folder: Path, jobs: Sequence[Mapping[str, Any]]) -> Iterator[Prometheus]:
    """Start Prometheus in a folder with the shipped alerts; it ends afterwards.

    It looks every second, and its alerts fire at once instead of after minutes.
    """
    use("prometheus")
    groups = [
        {**group, "rules": [{**rule, "for": "0s"} for rule in group["rules"]]} for group in GROUPS
    ]
    (folder / "alerts.yml").write_text(yaml.safe_dump({"groups": groups}))
    intervals = dict.fromkeys(("scrape_interval", "scrape_timeout", "evaluation_interval"), "1s")
    settings = {"global": intervals, "rule_files": ["alerts.yml"], "scrape_configs": [*jobs]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
    port = free_port()
    command = ["prometheus", "--log.level=warn", "--config.file=prometheus.yml"]
    command += ["--storage.tsdb.path=data", f"--web.listen-address=127.0.0.1:{port}"]
    prometheus = Prometheus(port)
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        wait_for(lambda: prometheus.ask("status/runtimeinfo"), "Prometheus")
        yield prometheus
    finally:
        process.kill()
        process.wait()
