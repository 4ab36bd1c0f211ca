"""First causes that ioncast and Drishti name for logs whose right first cause is known.

    python benchmarks/causes.py [--drishti PROGRAM] [--json FILE]

benchmarks/causes/causes.csv lists the logs; those that are absent are left out, and counted. The
names of causes are those of CAUSES, and several in a row of the table are all right. A missed goal
does not change the exit code.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import darshan
from measuring import ROOT, Claim, ioncast, machine

TABLE = ROOT / "benchmarks" / "causes" / "causes.csv"
PYDARSHAN = Path(darshan.__file__).parent / "examples" / "example_logs"
NOTHING = "nothing"
CAUSES = {
    "small requests": ("P05", "P06", "P15", "P16"),
    "random": ("P11", "P13"),
    "unaligned": ("P07", "P08"),
    "metadata": ("P17", "I02"),
    "stdio": ("S01",),
    "redundant traffic": ("P09", "P10"),
    "imbalance": ("P18", "P19", "P21", "P22", "D01", "D02", "D03", "I08", "I09"),
    "independent calls": ("M02", "M03", "I07"),
    "phases": ("I05",),
    "stripes": ("I03", "I04"),
    "blocking calls": ("M06", "M07"),
    "aggregators": ("M08", "M09"),
    "no MPI-IO": ("M01",),
}
CAUSE_OF = {code: cause for cause, codes in CAUSES.items() for code in codes}
# Drishti prints a code's level in colour only.
DRISHTI_WARNS = ("P09", "P10", "M01", "M06", "M07")
SECONDS = 120


@dataclass(frozen=True)
class Answer:
    """The causes that a program names, the first first, and whether any of them is major."""

    log: str
    program: str
    causes: tuple[str, ...]
    is_major: bool
    seconds: float


def main() -> None:
    arguments = parse_arguments()
    known = list(read_table())
    present = {log: right for log, path, right in known if path.is_file()}
    print(f"{machine()}\n{len(present)} of {len(known)} logs\n")
    programs = {"ioncast": ask_ioncast}
    if arguments.drishti:
        programs["drishti"] = lambda log, path: ask_drishti(arguments.drishti, log, path)
    answers: list[Answer] = []
    for log, path, right in known:
        if log in present:
            found = [ask(log, path) for ask in programs.values()]
            answers += found
            said = " | ".join(", ".join(one.causes[:3]) or NOTHING for one in found)
            print(f"{Path(log).stem[:60]} ({', '.join(right)}): {said}", flush=True)
    claims = list(judge(answers, present))
    print(*("", *claims), sep="\n")
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(one) for one in answers], indent=1), "utf-8")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare the first causes of logs.")
    found = shutil.which("drishti")
    parser.add_argument("--drishti", metavar="PROGRAM", default=found, help="drishti-io's program")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all answers there too")
    return parser.parse_args()


def read_table() -> list[tuple[str, Path, tuple[str, ...]]]:
    """The name, the place and the right first causes of each log."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [(row["log"], place(row["log"]), tuple(row["right"].split("|"))) for row in rows]


def place(log: str) -> Path:
    folder, _, name = log.rpartition(":")
    return PYDARSHAN / name if folder == "pydarshan" else ROOT / log


def ask_ioncast(log: str, path: Path) -> Answer:
    start = time.monotonic()
    run = subprocess.run(
        [str(ioncast()), "check", str(path), "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds = time.monotonic() - start
    [record] = json.loads(run.stdout)
    shown = [one for one in record["causes"] if one["importance"] != "negligible"]
    return Answer(
        log,
        "ioncast",
        causes_of([one["codes"][0] for one in shown]),
        is_major=any(one["importance"] == "major" for one in shown),
        seconds=seconds,
    )


def ask_drishti(program: str, log: str, path: Path) -> Answer:
    start = time.monotonic()
    run = subprocess.run(
        [program, "--code", "--issues", str(path)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    seconds = time.monotonic() - start
    codes = [code for code in re.findall(r"\[([A-Z]\d\d)\]", run.stdout) if code in CAUSE_OF]
    high = [code for code in codes if code not in DRISHTI_WARNS]
    warn = [code for code in codes if code in DRISHTI_WARNS]
    failed = ("no answer",) if run.returncode else ()
    return Answer(log, "drishti", failed or causes_of([*high, *warn]), bool(high), seconds)


def causes_of(codes: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(CAUSE_OF[code] for code in codes if code in CAUSE_OF))


def judge(answers: Sequence[Answer], right: Mapping[str, tuple[str, ...]]) -> list[Claim]:
    claims = []
    for program in dict.fromkeys(one.program for one in answers):
        own = [one for one in answers if one.program == program]
        faulty = [one for one in own if NOTHING not in right[one.log]]
        healthy = [one for one in own if NOTHING in right[one.log]]
        first = [one for one in faulty if set(one.causes[:1]) & set(right[one.log])]
        three = [one for one in faulty if set(one.causes[:3]) & set(right[one.log])]
        silent = [one for one in healthy if not one.is_major and one.causes != ("no answer",)]
        major = [one for one in healthy if one.is_major]
        share = (len(first) + len(silent)) / len(own)
        goal = program == "ioncast"
        claims += [
            Claim(
                f"{program}: first cause right, at least 90 %",
                f"{share:.0%} of {len(own)}",
                share >= 0.9 if goal else None,
            ),
            Claim(
                f"{program}: of faulty runs right first, among the first three",
                f"{len(first)} and {len(three)} of {len(faulty)}",
                None,
            ),
            Claim(
                f"{program}: no false major on healthy runs",
                f"{len(major)} of {len(healthy)}",
                not major if goal else None,
            ),
            Claim(f"{program}: seconds for all", f"{sum(one.seconds for one in own):.0f}", None),
        ]
    return claims


if __name__ == "__main__":
    main()
