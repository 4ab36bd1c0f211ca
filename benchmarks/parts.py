"""The protocols that `accuracy.py` runs, each as computations that different processes can do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

import protocols
from protocols import Case

from benchdb.measurements.curves import Curve
from experiments.datasets import read, shipped
from experiments.evaluation import named_curves
from experiments.shipped import DATA
from ior_configs import IorConfig

FOLDS = 10
SPLITS = 3
SMALL, SMALL_DATABASES = 20, 6
SEED = 9366

Part = Callable[[], Iterator[Case]]


@dataclass(frozen=True)
class Measured:
    """The measured patterns of both systems of FORGE."""

    large: tuple[Curve, ...]
    small: tuple[Curve, ...]


@dataclass(frozen=True)
class Protocol:
    """A way to hold measurements back.

    Attributes
    ----------
    title : str
        The heading of its table.
    parts : callable
        Makes the computations that different processes can do.
    grouped : bool
        Whether a table by group follows.
    """

    title: str
    parts: Callable[[Measured], list[Part]]
    grouped: bool = False


def halves(protocol: Callable[..., Iterator[Case]], measured: Measured) -> list[Part]:
    return [
        partial(protocol, measured.large, split, side) for split in range(SPLITS) for side in (0, 1)
    ]


def folds(known: Sequence[Curve]) -> list[list[int]]:
    """Random tenths of the patterns, by their places."""
    order = Random(SEED).sample(range(len(known)), len(known))  # noqa: S311
    return [order[fold::FOLDS] for fold in range(FOLDS)]


def ten_folds(measured: Measured) -> list[Part]:
    known = measured.large
    leave_out = partial(protocols.patterns_left_out, known, past=True, fixed=True)
    return [partial(leave_out, fold) for fold in folds(known)]


def applications_of_folds(measured: Measured) -> list[Part]:
    known = measured.large
    return [
        partial(protocols.new_applications, known, fold, seed)
        for seed, fold in enumerate(folds(known))
    ]


def values_left_out(
    of: Callable[[IorConfig], float], measured: Measured, *, past: bool = False
) -> list[Part]:
    """Leave each value of a property out."""
    values = [of(curve.config) for curve in measured.large]
    places = [[i for i, own in enumerate(values) if own == one] for one in sorted({*values})]
    leave_out = partial(protocols.patterns_left_out, measured.large, past=past)
    return [partial(leave_out, members) for members in places]


def one_by_one(known: Sequence[Curve]) -> list[Part]:
    return [partial(protocols.patterns_left_out, known, [i]) for i in range(len(known))]


def of_santos_dumont(measured: Measured) -> list[Part]:
    of_other_system = partial(protocols.by_other_model, measured.small, measured.large)
    return [*one_by_one(measured.small), of_other_system]


def benchmarks_of(study: str) -> tuple[Curve, ...]:
    return tuple(named_curves(read(DATA / study)).values())


def all_studies(_: Measured) -> list[Part]:
    folders = shipped()
    return [
        partial(protocols.of_study, folder, [other for other in folders if other != folder])
        for folder in folders
    ]


def small_databases(measured: Measured) -> list[Part]:
    """All but a few random patterns left out."""
    known = measured.large
    parts: list[Part] = []
    for seed in range(SMALL_DATABASES):
        kept = Random(seed).sample(range(len(known)), SMALL)  # noqa: S311
        left_out = [i for i in range(len(known)) if i not in kept]
        parts.append(partial(protocols.patterns_left_out, known, left_out))
    return parts


def numbers_of_all(measured: Measured) -> list[Part]:
    """Each number of I/O nodes left out for all patterns; direct access tells nothing of them."""
    systems = {
        "": measured.large,
        ", Santos Dumont": measured.small,
        ", testbed": benchmarks_of("testbed"),
    }
    return [
        partial(protocols.numbers_left_out, known, [n] * len(known), of)
        for of, known in systems.items()
        for n in sorted({n for curve in known for n in curve.bandwidths_mib_s if n})
    ]


def numbers_of_some(measured: Measured) -> list[Part]:
    """Each number left out for some patterns: in turn a different one for each pattern."""
    known = measured.large
    return [
        partial(
            protocols.numbers_left_out,
            known,
            [
                sorted(curve.bandwidths_mib_s)[(place + turn) % len(curve.bandwidths_mib_s)]
                for place, curve in enumerate(known)
            ],
        )
        for turn in range(max(len(curve.bandwidths_mib_s) for curve in known))
    ]


PROTOCOLS = {
    "folds": Protocol(
        "Ten folds: a tenth of the patterns left out, hyperparameters refitted", ten_folds, True
    ),
    "halves": Protocol(
        "Few repetitions: half of each cell's predict the other half",
        partial(halves, protocols.few_repetitions),
        True,
    ),
    "processes": Protocol(
        "A process count left out", partial(values_left_out, lambda config: config.tasks or 0)
    ),
    "per-node": Protocol(
        "A number of processes per node left out",
        partial(values_left_out, lambda config: (config.tasks or 0) / (config.nodes or 1)),
    ),
    "requests": Protocol(
        "A request size left out",
        partial(values_left_out, lambda config: config.transfer_size, past=True),
        True,
    ),
    "small": Protocol(
        f"Small databases: {SMALL} random patterns predict the others, {SMALL_DATABASES} times;"
        " their priors come from the same machine",
        small_databases,
        True,
    ),
    "numbers": Protocol("A number of I/O nodes that was never measured", numbers_of_all, True),
    "numbers-of-some": Protocol(
        "A number of I/O nodes that was not measured for a fifth of the patterns",
        numbers_of_some,
        True,
    ),
    "known-applications": Protocol(
        "Applications of patterns in the database, by phases (half the repetitions)",
        partial(halves, protocols.known_applications),
    ),
    "new-applications": Protocol(
        "Applications of left-out patterns, by phases (ten folds)", applications_of_folds
    ),
    "santos-dumont": Protocol(
        "Santos Dumont alone, patterns left out one at a time", of_santos_dumont, True
    ),
    "elsewhere": Protocol(
        "Santos Dumont's patterns by MareNostrum 4's model and a few of their cells",
        lambda measured: [partial(protocols.elsewhere, measured.small, measured.large)],
    ),
    "testbed": Protocol(
        "The testbed's benchmarks left out one at a time",
        lambda _: one_by_one(benchmarks_of("testbed")),
        True,
    ),
    "applications": Protocol(
        "The benchmarks of experiments/data/applications left out one at a time",
        lambda _: one_by_one(benchmarks_of("applications")),
    ),
    "studies": Protocol("The applications of all shipped studies", all_studies),
}
