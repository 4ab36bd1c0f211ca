"""Cost of a large benchmark database: import, size, one curve, the nearest of many configurations.

    python benchmarks/database.py [--measurements N] [--repeat N]

The measurements are synthetic: configurations with a fixed seed, each with 0, 1, 2, 4 and 8
I/O nodes, twice. Each figure is compared with a plain way to the same answer, measured in the same
run. The claims at the end are for information: a missed one does not change the exit code.
"""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import platform
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TypeVar

import pandas as pd
from measuring import ROOT, Claim, Run, floor, ioncast, machine, run_once
from sqlalchemy import Connection

from benchdb.measurements.curves import Curve, Measured, curves, curves_of_config, measured
from benchdb.store.database import open_database, transaction
from ior_configs import IorConfig
from predictor.matching.nearest import Catalogue, catalogue_of_rows, distance

IOR_OUTPUT = ROOT / "tests" / "ior_configs" / "fixtures" / "two-runs-different.txt"
OUTPUT_BYTES = 134_000_000
PACKAGES = ("ioncast", "SQLAlchemy", "numpy", "pandas")
SYSTEM = "synthetic"
IO_NODES = (0, 1, 2, 4, 8)
REPETITIONS = 2
SEED = 9366
MIB = 1 << 20
FIRST_RUN = 1_750_000_000
COLUMNS = (
    *("command", "operation", "tasks", "nodes", "io_nodes", "bandwidth_mib_s", "bytes"),
    *("time_s", "started", "engine", "engine_version"),
)
# Values that put all configurations into one kind of I/O.
ALIKE = {"api": "POSIX", "file_per_process": True, "collective": False, "random_offsets": 0}
PHASES = """\
job,start,end,type,rank,bytes,time,api,requests,spatiality,files,n_files,mode_processes
1,0,1,write,all,6710886400,1.0,POSIX,6400,contiguous,shared,1,100
1,2,3,read,all,67108864,1.0,MPIIO,64,collective,shared,1,64
1,4,5,write,all,1048576000,1.0,POSIX,64000,contiguous,unique,500,500
"""
# Import the same file into a table without types, keys or checks.
PANDAS_IMPORT = """
import sqlite3, sys
import pandas as pd
with sqlite3.connect(sys.argv[2]) as connection:
    pd.read_csv(sys.argv[1]).to_sql("measurements", connection, index=False)
"""
# Predict from all curves of the system, which are read and compared one by one.
PLAIN_PREDICTION = """
import sys
from benchdb.measurements.curves import curves
from benchdb.store.database import open_database, transaction
from predictor.curve.prediction import predict
from predictor.model.system_model import Knowledge
from summario.phases.tables import read_csv
with transaction(open_database(sys.argv[2])) as connection:
    known = curves(connection, sys.argv[3])
phases, knowledge = read_csv(sys.argv[1]), Knowledge(tuple(known))
print(predict(phases, knowledge, system=sys.argv[3], nodes=16).best)
"""

_T = TypeVar("_T")


