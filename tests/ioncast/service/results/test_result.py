"""The result of an upload holds everything that its page shows, in values of JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from flask import Flask, Response

from ioncast.service.api.predictions import PredictionOfLog
from ioncast.service.pages.frame import page
from ioncast.service.pages.shown_result import result_shown
from ioncast.service.results.result import Result, result_of_uploads
from ioncast.service.running.demo_data import SYSTEM
from ioncast.service.sandbox.uploaded_logs import Upload
from ioncast_base.errors import UnknownNameError

LOGS = Path(__file__).resolve().parents[4] / "experiments/data/testbed/logs"


def upload(name: str) -> Upload:
    return Upload(str(LOGS / name), "my.darshan", "")


def shown(result: Result) -> Response:
    return page("predicted.html", shown=result_shown(result))


@pytest.mark.parametrize("name", ["hacc-io-ionodes0.darshan", "multiphase-ionodes4.darshan"])
def test_a_result_that_was_written_and_read_again_shows_the_same_page(
    app: Flask, filled: None, name: str
) -> None:
    form = PredictionOfLog(system=SYSTEM, nodes=8, ran_with=0, available=2)
    with app.test_request_context("/predict"):
        made = result_of_uploads([upload(name)], form)
        read = Result(**json.loads(json.dumps(asdict(made), allow_nan=False)))
        assert read == made
        assert shown(read).data == shown(made).data


def test_a_question_without_an_answer_has_no_result(app: Flask, filled: None) -> None:
    with app.test_request_context("/predict"), pytest.raises(UnknownNameError):
        result_of_uploads([upload("hacc-io-ionodes0.darshan")], PredictionOfLog(system="nowhere"))
