"""What an engine measured on a system, in arrays: the nearest benchmark of a hundred thousand.

The arrays leave the few configurations that are as near as any but for rounding; of these
`matching.order` takes the one that `matching.match` would take of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchdb.measurements.curves import Measured
from ior_configs import IorConfig
from predictor.matching.configurations import features, kind, order

# Far more than a distance of logarithms is off by, far less than what tells two apart.
_ROUNDING = 1e-9

Kind = tuple[str, str, str, str]


@dataclass(frozen=True, eq=False)
class Kin:
    """Configurations of one kind.

    Attributes
    ----------
    measured : tuple of Measured
        The configurations.
    layouts : tuple of str
        The layout of each (see `IorConfig.layout`).
    logarithms : array of float, features by configurations
        Natural logarithms of `matching.features`; NaN is not known.
    """

    measured: tuple[Measured, ...]
    layouts: tuple[str, ...]
    logarithms: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Catalogue:
    """What one engine measured on a system.

    Attributes
    ----------
    kinds : mapping of tuple to Kin
        Configurations by their `matching.kind`.
    """

    kinds: Mapping[Kind, Kin]

    def nearest(self, wanted: IorConfig) -> Measured | None:
        """What stands for a configuration, the same as `matching.find` would take of all.

        Parameters
        ----------
        wanted : IorConfig
            The configuration.

        Returns
        -------
        Measured or None
            The nearest of its kind; None if nothing of its kind was measured.
        """
        kin = self.kinds.get(kind(wanted))
        if kin is None:
            return None
        nearest = min(
            _as_near_as_any(kin, wanted),
            key=lambda index: order(
                wanted,
                kin.measured[index],
                stonewalled=kin.measured[index].stonewalled,
                layout=kin.layouts[index],
                coverage=kin.measured[index].coverage,
                id_=kin.measured[index].id,
            ),
        )
        return kin.measured[nearest]

    def near(self, wanted: IorConfig, count: int) -> list[Measured]:
        """The nearest of its kind, at most so many, in any order; `nearest` is among them."""
        kin = self.kinds.get(kind(wanted))
        if kin is None:
            return []
        if len(kin.measured) <= count:
            return list(kin.measured)
        by_distance = np.argsort(_distances(kin, wanted), kind="stable")
        near = dict.fromkeys(kin.measured[i] for i in by_distance[: count - 1])
        return [*near | dict.fromkeys(filter(None, [self.nearest(wanted)]))]


def catalogue_of(measured: Iterable[Measured]) -> Catalogue:
    """Arrange what one engine measured on a system (see `benchdb.measurements.curves.measured`)."""
    kind_and_layout = cache(_kind_and_layout)
    kinds: dict[Kind, list[tuple[Measured, str]]] = {}
    for row in measured:
        found, layout = kind_and_layout(
            row.api,
            row.operation,
            row.file_per_process,
            row.collective,
            row.random_offsets,
            row.tasks == 1,
            row.block_size // row.transfer_size,
            row.segments,
        )
        kinds.setdefault(found, []).append((row, layout))
    return Catalogue({found: _kin(rows) for found, rows in kinds.items()})


def _kind_and_layout(
    api: str,
    operation: str,
    file_per_process: bool,
    collective: bool,
    random_offsets: int,
    alone: bool,
    requests_of_a_block: int,
    segments: int,
) -> tuple[Kind, str]:
    """Sizes and tasks matter little here, so many configurations share an answer."""
    smallest = 8
    config = IorConfig(
        api=api,
        write=operation == "write",
        read=operation == "read",
        file_per_process=file_per_process,
        collective=collective,
        random_offsets=random_offsets,
        transfer_size=smallest,
        block_size=smallest * requests_of_a_block,
        segments=segments,
        tasks=1 if alone else None,
    )
    return kind(config), config.layout


def _kin(rows: list[tuple[Measured, str]]) -> Kin:
    values = [features(row, stonewalled=row.stonewalled).values() for row, _ in rows]
    return Kin(
        measured=tuple(row for row, _ in rows),
        layouts=tuple(layout for _, layout in rows),
        logarithms=_logarithms(values),
    )


def _as_near_as_any(kin: Kin, wanted: IorConfig) -> Iterable[int]:
    """Those at the least distance but for rounding."""
    distances = _distances(kin, wanted)
    [found] = np.nonzero(distances <= distances.min() + _ROUNDING)
    return map(int, found)


def _distances(kin: Kin, wanted: IorConfig) -> NDArray[np.float64]:
    """Distance to each; infinite of unknown tasks, unless all are."""
    ours = _logarithms([features(wanted).values()])
    # fmax takes the number where the other is NaN.
    squares = np.fmax((kin.logarithms - ours) ** 2, 0)
    distances: NDArray[np.float64] = np.sqrt(squares.sum(axis=0))
    unknown_tasks = np.isnan(kin.logarithms[0])
    if not unknown_tasks.all():
        distances[unknown_tasks] = np.inf
    return distances


def _logarithms(configs: Iterable[Iterable[float | None]]) -> NDArray[np.float64]:
    """One row for each feature, one column for each configuration."""
    columns = zip(*configs, strict=True)
    logarithms: NDArray[np.float64] = np.log(np.array(list(columns), dtype=np.float64))
    return logarithms
