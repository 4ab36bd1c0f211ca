"""Makes `neighbours/` anew from the version that is checked out, before it becomes the old one.

    pytest tests/scheduler_plugin/lua/record_answers.py

pytest does not run this file by itself.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.scheduler_plugin.lua.exchanges import CASES, NEIGHBOURS, answer, demonstration, question
from tests.scheduler_plugin.lua.test_job_submit_lua import FOLDER, Controller


@pytest.mark.serving
def test_record(tmp_path: Path) -> None:
    controller = Controller("lua51")
    with demonstration(tmp_path) as service:
        answers = {
            case: answer(service, question(controller, case)).decode("latin-1") for case in CASES
        }
    NEIGHBOURS.mkdir(exist_ok=True)
    (NEIGHBOURS / "answers.json").write_text(json.dumps(answers, indent=1) + "\n")
    for name in ("ioncast.lua", "ioncast_settings.lua"):
        shutil.copy(FOLDER / name, NEIGHBOURS / name)
