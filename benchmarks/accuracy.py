"""Accuracy of predictions: errors, regret and coverage on measurements that were held back.

    python benchmarks/accuracy.py [--json FILE]

Reads the measurements of the FORGE emulator on MareNostrum 4 and Santos Dumont. All seeds are
fixed; only times and memory differ from run to run. The claims at the end are for information: a
missed one does not change the exit code.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import protocols
from database import PHASES, synthetic, write_csv
from database import SYSTEM as SYNTHETIC
from judging import Judged, Score, score
from measuring import DATA, Claim, ioncast, machine, run_once
from protocols import MODEL, PAST, WITHOUT, Case, at
from threadpoolctl import threadpool_limits

from benchdb.measurements.curves import Curve, curves
from benchdb.store.database import reading
from predictor.composition.prediction import predict
from predictor.model.fitting import fit_model
from predictor.model.system_model import Knowledge

PACKAGES = ("ioncast", "scikit-learn", "scipy", "numpy")
FILES = {
    "MareNostrum 4": ("marenostrum-4.csv", "marenostrum-4-gpfs.csv"),
    "Santos Dumont": ("santos-dumont.csv", "santos-dumont-lustre.csv"),
}
WORKERS = 2
SPLITS = 3
SEED = 9366
MEASUREMENTS_TO_FIT = 5_000
MEASUREMENTS_IN_DATABASE = 1_000_000
PREDICTIONS = 500
PHASES_OF_APPLICATION = 3

Scores = dict[str, dict[str, Score]]
Job = tuple[Callable[..., Iterator[Case]], tuple[Any, ...]]


@dataclass(frozen=True)
class Costs:
    """Times and memory.

    Attributes
    ----------
    measurements, fit_seconds : int, float
        Number of measurements that a model was fitted to, and the time of the fit.
    predict_ms, predict_p95_ms : float
        Median and 95th percentile of the time of an application's prediction.
    import_peak_mib, predict_peak_mib : float
        Peak memory of an import into a large database, and of a prediction that fits a model.
    """

    measurements: int
    fit_seconds: float
    predict_ms: float
    predict_p95_ms: float
    import_peak_mib: float
    predict_peak_mib: float


def main() -> None:
    arguments = parse_arguments()
    start = time.monotonic()
    versions = (f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    print(f"{machine()}\nPython {platform.python_version()}, {', '.join(versions)}")
    measured = read(arguments.data)
    for system, known in measured.items():
        print(f"{system}: {count(known):,} measurements of {len(known)} patterns")
    costs = measure_costs(measured["MareNostrum 4"])
    scores = run(jobs(measured["MareNostrum 4"], measured["Santos Dumont"]))
    for protocol, by_way in scores.items():
        print("\n".join(table(protocol, by_way)))
    print("\n".join(table_of_costs(costs)))
    found = [*claims(scores), *claims_of_costs(costs)]
    print("\n| claim | measured | |\n| --- | --- | --- |")
    for claim in found:
        verdict = "PASS" if claim.holds else "MISS"
        print(f"| {claim.text} | {claim.measured} | {verdict} |")
    say(f"{time.monotonic() - start:.0f} s")
    if arguments.json:
        arguments.json.write_text(as_json(scores, costs, found), encoding="utf-8")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure how good predictions are.")
    parser.add_argument(
        "--data", type=Path, default=DATA / "forge", metavar="FOLDER", help="with FORGE's CSV files"
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


def count(known: Sequence[Curve]) -> int:
    return sum(len(values) for curve in known for values in curve.bandwidths_mib_s.values())


def jobs(known: Sequence[Curve], small: Sequence[Curve]) -> list[Job]:
    """The computations to spread over processes, the longest first."""
    return [
        (protocols.elsewhere, (small, known)),
        *((protocols.applications_left_out, (known, fold)) for fold in range(protocols.FOLDS)),
        *(
            (protocols.group_left_out, (known, protocol, value))
            for protocol, of in protocols.GROUPS.items()
            for value in sorted({of(curve.config) for curve in known})
        ),
        *(
            (protocols.few_repetitions, (known, split, side))
            for split in range(SPLITS)
            for side in (0, 1)
        ),
        (protocols.alone, (small, known)),
        *((protocols.pattern_left_out, (known, index)) for index in range(len(known))),
    ]


def run(todo: Sequence[Job]) -> Scores:
    """Run all computations and score them by protocol and way to predict."""
    judged: dict[str, dict[str, list[Judged]]] = {}
    # More threads for linear algebra would only slow the other process down.
    with ProcessPoolExecutor(WORKERS, initializer=threadpool_limits, initargs=(1,)) as pool:
        begun = [pool.submit(cases, *job) for job in todo]
        for done, future in enumerate(begun, start=1):
            for protocol, way, one in future.result():
                judged.setdefault(protocol, {}).setdefault(way, []).append(one)
            say(f"{done} of {len(todo)} done")
    return {
        protocol: {way: score(of_way) for way, of_way in judged[protocol].items()}
        for protocol in protocols.PROTOCOLS
    }


def cases(protocol: Callable[..., Iterator[Case]], arguments: tuple[Any, ...]) -> list[Case]:
    return list(protocol(*arguments))


def measure_costs(known: Sequence[Curve]) -> Costs:
    say("times and memory")
    enough = enlarged(known)
    start = time.perf_counter()
    model = fit_model(enough)
    fit_seconds = time.perf_counter() - start
    times = prediction_times(known, Knowledge(tuple(known), model))
    imported, asked = peaks_mib()
    return Costs(
        measurements=count(enough),
        fit_seconds=fit_seconds,
        predict_ms=1000 * times[len(times) // 2],
        predict_p95_ms=1000 * times[-1 - len(times) // 20],
        import_peak_mib=imported,
        predict_peak_mib=asked,
    )


def enlarged(known: Sequence[Curve]) -> list[Curve]:
    """Add copies with another request size, up to the number of measurements in the claim."""
    found = list(known)
    for curve in known:
        if count(found) >= MEASUREMENTS_TO_FIT:
            break
        size = 3 * curve.config.transfer_size // 2
        config = replace(curve.config, transfer_size=size, block_size=size * 64)
        found.append(replace(curve, id=len(found) + 1, config=config))
    return found


def prediction_times(known: Sequence[Curve], knowledge: Knowledge) -> list[float]:
    """Sorted seconds of predictions for different applications; the first one is left out."""
    chance = Random(SEED)  # noqa: S311
    seconds = []
    for _ in range(1 + PREDICTIONS):
        nodes = chance.choice(known).config.nodes
        able = [curve.config for curve in known if curve.config.nodes == nodes]
        phases = [
            # A number of bytes that no benchmark has.
            protocols.phase_of(
                config, (config.tasks or 1) * config.transfer_size * chance.randint(2, 999)
            )
            for config in chance.sample(able, PHASES_OF_APPLICATION)
        ]
        start = time.perf_counter()
        predict(phases, knowledge, system="FORGE", nodes=nodes)
        seconds.append(time.perf_counter() - start)
    return sorted(seconds[1:])


def peaks_mib() -> tuple[float, float]:
    """Peaks of an import into a large database, and of a prediction that fits a model first."""
    with tempfile.TemporaryDirectory(prefix="ioncast-benchmark-") as name:
        folder = Path(name)
        table, phases = folder / "measurements.csv", folder / "phases.csv"
        write_csv(table, synthetic(MEASUREMENTS_IN_DATABASE // 10))
        phases.write_text(PHASES, encoding="utf-8")
        place = ("--system", SYNTHETIC, "--db", str(folder / "large.sqlite"))
        imported = run_once([str(ioncast()), "bench", "import", str(table), *place])
        asked = run_once([str(ioncast()), "predict", str(phases), *place])
    return imported.peak_kib / 1024, asked.peak_kib / 1024


def table(protocol: str, by_way: Mapping[str, Score]) -> Iterator[str]:
    """Scores as a Markdown table."""
    yield f"\n{protocol[0].upper()}{protocol[1:]}\n"
    yield (
        "| way | predictions | error, cells | error, runs | regret | 95th percentile | best hit"
        " | regret, 5 % tolerance | coverage |"
    )
    yield "| --- " + "| ---: " * 8 + "|"
    for way, found in by_way.items():
        coverage = "–" if found.coverage is None else f"{found.coverage:.1%}"
        errors = f"{decimal(found.cell_error)} | {decimal(found.run_error)}"
        yield (
            f"| {way} | {found.forecasts:,} | {errors} | {found.regret:.4f}"
            f" | {found.regret_p95:.3f} | {found.hit:.0%} | {found.frugal_regret:.4f}"
            f" | {coverage} |"
        )


def decimal(error: float | None) -> str:
    return "–" if error is None else f"{error:.3f}"


def table_of_costs(costs: Costs) -> Iterator[str]:
    yield "\nTimes and memory\n\n| what | measured |\n| --- | ---: |"
    what = f"a fit to {costs.measurements:,} measurements, one process"
    yield f"| {what} | {costs.fit_seconds:.1f} s |"
    what = f"a prediction of {PHASES_OF_APPLICATION} phases, warm, median (95th percentile)"
    yield f"| {what} | {costs.predict_ms:.2f} ({costs.predict_p95_ms:.2f}) ms |"
    where = f"{MEASUREMENTS_IN_DATABASE:,} measurements, peak of"
    yield f"| {where} `ioncast bench import` | {costs.import_peak_mib:,.0f} MiB |"
    yield f"| {where} `ioncast predict`, which fits | {costs.predict_peak_mib:,.0f} MiB |"


def claims(scores: Scores) -> Iterator[Claim]:
    limits = {
        protocols.HALVES: (0.16, 0.040),
        protocols.LEFT_OUT: (0.135, 0.024),
        protocols.PROCESSES: (0.17, 0.025),
        protocols.PER_NODE: (0.17, 0.025),
        protocols.REQUESTS: (0.45, 0.027),
    }
    for protocol, (error, regret) in limits.items():
        found = scores[protocol][MODEL]
        yield at_most(f"{protocol}: error of cells", found.cell_error, error)
        yield at_most(f"{protocol}: regret", found.regret, regret)
        yield covers(protocol, found.coverage)
    yield from of_patterns_kept_aside(scores[protocols.LEFT_OUT][MODEL])
    yield from of_the_past(scores)
    yield from of_applications(scores)


def of_patterns_kept_aside(found: Score) -> Iterator[Claim]:
    """Claims for new patterns, checked here on the patterns that were left out."""
    what = "for patterns kept aside, here left out"
    yield at_most(f"{what}: error of cells", found.cell_error, 0.13)
    yield at_most(f"{what}: error of runs", found.run_error, 0.235)
    yield Claim(f"{what}: the best is hit in at least 80 %", f"{found.hit:.1%}", found.hit >= 0.8)
    yield at_most(f"{what}: regret", found.regret, 0.015)
    yield at_most(f"{what}: 95th percentile of regret", found.regret_p95, 0.10)


def of_the_past(scores: Scores) -> Iterator[Claim]:
    """Claims for one earlier run: errors on the other cells with it and without it."""
    for protocol, limit in ((protocols.REQUESTS, 0.5), (protocols.LEFT_OUT, 1.02)):
        for n in (1, 2, 8):
            found = scores[protocol]
            with_run, without = (found[at(way, n)].cell_error or 0 for way in (PAST, WITHOUT))
            nodes = f"{n} I/O node{'s' * (n > 1)}"
            yield Claim(
                f"{protocol}: with one run at {nodes} at most {limit:g} × the error",
                f"{with_run / without:.3f} × ({without:.3f} → {with_run:.3f})",
                with_run <= limit * without,
            )


def of_applications(scores: Scores) -> Iterator[Claim]:
    """Claims for applications: with several phases no worse than with one."""
    for protocol in (protocols.KNOWN_APPLICATIONS, protocols.NEW_APPLICATIONS):
        one, *more = scores[protocol].values()
        error = fmean(found.cell_error or 0 for found in more)
        what = f"{protocol}: error of cells with 2 to 6 phases, as with one"
        yield at_most(what, error, one.cell_error or 0)
        covered = fmean(found.coverage or 0 for found in scores[protocol].values())
        yield covers(f"{protocol}: with 1 to 6 phases", covered)


def claims_of_costs(costs: Costs) -> Iterator[Claim]:
    yield Claim(
        f"a fit to {costs.measurements:,} measurements in less than 60 s",
        f"{costs.fit_seconds:.1f} s",
        costs.fit_seconds < 60,
    )
    yield Claim(
        "a prediction from a warm process in less than 5 ms at the median",
        f"{costs.predict_ms:.2f} ms",
        costs.predict_ms < 5,
    )
    peak = max(costs.import_peak_mib, costs.predict_peak_mib) * 1.048576
    yield Claim(
        f"{MEASUREMENTS_IN_DATABASE:,} measurements in less than 2 GB",
        f"{peak:,.0f} MB",
        peak < 2000,
    )


def at_most(what: str, value: float | None, limit: float) -> Claim:
    measured = 0.0 if value is None else value
    return Claim(f"{what}, at most {limit:.3g}", f"{measured:.4f}", measured <= limit)


def covers(what: str, coverage: float | None) -> Claim:
    measured = coverage or 0.0
    return Claim(
        f"{what}: p10 to p90 hold 75 to 85 % of the runs",
        f"{measured:.1%}",
        0.75 <= measured <= 0.85,
    )


def as_json(scores: Scores, costs: Costs, found: Sequence[Claim]) -> str:
    content = {
        "machine": machine(),
        "scores": {
            protocol: {way: asdict(one) for way, one in by_way.items()}
            for protocol, by_way in scores.items()
        },
        "costs": asdict(costs),
        "claims": [asdict(claim) for claim in found],
    }
    return json.dumps(content, indent=1)


if __name__ == "__main__":
    main()
