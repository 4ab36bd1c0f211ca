"""Bandwidths that logs claim, and predictions that they correct, on all shipped data sets.

    python benchmarks/own_past.py [--json FILE]

Nothing depends on the machine. A missed claim does not change the exit code.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean

from measuring import Claim

from experiments.datasets import DataSet, read, shipped
from experiments.own_past import OwnPast, knowledge_of, own_pasts

# Points by which the mean error may be larger with the run than without it.
WORSE = 0.02


@dataclass(frozen=True)
class Case:
    """The log of a data set.

    Attributes
    ----------
    data : str
        The name of the data set.
    elapsed, io_time : OwnPast
        With elapsed times, and with I/O times only, as without the column.
    """

    data: str
    elapsed: OwnPast
    io_time: OwnPast


def main() -> None:
    arguments = parse_arguments()
    cases = [case for folder in shipped() for case in cases_of(read(folder))]
    print(*table(cases), sep="\n")
    found = list(claims(cases))
    print("\n| claim | measured | |\n| --- | --- | --- |")
    for claim in found:
        print(f"| {claim.text} | {claim.measured} | {'PASS' if claim.holds else 'MISS'} |")
    if arguments.json:
        content = {"cases": list(map(asdict, cases)), "claims": list(map(asdict, found))}
        arguments.json.write_text(json.dumps(content, indent=1), encoding="utf-8")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure corrections by the log's own run.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all errors there too")
    return parser.parse_args()


def cases_of(data: DataSet) -> Iterator[Case]:
    blind = {
        log: tuple(replace(phase, elapsed_seconds=None) for phase in phases)
        for log, phases in data.phases.items()
    }
    knowledge = knowledge_of(data)
    ways = own_pasts(data, knowledge), own_pasts(replace(data, phases=blind), knowledge)
    for ones in zip(*ways, strict=True):
        yield Case(data.folder.name, *ones)


def table(cases: Sequence[Case]) -> Iterator[str]:
    """Bandwidths and errors as a Markdown table."""
    numbers = sorted({n for case in cases for n in case.elapsed.without})
    heads = [f"{n} I/O node{'s' * (n != 1)}" for n in numbers]
    yield (
        "| log | MiB/s by I/O time | MiB/s by elapsed time | mean of the runs | "
        + " | ".join(heads)
        + " | mean, by I/O time | mean, by elapsed time |"
    )
    yield "| --- " + "| ---: " * (len(numbers) + 5) + "|"
    for case in cases:
        one, old = case.elapsed, case.io_time
        cells = [
            f"{one.without[n]:.1%} → {one.corrected[n]:.1%}" if n in one.without else "–"
            for n in numbers
        ]
        yield (
            f"| {case.data}: {one.log.file.removesuffix('.darshan')} | {old.claimed_mib_s:.1f}"
            f" | {one.claimed_mib_s:.1f} | {one.measured_mib_s:.1f} | {' | '.join(cells)}"
            f" | {means(old)} | {means(one)} |"
        )


def means(one: OwnPast) -> str:
    return f"{fmean(one.without.values()):.1%} → {fmean(one.corrected.values()):.1%}"


def claims(cases: Sequence[Case]) -> Iterator[Claim]:
    worst = max(case.elapsed.worse for case in cases)
    yield Claim(
        f"its own run adds at most {100 * WORSE:g} points to the mean error of any log",
        f"{100 * worst:.1f}",
        worst <= WORSE,
    )
    elapsed, io_time = (
        fmean(abs(one.claimed_mib_s / one.measured_mib_s - 1) for one in ones)
        for ones in zip(*((case.elapsed, case.io_time) for case in cases), strict=True)
    )
    yield Claim(
        "elapsed times are nearer to the mean of the application's runs than I/O times",
        f"{elapsed:.1%} instead of {io_time:.1%} off",
        elapsed < io_time,
    )


if __name__ == "__main__":
    main()