@dataclass(frozen=True)
class Sample:
    """Sorted seconds of one way to an answer."""

    way: str
    seconds: list[float]

    @property
    def p99(self) -> float:
        return self.seconds[-1 - len(self.seconds) // 100]


def main() -> None:
    arguments = parse_arguments()
    versions = (f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    print(f"{machine()}\nPython {platform.python_version()}, {', '.join(versions)}")
    configurations = synthetic(arguments.measurements // (len(IO_NODES) * REPETITIONS))
    rows = len(configurations) * len(IO_NODES) * REPETITIONS
    print(f"{rows:,} measurements of {len(configurations):,} configurations, seed {SEED}")
    with tempfile.TemporaryDirectory(prefix="ioncast-benchmark-") as name:
        folder = Path(name)
        table = folder / "measurements.csv"
        write_csv(table, configurations)
        print(floor())
        measure_output(folder, arguments.repeat)
        database = measure_import(folder, table, rows, arguments.repeat)
        measure_prediction(folder, database, arguments.repeat)
        with transaction(open_database(database)) as connection:
            found = [
                *measure_curves(connection, table, configurations, arguments.lookups),
                *measure_nearest(connection, arguments.lookups),
            ]
    print("\nClaims, by the 99th percentiles")
    print(*found, sep="\n")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what a large database costs.")
    numbers = {
        "measurements": (1_000_000, "measurements in the database, a multiple of 10"),
        "repeat": (3, "imports and predictions of each kind"),
        "lookups": (2_000, "curves and configurations that are looked up"),
    }
    for name, (default, what) in numbers.items():
        parser.add_argument(
            f"--{name}", type=int, default=default, metavar="N", help=f"{what} ({default:,})"
        )
    arguments = parser.parse_args()
    for name in numbers:
        if getattr(arguments, name) < (10 if name == "measurements" else 1):
            parser.error(f"--{name} is too small")
    if not ioncast().is_file():
        parser.error(
            f"{ioncast()} does not exist; run this with the Python in which ioncast is installed"
        )
    return arguments


def synthetic(count: int) -> list[IorConfig]:
    """Distinct random configurations of all kinds of I/O, in realistic ranges."""
    chance = seeded(0)
    found: dict[IorConfig, None] = {}
    while len(found) < count:
        found[random_config(chance)] = None
    return list(found)


def seeded(number: int) -> random.Random:
    return random.Random(SEED + number)  # noqa: S311


def random_config(chance: random.Random) -> IorConfig:
    api = chance.choice(("POSIX", "POSIX", "MPIIO"))
    write = chance.random() < 0.6
    nodes = chance.randint(1, 256)
    transfer = 2 ** chance.randint(12, 26)
    blocks = 2 ** chance.randint(1, 10)
    strided = chance.random() < 0.3
    return IorConfig(
        api=api,
        write=write,
        read=not write,
        file_per_process=not strided and chance.random() < 0.5,
        collective=api == "MPIIO" and chance.random() < 0.5,
        random_offsets=int(not strided and chance.random() < 0.2),
        transfer_size=transfer,
        block_size=transfer if strided else transfer * blocks,
        segments=blocks if strided else 1,
        tasks=nodes * chance.choice((1, 2, 4, 8, 16, 24, 32, 48, 64, 128)),
        nodes=nodes,
    )


def write_csv(path: Path, configurations: Iterable[IorConfig]) -> None:
    """Write measurements as a site could provide them, with the runs in random order."""
    chance = seeded(0)
    runs = [
        (config, io_nodes)
        for config in configurations
        for io_nodes in IO_NODES
        for _ in range(REPETITIONS)
    ]
    chance.shuffle(runs)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        lines = {config: config.command_line(launcher=True) for config in configurations}
        for second, (config, io_nodes) in enumerate(runs):
            bandwidth = chance.lognormvariate(6, 1)
            moved = (config.tasks or 1) * config.bytes_per_process
            started = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(FIRST_RUN + second))
            what = (lines[config], config.operation, config.tasks, config.nodes, io_nodes)
            result = (bandwidth, moved, moved / MIB / bandwidth, started, "ior", "4.0.0")
            writer.writerow((*what, *result))


def measure_import(folder: Path, table: Path, rows: int, repeat: int) -> Path:
    """Import in both ways in turn; return the database of the last turn."""
    ours, plain = folder / "ioncast.sqlite", folder / "pandas.sqlite"
    place = ("--system", SYSTEM, "--db", str(ours))
    commands = {
        ours: [str(ioncast()), "bench", "import", str(table), *place],
        plain: [sys.executable, "-c", PANDAS_IMPORT, str(table), str(plain)],
    }
    runs: dict[Path, list[Run]] = {path: [] for path in commands}
    for _ in range(repeat):
        for path, command in commands.items():
            path.unlink(missing_ok=True)
            runs[path].append(run_once(command))
    labels = {ours: "`ioncast bench import`", plain: "pandas.read_csv + to_sql"}
    base = seconds_of(runs[ours])
    print(f"\nImport of {table.stat().st_size / MIB:,.0f} MiB of CSV, new processes\n")
    print("| way | s, min (median) | ratio | rows/s | peak MiB | file MiB | bytes/measurement |")
    print("| --- " + "| ---: " * 6 + "|")
    for path, label in labels.items():
        seconds, size = seconds_of(runs[path]), path.stat().st_size
        print(
            f"| {label} | {spread(seconds)} | {ratio(seconds, base)} | {rows / seconds[0]:,.0f}"
            f" | {peak_mib(runs[path]):,.0f} | {size / MIB:,.0f} | {size / rows:.0f} |"
        )
    return ours


def measure_output(folder: Path, repeat: int) -> None:
    """Import a large output of IOR, of runs with a line for each request (-vvvv)."""
    output, database = folder / "ior.txt", folder / "output.sqlite"
    text = IOR_OUTPUT.read_text().partition("\nIOR-")[0] + "\n"
    above, row, below = re.split(r"(?m)^(write  .*\n)", text, maxsplit=1)
    line = "Task 3 access: write 1048576 bytes at offset {} of /scratch/t\n"
    requests = "".join(line.format(offset << 20) for offset in range(20_000))
    with output.open("w") as file:
        while file.tell() < OUTPUT_BYTES:
            file.write(f"{above}{requests}{row}{below}")
    place = ("--system", SYSTEM, "--io-nodes", "0", "--db", str(database))
    commands = {
        "`ioncast bench import`": [str(ioncast()), "bench", "import", str(output), *place],
        "awk, the bandwidths only": ["awk", "/^write +[0-9]/ {print $2}", str(output)],
    }
    runs: dict[str, list[Run]] = {way: [] for way in commands}
    for _ in range(repeat):
        database.unlink(missing_ok=True)
        for way, command in commands.items():
            runs[way].append(run_once(command))
    base = seconds_of(runs["`ioncast bench import`"])
    print(f"\nImport of {output.stat().st_size / MIB:,.0f} MiB of IOR's text, new processes\n")
    print("| way | s, min (median) | ratio | peak MiB |\n| --- | ---: | ---: | ---: |")
    for way, found in runs.items():
        seconds = seconds_of(found)
        peak = peak_mib(found)
        print(f"| {way} | {spread(seconds)} | {ratio(seconds, base)} | {peak:,.0f} |")


def seconds_of(runs: Iterable[Run]) -> list[float]:
    return sorted(run.whole_seconds for run in runs)


def peak_mib(runs: Iterable[Run]) -> float:
    return max(run.peak_kib for run in runs) / 1024


def spread(seconds: list[float]) -> str:
    return f"{seconds[0]:.3f} ({median(seconds):.3f})"


def ratio(seconds: list[float], base: list[float]) -> str:
    return f"{seconds[0] / base[0]:.2f}"


def measure_curves(
    connection: Connection, table: Path, configurations: list[IorConfig], count: int
) -> Iterator[Claim]:
    wanted = seeded(1).choices(configurations, k=count)
    frame = pd.read_csv(table)
    exact = timed(
        "`curves_of_config`", wanted, lambda config: curves_of_config(connection, SYSTEM, config)
    )
    samples = [
        exact,
        timed("pandas, a mask over the table", wanted[:9], lambda config: mask(frame, config)),
        timed("reading all curves", wanted[:1], lambda _: curves(connection, SYSTEM)),
    ]
    print_samples("The curve of a configuration, the database open", samples)
    yield below("a curve by its exact configuration", exact, 0.001)


def mask(frame: pd.DataFrame, config: IorConfig) -> pd.DataFrame:
    line = config.command_line(launcher=True)
    return frame[(frame["command"] == line) & (frame["nodes"] == config.nodes)]


def measure_nearest(connection: Connection, count: int) -> Iterator[Claim]:
    wanted = other_configurations(count)
    rows = measured(connection, SYSTEM)
    catalogue = catalogue_of_rows(rows)
    nearest = timed("`Catalogue.nearest`", wanted, catalogue.nearest)
    # The worst case for a catalogue: all configurations are of one kind.
    writes = [replace(config, write=True, read=False, **ALIKE) for config in wanted]
    of_one_kind = catalogue_of_rows(row._replace(operation="write", **ALIKE) for row in rows)
    alike = timed("`Catalogue.nearest`, all of one kind", writes, of_one_kind.nearest)
    known = curves(connection, SYSTEM)
    samples = [
        nearest,
        alike,
        timed("`distance`, one after the other", wanted[:9], lambda c: plain_nearest(c, known)),
        timed("building a catalogue, once", [SYSTEM] * 3, lambda system: load(connection, system)),
    ]
    print_samples(f"The nearest of {len(rows):,} configurations", samples)
    yield below(f"the nearest of {len(rows):,} configurations", nearest, 0.005)
    yield below(f"the nearest of {len(rows):,} configurations of one kind", alike, 0.005)


def plain_nearest(wanted: IorConfig, known: list[Curve]) -> Curve:
    of_kind = (curve for curve in known if curve.config.kind == wanted.kind)
    return min(of_kind, key=lambda curve: distance(wanted, curve.config))


def load(connection: Connection, system: str) -> Catalogue[Measured]:
    return catalogue_of_rows(measured(connection, system))


def other_configurations(count: int) -> list[IorConfig]:
    """Configurations with sizes that no benchmark has, as phases of applications give them."""
    chance = seeded(2)
    found = []
    for _ in range(count):
        config = random_config(chance)
        transfer = 8 * chance.randint(1, 2**22)
        requests = config.requests_per_process
        strided = config.segments > 1
        found.append(
            replace(
                config,
                transfer_size=transfer,
                block_size=transfer if strided else transfer * requests,
            )
        )
    return found


def measure_prediction(folder: Path, database: Path, repeat: int) -> None:
    phases = folder / "phases.csv"
    phases.write_text(PHASES, encoding="utf-8")
    place = ("--system", SYSTEM, "--db", str(database))
    plain = (str(phases), str(database), SYSTEM)
    commands = {
        "`ioncast predict`": [str(ioncast()), "predict", str(phases), "--nodes", "16", *place],
        "all curves read and compared": [sys.executable, "-c", PLAIN_PREDICTION, *plain],
    }
    runs: dict[str, list[Run]] = {way: [] for way in commands}
    for _ in range(repeat):
        for way, command in commands.items():
            runs[way].append(run_once(command))
    base = seconds_of(next(iter(runs.values())))
    print("\nA prediction for three phases, new processes\n")
    print("| way | s, min (median) | ratio | peak MiB |\n| --- | ---: | ---: | ---: |")
    for way, found in runs.items():
        seconds = seconds_of(found)
        print(f"| {way} | {spread(seconds)} | {ratio(seconds, base)} | {peak_mib(found):,.0f} |")


def timed(way: str, wanted: Iterable[_T], answer: Callable[[_T], object]) -> Sample:
    """Time each answer; one more answer before that fills caches."""
    wanted = list(wanted)
    answer(wanted[0])
    seconds = []
    for one in wanted:
        start = time.perf_counter()
        answer(one)
        seconds.append(time.perf_counter() - start)
    return Sample(way, sorted(seconds))


def print_samples(title: str, samples: list[Sample]) -> None:
    """The samples as a Markdown table, with ratios of the medians to the first."""
    base = median(samples[0].seconds)
    print(f"\n{title}\n\n| way | times | ms, min | median | 99th percentile | ratio |")
    print("| --- " + "| ---: " * 5 + "|")
    for sample in samples:
        middle = median(sample.seconds)
        shown = (sample.seconds[0], middle, sample.p99)
        cells = [f"{1000 * seconds:,.3f}" for seconds in shown]
        print(
            f"| {sample.way} | {len(sample.seconds):,} | {' | '.join(cells)}"
            f" | {middle / base:,.2f} |"
        )


def below(what: str, sample: Sample, limit: float) -> Claim:
    return Claim(
        f"{what}, in less than {1000 * limit:g} ms",
        f"{1000 * sample.p99:.3f} ms (median {1000 * median(sample.seconds):.3f} ms)",
        sample.p99 < limit,
    )


if __name__ == "__main__":
    main()
