"""The real fio, as a fixture."""

import os
import shutil

import pytest


@pytest.fixture(scope="session")
def fio() -> str:
    """The path of fio."""
    found = shutil.which("fio")
    if found is None:
        message = "fio is not installed"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return found
