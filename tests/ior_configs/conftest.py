from __future__ import annotations

import os
from pathlib import Path

import pytest

_SHARED_DATA = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture(scope="session")
def fixtures() -> Path:
    return Path(__file__).parent / "fixtures"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not _SHARED_DATA.is_dir():
        reason = "needs the real outputs in ../shared/data, which are not part of a clone"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return _SHARED_DATA
