from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import pytest

from benchdb.measurements.curves import Curve
from ior_configs import IorConfig
from predictor.model.fitting import fit_model
from predictor.model.system_model import Model, SystemModel
from summario.phases.values import Part, Phase

MIB = 1 << 20


@pytest.fixture
def a_phase() -> Callable[..., Phase]:
    """Make a phase: by default 16 processes write 64 MiB in requests of 1 MiB, without fsync."""

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
            "fsync": "none",
            "order": "contiguous",
        }
        return Phase(**(values | told))

    return make


@pytest.fixture
def a_curve() -> Callable[..., Curve]:
    """Make a curve: by default 16 processes on 8 nodes write 4 MiB each in requests of 1 MiB."""
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


@dataclass(frozen=True)
class Synthetic:
    """A made-up system: the runs of a cell scatter around its true bandwidth by `NOISE`.

    Attributes
    ----------
    curves : tuple of Curve
        Three runs of each cell of some configurations.
    left_out : tuple of Curve
        The same for as many other configurations.
    """

    NOISE: ClassVar[float] = 0.15
    IO_NODES: ClassVar[tuple[int, ...]] = (0, 1, 2, 4, 8)

    seed: int

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        return self._measured(self._configs[::2])

    @cached_property
    def left_out(self) -> tuple[Curve, ...]:
        return self._measured(self._configs[1::2])

    def truth(self, config: IorConfig) -> dict[int, float]:
        """Logarithms of the typical bandwidth: smooth, plus a value for each pattern and cell."""
        own = random.Random(f"{self.seed} {config}")
        shared = not config.file_per_process
        request = math.log2(config.transfer_size / 65536)
        level = 4 + 0.2 * math.log2(config.tasks or 1) + 0.25 * request - 0.4 * shared
        level += own.gauss(0, 0.15)
        slope = (0.2 if shared else 0.5) - 0.04 * request
        return {
            n: level + slope * math.log2(1 + n) - 0.1 * shared * max(n - 2, 0) + own.gauss(0, 0.05)
            for n in self.IO_NODES
        }

    def runs(self, config: IorConfig, count: int, seed: int = 0) -> dict[int, tuple[float, ...]]:
        """Make `count` runs of each cell."""
        own = random.Random(f"{self.seed} {seed} {config}")
        return {
            n: tuple(math.exp(own.gauss(typical, self.NOISE)) for _ in range(count))
            for n, typical in self.truth(config).items()
        }

    @cached_property
    def _configs(self) -> list[IorConfig]:
        grid = itertools.product((16, 64, 256), (2, 8), (1, 4, 16, 64), (1, 8), (False, True))
        configs = [
            IorConfig(
                write=True,
                file_per_process=own_files,
                transfer_size=65536 * request,
                block_size=65536 * request * count,
                tasks=tasks,
                nodes=tasks // per_node,
            )
            for tasks, per_node, request, count, own_files in grid
        ]
        return random.Random(self.seed).sample(configs, 80)

    def _measured(self, configs: Sequence[IorConfig]) -> tuple[Curve, ...]:
        return tuple(
            Curve(id_, config, "ior", self.runs(config, 3))
            for id_, config in enumerate(configs, start=1)
        )


@pytest.fixture(scope="session")
def synthetic() -> Synthetic:
    return Synthetic(seed=0)


@pytest.fixture(scope="session")
def fitted(synthetic: Synthetic) -> Model:
    """Fit a model to the synthetic system."""
    return fit_model(synthetic.curves)


@pytest.fixture(scope="session")
def jumping(synthetic: Synthetic) -> SystemModel:
    """Know a system that gives large requests, of 1 MiB and more, the fourfold bandwidth.

    It was measured with requests of 64 KiB, 256 KiB, 1 MiB and 4 MiB.
    """
    curves = [
        replace(curve, bandwidths_mib_s={n: tuple(4 * one for one in runs) for n, runs in items})
        if curve.config.transfer_size >= MIB
        else curve
        for curve in synthetic.curves
        for items in (curve.bandwidths_mib_s.items(),)
    ]
    return SystemModel(tuple(curves), fit_model(curves))
