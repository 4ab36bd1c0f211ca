"""Accuracy of predictions: errors, regret and coverage on measurements that were held back.

    python benchmarks/accuracy.py [--only PROTOCOL ...] [--json FILE]

Reads the measurements of the FORGE emulator on MareNostrum 4 and Santos Dumont, and the data sets
of experiments/data. All seeds are fixed; only times and memory differ from run to run. The claims
at the end are for information: a missed one does not change the exit code.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import protocols
from costs import claims_of_costs, count, measure_costs, table_of_costs
from judging import FEWEST_PATTERNS, GROUPINGS, Estimate, Judged, Score, by_group, score
from measuring import DATA, ioncast, machine, run_once
from protocols import MODEL, Case
from targets import claims
from threadpoolctl import threadpool_limits

from benchdb.measurements.curves import Curve, curves
from benchdb.store.database import reading
from experiments.datasets import read as read_data_set
from experiments.evaluation import named_curves
from experiments.shipped import DATA as STUDIES
from ior_configs import IorConfig

PACKAGES = ("ioncast", "scikit-learn", "scipy", "numpy")
FILES = {
    "MareNostrum 4": ("marenostrum-4.csv", "marenostrum-4-gpfs.csv"),
    "Santos Dumont": ("santos-dumont.csv", "santos-dumont-lustre.csv"),
}
WORKERS = 2
FOLDS = 10
SPLITS = 3
SMALL, SMALL_DATABASES = 20, 6
SEED = 9366
COSTS = "costs"

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


def main() -> None:
    arguments = parse_arguments()
    start = time.monotonic()
    versions = (f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    print(f"{machine()}\nPython {platform.python_version()}, {', '.join(versions)}")
    forge = read(arguments.data)
    measured = Measured(*forge.values())
    for system, known in forge.items():
        print(f"{system}: {count(known):,} measurements of {len(known)} patterns")
    chosen = {key: one for key, one in PROTOCOLS.items() if key in arguments.only}
    costs = measure_costs(measured.large) if COSTS in arguments.only else None
    scores: dict[str, dict[str, Score]] = {}
    groups: dict[str, dict[tuple[str, str], Score]] = {}
    for key, judged in run({key: one.parts(measured) for key, one in chosen.items()}):
        scores[key] = {way: score(of_way) for way, of_way in judged.items()}
        groups[key] = scores_of_groups(judged[MODEL]) if chosen[key].grouped else {}
        lines = table(f"{chosen[key].title} (`{key}`)", scores[key])
        print(*lines, *table_of_groups(groups[key]), sep="\n", flush=True)
    found = list(claims(scores, groups))
    if costs:
        print("\n".join(table_of_costs(costs)))
        found += claims_of_costs(costs)
    print("\n| claim | measured | |\n| --- | --- | --- |")
    for claim in found:
        print(f"| {claim.text} | {claim.measured} | {'PASS' if claim.holds else 'MISS'} |")
    say(f"{time.monotonic() - start:.0f} s")
    if arguments.json:
        content = {
            "machine": machine(),
            "scores": {key: by_name(of_key) for key, of_key in scores.items()},
            "groups": {
                key: by_name({f"{grouping}: {group}": one for (grouping, group), one in of.items()})
                for key, of in groups.items()
            },
            "costs": costs and asdict(costs),
            "claims": [asdict(claim) for claim in found],
        }
        arguments.json.write_text(json.dumps(content, indent=1), encoding="utf-8")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Measure how good predictions are.",
        epilog="protocols: " + "; ".join(f"{key}: {one.title}" for key, one in PROTOCOLS.items()),
    )
    parser.add_argument(
        "--data", type=Path, default=DATA / "forge", metavar="FOLDER", help="with FORGE's CSV files"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=(*PROTOCOLS, COSTS),
        default=(*PROTOCOLS, COSTS),
        metavar="PROTOCOL",
        help="run these protocols only, or costs for times and memory",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every score there too")
    arguments = parser.parse_args()
    for name in (name for names in FILES.values() for name in names):
        if not (arguments.data / name).is_file():
            parser.error(f"{arguments.data / name} does not exist; name its folder with --data")
    if not ioncast().is_file():
        parser.error(
            f"{ioncast()} does not exist; run this with the Python in which ioncast is installed"
        )
    return arguments


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def read(folder: Path) -> dict[str, tuple[Curve, ...]]:
    """Import the files as a user would, and read the curves."""
    with tempfile.TemporaryDirectory(prefix="ioncast-benchmark-") as name:
        database = Path(name) / "forge.sqlite"
        for system, names in FILES.items():
            files = [str(folder / name) for name in names]
            place = ("--system", system, "--db", str(database))
            run_once([str(ioncast()), "bench", "import", *files, *place])
        with reading(database) as connection:
            return {system: tuple(curves(connection, system)) for system in FILES}


def run(parts: Mapping[str, Sequence[Part]]) -> Iterator[tuple[str, dict[str, list[Judged]]]]:
    """Do all parts, and yield the cases of each protocol by way as soon as it is done."""
    start = time.monotonic()
    # More threads for linear algebra would only slow the other process down.
    with ProcessPoolExecutor(WORKERS, initializer=threadpool_limits, initargs=(1,)) as pool:
        begun = {key: [pool.submit(cases, part) for part in of] for key, of in parts.items()}
        for key, futures in begun.items():
            judged: dict[str, list[Judged]] = {}
            for done, future in enumerate(futures, start=1):
                for way, one in future.result():
                    judged.setdefault(way, []).append(one)
                if done % math.ceil(len(futures) / 10) == 0:
                    say(f"{key}: {done} of {len(futures)}, {time.monotonic() - start:.0f} s")
            yield key, judged


def cases(part: Part) -> list[Case]:
    return list(part())


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


def of_study(name: str, _: Measured) -> list[Part]:
    return one_by_one(tuple(named_curves(read_data_set(STUDIES / name)).values()))


def all_studies(_: Measured) -> list[Part]:
    folders = sorted(path.parent for path in STUDIES.glob("*/provenance.json"))
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
    known = measured.large
    numbers = sorted({n for curve in known for n in curve.bandwidths_mib_s if n})
    return [partial(protocols.numbers_left_out, known, [n] * len(known)) for n in numbers]


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
        f"Small databases: {SMALL} random patterns predict the others, {SMALL_DATABASES} times",
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
        "The testbed's benchmarks left out one at a time", partial(of_study, "testbed"), True
    ),
    "applications": Protocol(
        "The benchmarks of experiments/data/applications left out one at a time",
        partial(of_study, "applications"),
    ),
    "studies": Protocol("The applications of all shipped studies", all_studies),
}


def scores_of_groups(judged: Sequence[Judged]) -> dict[tuple[str, str], Score]:
    """Scores by grouping and group."""
    return {
        (grouping, group): score(members)
        for grouping, of in GROUPINGS.items()
        for group, members in sorted(by_group(judged, of).items())
    }


def table(title: str, by_way: Mapping[str, Score]) -> Iterator[str]:
    """Scores as a Markdown table."""
    yield f"\n{title}\n"
    yield (
        "| way | predictions | error, cells | error, runs | regret | 95th percentile | best hit"
        " | regret of the decision | 95th percentile | coverage |"
    )
    yield "| --- " + "| ---: " * 9 + "|"
    for way, found in by_way.items():
        some = f"{found.forecasts:,}"
        asked = some if found.forecasts == found.asked else f"{some} of {found.asked:,}"
        figures = (
            decimals(found.cell_error),
            decimals(found.run_error),
            decimals(found.regret, 4),
            decimals(found.regret_p95),
            percent(found.hit, 0),
            decimals(found.decision_regret, 4),
            decimals(found.decision_regret_p95),
            percent(found.coverage),
        )
        yield f"| {way} | {asked} | {' | '.join(figures)} |"


def table_of_groups(groups: Mapping[tuple[str, str], Score]) -> Iterator[str]:
    """Scores of ioncast by group as a Markdown table; empty without groups."""
    if not groups:
        return
    yield (
        "\n| ioncast, by | group | patterns | runs | error, cells | regret"
        " | regret of the decision | coverage |"
    )
    yield "| --- | --- " + "| ---: " * 6 + "|"
    for (grouping, group), found in groups.items():
        counts = f"{grouping} | {group} | {found.patterns} | {found.runs:,}"
        few = f"fewer than {FEWEST_PATTERNS} patterns: too few"
        figures = (
            decimals(found.cell_error),
            decimals(found.regret, 4),
            decimals(found.decision_regret, 4),
            percent(found.coverage) if found.is_enough else few,
        )
        yield f"| {counts} | {' | '.join(figures)} |"


def decimals(found: Estimate | None, digits: int = 3) -> str:
    return "–" if found is None else _with_interval(found, lambda one: f"{one:.{digits}f}")


def percent(found: Estimate | None, digits: int = 1) -> str:
    return "–" if found is None else _with_interval(found, lambda one: f"{one:.{digits}%}")


def _with_interval(found: Estimate, text: Callable[[float], str]) -> str:
    if found.low is None or found.high is None:
        return text(found.value)
    return f"{text(found.value)} ({text(found.low)}–{text(found.high)})"


def by_name(scores: Mapping[str, Score]) -> dict[str, Any]:
    return {name: asdict(one) for name, one in scores.items()}


if __name__ == "__main__":
    main()
