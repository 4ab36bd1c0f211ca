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
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

from costs import claims_of_costs, count, measure_costs, table_of_costs
from judging import Judged, Score, score, scores_of_groups
from measuring import DATA, ioncast, machine, run_once
from parts import PROTOCOLS, Measured, Part
from protocols import MODEL, Case
from shown_scores import (
    for_readme,
    table,
    table_of_claims,
    table_of_defaults,
    table_of_groups,
)
from targets import claims
from threadpoolctl import threadpool_limits

from benchdb.measurements.curves import Curve, curves
from benchdb.store.database import reading

PACKAGES = ("ioncast", "scikit-learn", "scipy", "numpy")
FILES = {
    "MareNostrum 4": ("marenostrum-4.csv", "marenostrum-4-gpfs.csv"),
    "Santos Dumont": ("santos-dumont.csv", "santos-dumont-lustre.csv"),
}
WORKERS = 2
COSTS = "costs"


def main() -> None:
    arguments = parse_arguments()
    start = time.monotonic()
    versions = (f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    print(f"{machine()}\nPython {platform.python_version()}, {', '.join(versions)}")
    forge = read(arguments.data)
    for system, known in forge.items():
        print(f"{system}: {count(known):,} measurements of {len(known)} patterns")
    measured = Measured(*forge.values())
    costs = measure_costs(measured.large) if COSTS in arguments.only else None
    scores: dict[str, dict[str, Score]] = {}
    groups: dict[str, dict[str, dict[str, Score]]] = {}
    parts = {key: one.parts(measured) for key, one in PROTOCOLS.items() if key in arguments.only}
    for key, judged in run(parts):
        protocol = PROTOCOLS[key]
        scores[key] = {way: score(of_way) for way, of_way in judged.items()}
        groups[key] = scores_of_groups(judged[MODEL]) if protocol.grouped else {}
        lines = table(f"{protocol.title} (`{key}`)", scores[key])
        lines = [*lines, *table_of_defaults(scores[key]), *table_of_groups(groups[key])]
        print(*lines, sep="\n", flush=True)
    found = [*claims(scores, groups), *(claims_of_costs(costs) if costs else ())]
    print(*for_readme(scores), *(table_of_costs(costs) if costs else ()), sep="\n")
    print(*table_of_claims(found), sep="\n")
    say(f"{time.monotonic() - start:.0f} s")
    if arguments.json:
        content = {
            "machine": machine(),
            "scores": {key: as_dicts(by_way) for key, by_way in scores.items()},
            "groups": {
                key: {grouping: as_dicts(by_group) for grouping, by_group in of_key.items()}
                for key, of_key in groups.items()
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


def as_dicts(scores: Mapping[str, Score]) -> dict[str, object]:
    return {name: asdict(one) for name, one in scores.items()}


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


if __name__ == "__main__":
    main()
