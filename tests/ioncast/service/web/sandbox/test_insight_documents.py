"""The stored documents of a run keep the hints that tell what advice to try."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ioncast.advice_of_run import ADVICE_MODULES, hints_of_run
from ioncast.insights.checks.values import Thresholds
from ioncast.service.store.run_insights import MOST_DOCUMENT_BYTES
from ioncast.service.web.sandbox.insight_documents import hints_from, written
from ioncast.service.web.sandbox.reading_insights import insights_of_run
from ioncast.service.web.sandbox.uploaded_logs import Upload, run_of_uploads
from predictor.what_if.attempts import FilesOfKind, Hints
from summario.reading.log import read_log
from summario.runs.logs_of_run import run_of
from tests.support.records import posix_record, write_log

ROOT = Path(__file__).resolve().parents[5]
LOGS = [
    *sorted((ROOT / "experiments/data/testbed/logs").iterdir()),
    *sorted((ROOT / "tests/summario/fixtures").glob("*.darshan")),
]
KEPT = {FilesOfKind("read", "POSIX", "shared"): 0.25, FilesOfKind("write", "STDIO", "unique"): 1.0}
VERDICT = {"io_seconds": 6.0, "seconds_at_stake": None}
HINTS = Hints(frozenset({"P05", "I06"}), KEPT)


def checks_of(log: Path) -> dict[str, Any]:
    run = run_of_uploads([Upload(str(log), log.name, "")], ADVICE_MODULES)
    made, _ = insights_of_run(run, None, Thresholds())
    found: dict[str, Any] = json.loads(made.checks)
    return found


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_the_hints_of_a_log_are_stored_with_its_findings(log: Path) -> None:
    """Shares of 1 need no room: they mean that nothing moves twice."""
    stored = hints_from(checks_of(log))
    hints = hints_of_run(run_of([read_log(log, modules=ADVICE_MODULES)]), Thresholds())
    assert stored.codes == hints.codes
    assert stored.kept == {files: share for files, share in hints.kept.items() if share < 1}


def test_a_file_that_is_read_four_times_keeps_a_quarter_of_its_bytes(tmp_path: Path) -> None:
    reads = posix_record("/data/in", READS=8, BYTES_READ=4000, MAX_BYTE_READ=999)
    log = write_log(tmp_path / "a.darshan", nprocs=1, records=[reads])
    assert hints_from(checks_of(log)).kept == {FilesOfKind("read", "POSIX", "unique"): 0.25}


def test_documents_that_are_too_large_lose_no_hints() -> None:
    path = "/" + "x" * 4000
    files = [{"path": path, "number": 1, "share": 1.0, "words": "1"}] * 20
    finding = {"code": "P05", "files": files, "advice": []}
    made = written({}, {"findings": [finding] * 40, "verdict": VERDICT}, HINTS)
    assert len(made.checks) <= MOST_DOCUMENT_BYTES
    assert (made.io_seconds, made.stake_seconds) == (6.0, 0.0)
    document = json.loads(made.checks)
    assert len(document["findings"]) < 40
    assert hints_from(document).codes == HINTS.codes
    assert hints_from(document).kept == {FilesOfKind("read", "POSIX", "shared"): 0.25}


@pytest.mark.parametrize("codes", [frozenset[str](), frozenset({"P09"})])
def test_hints_survive_json(codes: frozenset[str]) -> None:
    made = written({}, {"findings": [], "verdict": VERDICT}, Hints(codes))
    assert hints_from(json.loads(made.checks)) == Hints(codes)
