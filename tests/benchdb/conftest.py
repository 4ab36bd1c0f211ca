from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from benchdb.store import open_database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Engine]:
    engine = open_database(tmp_path / "bench.sqlite")
    yield engine
    engine.dispose()
