"""The result of an upload holds everything that its page shows, in values of JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from flask import Flask, Response

from ioncast.service.running.demo_data import SYSTEM
from ioncast.service.settings import Settings
from ioncast.service.web.app import create_app
from ioncast.service.web.http.uploads import limit_in_seconds
from ioncast.service.web.pages.frame import page
from ioncast.service.web.pages.kept import result_shown
from ioncast.service.web.results import advised
from ioncast.service.web.results.result import (
    UploadForm,
    UploadResult,
    result_of_uploads,
    to_document,
)
from ioncast.service.web.sandbox.uploaded_logs import Upload
from tests.support.command import run_ioncast

pytestmark = pytest.mark.slow

LOGS = Path(__file__).resolve().parents[5] / "experiments/data/testbed/logs"


def upload(name: str) -> Upload:
    return Upload(str(LOGS / name), "my.darshan", "")


def shown(result: UploadResult) -> Response:
    return page("uploaded_run.html", result=result, shown=result_shown(result))


@pytest.mark.parametrize("name", ["hacc-io-ionodes0.darshan", "multiphase-ionodes4.darshan"])
def test_a_result_that_was_written_and_read_again_shows_the_same_page(
    app: Flask, filled: None, name: str
) -> None:
    form = UploadForm(system=SYSTEM, nodes=8, ran_with=0, available=2)
    with app.test_request_context("/predict"):
        made = result_of_uploads([upload(name)], form)
        read = UploadResult(**json.loads(json.dumps(asdict(made), allow_nan=False)))
        assert read == made
        assert shown(read).data == shown(made).data


def test_a_result_has_neither_the_number_of_the_user_nor_the_mounted_file_systems(
    app: Flask, filled: None
) -> None:
    """`darshan-parser` prints both for this log."""
    with app.test_request_context("/predict"):
        made = result_of_uploads([upload("hacc-io-ionodes0.darshan")], UploadForm(system=SYSTEM))
    document = to_document(made)
    assert "uid" not in document
    assert "mount" not in document
    assert "/proc" not in document


@pytest.mark.parametrize("form", [UploadForm(), UploadForm(system="nowhere")])
def test_a_result_without_a_prediction_says_why_and_has_the_phases(
    app: Flask, filled: None, form: UploadForm
) -> None:
    log = "hacc-io-ionodes0.darshan"
    with app.test_request_context("/predict"):
        made = result_of_uploads([upload(log)], form)
        assert shown(made).status_code == 200
    assert isinstance(made.prediction, str)
    assert made.advice == made.prediction
    assert not isinstance(made.insights, str)
    printed = json.loads(run_ioncast("phases", LOGS / log, "--format", "json").stdout)
    # Only the command looks for periods, and it knows the log by its path.
    others = {"log": "my.darshan", "period": None}
    assert [phase | others for phase in made.phases] == [phase | others for phase in printed]


@pytest.mark.parametrize("log", sorted(LOGS.iterdir()), ids=lambda log: log.stem)
def test_the_advice_of_a_result_is_that_of_the_command(
    app: Flask, filled: None, filled_location: str, log: Path
) -> None:
    """The service advises on the phases that it predicted, so the log's warnings are there."""
    words = ("--system", SYSTEM, "--nodes", "8", "--ran-with", "4", "--db", filled_location)
    printed = json.loads(run_ioncast("advise", log, *words, "--format", "json").stdout)
    form = UploadForm(system=SYSTEM, nodes=8, ran_with=4)
    with app.test_request_context("/predict"):
        made = result_of_uploads([upload(log.name)], form)
    assert isinstance(made.advice, dict)
    assert isinstance(made.prediction, dict)
    assert made.advice | {"warnings": made.prediction["warnings"]} == printed


def test_advice_that_fails_is_a_reason(
    app: Flask, filled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advised, "_ADVICE_S", 0)
    with app.test_request_context("/predict"):
        made = result_of_uploads([upload("hacc-io-ionodes0.darshan")], UploadForm(system=SYSTEM))
    assert isinstance(made.advice, str)
    assert made.advice == "advice on its 1 phase takes too much time or memory"
    assert made.prediction["curve"]
    assert isinstance(made.insights, dict)


def test_a_machine_that_needs_longer_for_uploads_gets_longer_for_advice(
    settings: Settings,
) -> None:
    limits = {}
    for upload_s in (1, 60, 600):
        other = create_app(settings.model_copy(update={"upload_s": upload_s}))
        with other.test_request_context("/predict"):
            limits[upload_s] = limit_in_seconds(10)
    assert limits == {1: 10, 60: 10, 600: 100}
