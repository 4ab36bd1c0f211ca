from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from benchdb.curves import Curve
from ior_configs import IorConfig
from summario.phases import Part, Phase

MIB = 1 << 20


@pytest.fixture
def a_phase() -> Callable[..., Phase]:
    """Make a phase of 16 processes that write 64 MiB in 1 MiB requests, or as told."""

    def make(*parts: tuple[int, int], **told: Any) -> Phase:
        made = tuple(Part(requests, moved) for requests, moved in parts or ((64, 64 * MIB),))
        shared = told.get("file_access", "shared") == "shared"
        values: dict[str, Any] = {
            "job": 1,
            "start_seconds": 0.0,
            "end_seconds": 1.0,
            "operation": "write",
            "rank": None,
            "processes": 16,
            "nprocs": 16,
            "bytes": sum(part.bytes for part in made),
            "io_time_seconds": 1.0,
            "api": "POSIX",
            "requests": sum(part.requests for part in made),
            "spatiality": "contiguous",
            "file_access": "shared",
            "n_files": 1 if shared else 16,
            "mode_processes": 16 if shared else 1,
            "parts": made,
        }
        return Phase(**(values | told))

    return make


@pytest.fixture
def a_curve() -> Callable[..., Curve]:
    """Make a curve of 16 tasks on 8 nodes that write 4 MiB each in 1 MiB requests."""
    count = iter(range(1, 1000))

    def make(cells: Mapping[int, Sequence[float]] | None = None, **told: Any) -> Curve:
        values: dict[str, Any] = {
            "write": True,
            "block_size": 4 * MIB,
            "transfer_size": MIB,
            "tasks": 16,
            "nodes": 8,
        }
        if told.get("read"):
            values["write"] = False
        engine, id_ = told.pop("engine", "ior"), told.pop("id", next(count))
        bandwidths = {n: tuple(v) for n, v in (cells or {0: (50.0,)}).items()}
        return Curve(id_, IorConfig(**(values | told)), engine, bandwidths)

    return make
