"""Where the real data are: `../shared/data` beside the project."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Machines are noisy: a deadline fails where nothing is wrong.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")

PROJECT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = PROJECT.parent / "shared" / "data"
    if not folder.is_dir():
        message = f"the real data are not here: {folder.name} beside the project is missing"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return folder
