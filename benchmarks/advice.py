"""The gain that `ioncast advise` predicts, against measured curves of both patterns.

    python benchmarks/advice.py [--data FOLDER] [--json FILE]

Reads the testbed's benchmarks, and those of the FORGE emulator on MareNostrum 4. A pair is two
measured patterns that differ in one property. All seeds are fixed, and nothing depends on the
machine. A missed claim does not change the exit code.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from random import Random
from statistics import fmean, median

from accuracy import read
from measuring import DATA, Claim
from threadpoolctl import threadpool_limits

from benchdb.measurements.curves import Curve
from experiments.changed_patterns import (
    HIDDEN,
    SIZE_AND_BYTES,
    Judged,
    halves,
    judge,
    left_out,
    pairs,
)
from experiments.datasets import read as read_data_set
from experiments.evaluation import named_curves
from experiments.shipped import TESTBED
from predictor.model.fitting import fit_model
from predictor.model.system_model import SystemModel

TARGET = 0.15
FOLDS = 10
SEED = 9366
WORKERS = 2


def main() -> None:
    arguments = parse_arguments()
    testbed = tuple(named_curves(read_data_set(TESTBED)).values())
    judged = [*left_out("testbed", testbed), *halves("testbed", testbed)]
    if arguments.data.is_dir():
        forge = read(arguments.data)["MareNostrum 4"]
        with ProcessPoolExecutor(WORKERS) as pool:
            folds = pool.map(in_folds, *zip(*((forge, fold) for fold in range(FOLDS)), strict=True))
            judged += [one for found in folds for one in found]
        judged += halves("MareNostrum 4", forge)
    print(*table(judged), sep="\n")
    print(*pairs_table([one for one in judged if one.system == "testbed"]), sep="\n")
    found = list(claims(judged))
    print("\n| claim | measured | |\n| --- | --- | --- |")
    for claim in found:
        print(f"| {claim.text} | {claim.measured} | {'PASS' if claim.holds else 'MISS'} |")
    if arguments.json:
        content = {"pairs": list(map(asdict, judged)), "claims": list(map(asdict, found))}
        arguments.json.write_text(json.dumps(content, indent=1), encoding="utf-8")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure how good predicted gains are.")
    parser.add_argument(
        "--data", type=Path, default=DATA / "forge", metavar="FOLDER", help="with FORGE's CSV files"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every pair there too")
    return parser.parse_args()


def in_folds(curves: Sequence[Curve], fold: int) -> list[Judged]:
    """Hide a tenth of the patterns at once, and predict the pairs that lost some."""
    order = Random(SEED).sample(range(len(curves)), len(curves))  # noqa: S311
    hidden = {curves[i].id for i in order[fold::FOLDS]}
    rest = tuple(curve for curve in curves if curve.id not in hidden)
    with threadpool_limits(1):
        knowledge = SystemModel(rest, fit_model(rest))
        return [
            judge("MareNostrum 4", HIDDEN[lost], pair, knowledge)
            for pair in pairs(curves)
            if (lost := (pair.today.id in hidden) + 2 * (pair.changed.id in hidden))
        ]


def table(judged: Sequence[Judged]) -> Iterator[str]:
    yield (
        "| system | changed | hidden | pairs | not known | error of the gain | median | noise floor"
        " | error of the saved time | in the interval | right if sure |"
    )
    yield "| --- " * 3 + "| ---: " * 8 + "|"
    groups: dict[tuple[str, str, str], list[Judged]] = {}
    for one in judged:
        groups.setdefault((one.system, one.change, one.hidden), []).append(one)
    for group, ones in sorted(groups.items()):
        yield f"| {' | '.join([*group, *figures(ones)])} |"


def figures(ones: Sequence[Judged]) -> list[str]:
    known = [one for one in ones if one.errors]
    counts = [f"{len(ones):,}", f"{len(ones) - len(known):,}"]
    if not known:
        return [*counts, *["–"] * 6]
    means = [fmean(one.errors.values()) for one in known]
    floors = [fmean(one.floor.values()) for one in known if one.floor]
    times = [one.time_error for one in known if one.time_error is not None]
    cells = [inside for one in known for inside in one.covered.values()]
    rights = [one.right for one in known if one.right is not None]
    return [
        *counts,
        f"{fmean(means):.1%}",
        f"{median(means):.1%}",
        f"{fmean(floors):.1%}" if floors else "–",
        f"{fmean(times):.1%}",
        f"{fmean(cells):.0%}",
        f"{sum(rights)} of {len(rights)}",
    ]


def pairs_table(judged: Sequence[Judged]) -> Iterator[str]:
    yield "\n| changed | today | changed to | " + " | ".join(HIDDEN) + " |"
    yield "| --- " * 3 + "| ---: " * len(HIDDEN) + "|"
    rows: dict[tuple[str, str, str], dict[str, list[Judged]]] = {}
    for one in judged:
        row = rows.setdefault((one.change, one.today, one.changed), {})
        row.setdefault(one.hidden, []).append(one)
    for names, row in rows.items():
        cells = []
        for hidden in HIDDEN:
            found = [fmean(one.errors.values()) for one in row[hidden] if one.errors]
            kinds = ", ".join(sorted({one.matched or "unknown" for one in row[hidden]}))
            cells.append(f"{fmean(found):.1%} ({kinds})" if found else "not known")
        yield f"| {' | '.join([*names, *cells])} |"


def claims(judged: Sequence[Judged]) -> Iterator[Claim]:
    for system in dict.fromkeys(one.system for one in judged):
        for change in dict.fromkeys(one.change for one in judged if one.system == system):
            means = [
                fmean(one.errors.values())
                for one in judged
                if one.errors and (one.system, one.change) == (system, change)
            ]
            if change == SIZE_AND_BYTES or not means:
                continue
            text = f"{system}, {change}: shown gains are off by at most {TARGET:.0%} (mean)"
            yield Claim(text, f"{fmean(means):.1%} of {len(means)}", fmean(means) <= TARGET)


if __name__ == "__main__":
    main()
