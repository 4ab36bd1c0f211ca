"""Times and memory of fits, predictions and imports."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from database import PHASES, synthetic, write_csv
from database import SYSTEM as SYNTHETIC
from measuring import Claim, ioncast, run_once

from benchdb.measurements.curves import Curve
from experiments.held_back import phase_of
from predictor.curve.prediction import predict
from predictor.model.fitting import fit_model
from predictor.model.system_model import SystemModel

MEASUREMENTS_TO_FIT = 5_000
MEASUREMENTS_IN_DATABASE = 1_000_000
PREDICTIONS = 500
PHASES_OF_APPLICATION = 3
SEED = 9366


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


def measure_costs(known: Sequence[Curve]) -> Costs:
    enough = enlarged(known)
    start = time.perf_counter()
    model = fit_model(enough)
    fit_seconds = time.perf_counter() - start
    times = prediction_times(known, SystemModel(tuple(known), model))
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


def prediction_times(known: Sequence[Curve], knowledge: SystemModel) -> list[float]:
    """Sorted seconds of predictions for different applications; the first one is left out."""
    chance = Random(SEED)  # noqa: S311
    seconds = []
    for _ in range(1 + PREDICTIONS):
        nodes = chance.choice(known).config.nodes
        able = [curve.config for curve in known if curve.config.nodes == nodes]
        phases = [
            # A number of bytes that no benchmark has.
            phase_of(config, (config.tasks or 1) * config.transfer_size * chance.randint(2, 999))
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


def table_of_costs(costs: Costs) -> Iterator[str]:
    yield "\nTimes and memory\n\n| what | measured |\n| --- | ---: |"
    what = f"a fit to {costs.measurements:,} measurements, one process"
    yield f"| {what} | {costs.fit_seconds:.1f} s |"
    what = f"a prediction of {PHASES_OF_APPLICATION} phases, warm, median (95th percentile)"
    yield f"| {what} | {costs.predict_ms:.2f} ({costs.predict_p95_ms:.2f}) ms |"
    where = f"{MEASUREMENTS_IN_DATABASE:,} measurements, peak of"
    yield f"| {where} `ioncast bench import` | {costs.import_peak_mib:,.0f} MiB |"
    yield f"| {where} `ioncast predict`, which fits | {costs.predict_peak_mib:,.0f} MiB |"


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


def count(known: Sequence[Curve]) -> int:
    return sum(len(values) for curve in known for values in curve.bandwidths_mib_s.values())
