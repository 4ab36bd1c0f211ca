from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from benchdb.measurements.coverage import coverage, summarise
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import opened_database, reading, transaction
from ioncast.service.background.counting import Count
from ior_configs import IorConfig

MIB = 1 << 20
NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
YEAR_S = 365 * 86_400.0
CONFIG = IorConfig(write=True, tasks=16, nodes=8, block_size=4 * MIB, transfer_size=MIB)


def configuration(number: int) -> IorConfig:
    return replace(CONFIG, block_size=(number + 1) * MIB)


def put(path: Path, system: str, rows: list[Measurement]) -> None:
    with opened_database(path) as engine, transaction(engine, write=True) as connection:
        content = f"{system} {rows}".encode()
        told = {"file": "file", "file_format": "test", "rows": rows}
        store(connection, system=system, content=content, **told)  # type: ignore[arg-type]


def counted(path: Path, system: str) -> tuple[dict[str, object], int]:
    count, pages = Count(system, NOW, YEAR_S), 0
    with reading(path) as connection:
        while count.read_page(connection):
            pages += 1
    return asdict(count.summary()), pages


@pytest.mark.slow
@pytest.mark.parametrize("configurations", [1, 499, 500, 1201])
def test_pages_count_what_all_at_once_count(tmp_path: Path, configurations: int) -> None:
    """If only some pages have a number of I/O nodes, its cells are missing in the others."""
    path = tmp_path / "bench.sqlite"
    long_ago = "2020-01-01T00:00:00+00:00"
    rows = [
        Measurement(
            configuration(i),
            n,
            10.0 + speed,
            engine="fio" if i % 7 == 0 else "ior",
            started=long_ago if i % 5 == 0 else None,
        )
        for i in range(configurations)
        for n in ({0: (0, 64), 1200: (2, 32)}.get(i) or (0, 2))
        for speed in ((0, 0.1, 0.2, 0.3, 900) if i % 3 == 0 else (0,))
    ]
    put(path, "here", rows)
    put(path, "elsewhere", [Measurement(CONFIG, 128, 1.0, engine="ior")])
    with reading(path) as connection:
        whole = summarise(coverage(connection, "here", now=NOW, stale_after_s=YEAR_S))
    found, pages = counted(path, "here")
    assert found == asdict(whole)
    assert pages == -(-configurations // 500)


def test_a_system_without_measurements_has_nothing_to_count(tmp_path: Path) -> None:
    path = tmp_path / "bench.sqlite"
    put(path, "here", [Measurement(CONFIG, 1, 1.0, engine="ior")])
    found, pages = counted(path, "nowhere")
    assert (set(found.values()), pages) == ({0}, 0)
