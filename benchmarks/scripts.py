"""Cost of reading a job script, and how it grows with the script's length.

    python benchmarks/scripts.py [--repeat N]

ioncast and the standard library's `shlex` read a real script in turn. Then ioncast reads scripts of
7,000 and 56,000 characters that repeat one hostile piece. The claims at the end are for
information: a missed one does not change the exit code.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

from measuring import Claim, machine

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from ioncast.service.decide.scripts import programs  # noqa: E402
from tests.ioncast.service.decide.test_scripts import HOSTILE, SLURM, repeated  # noqa: E402

SHORT, LONG = 7_000, 56_000
GROWTH = 2.0
SHARE = 3.0
MOST = 100.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=15, help="how often each is read (15)")
    repeat = parser.parse_args().repeat
    print(machine())
    ours, theirs = in_turns(
        repeat,
        lambda: programs(SLURM),
        lambda: list(shlex.shlex(SLURM, posix=True, punctuation_chars=True)),
    )
    print(f"\na Slurm script of {len(SLURM)} characters: {1e3 * ours:.2f} ms,", end=" ")
    print(f"shlex {1e3 * theirs:.2f} ms\n")
    print(f"| piece | ms, {SHORT} characters | ms, {LONG} | for each character |")
    print("| --- | ---: | ---: | ---: |")
    growth, slowest = 0.0, 0.0
    for piece in HOSTILE:
        few, many = (repeated(piece, length) for length in (SHORT, LONG))
        short, long = in_turns(
            repeat, lambda few=few: programs(few), lambda many=many: programs(many)
        )
        ratio = long * len(few) / short / len(many)
        print(f"| `` {piece!r} `` | {1e3 * short:.2f} | {1e3 * long:.2f} | {ratio:.2f} |")
        growth, slowest = max(growth, ratio), max(slowest, long)
    for claim in (
        Claim(f"at most {SHARE:g} × shlex", f"{ours / theirs:.2f} ×", ours <= SHARE * theirs),
        Claim(
            f"a character of a long script at most {GROWTH:g} × one of a short one",
            f"{growth:.2f} ×",
            growth <= GROWTH,
        ),
        Claim(
            f"no script more than {MOST:g} × the usual one",
            f"{slowest / ours:.0f} ×, {1e3 * slowest:.1f} ms",
            slowest <= MOST * ours,
        ),
    ):
        print(f"\n{claim}")


def in_turns(repeat: int, *ways: Callable[[], object]) -> list[float]:
    """The least CPU seconds of each way; the ways take turns."""
    seconds = [[timed(way) for way in ways] for _ in range(repeat)]
    return [min(one) for one in zip(*seconds, strict=True)]


def timed(way: Callable[[], object]) -> float:
    began = time.thread_time()
    way()
    return time.thread_time() - began


if __name__ == "__main__":
    main()
