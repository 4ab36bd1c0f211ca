"""Decisions that learn from outcomes, on runs that the rule has not seen.

    python benchmarks/learning.py [--only PART] [--seeds N] [--json FILE]

It needs `../shared/data/year` beside the project for the part `year`, and `../shared/data/forge`
for `size` and `nothing`. Nothing depends on the machine. A missed claim does not change the exit
code.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from functools import partial
from itertools import permutations
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
from accuracy import read as forge
from measuring import DATA, Claim

from benchdb.measurements.curves import Curve
from experiments.datasets import read, shipped
from experiments.evaluation import named_curves
from experiments.held_back import phase_of
from experiments.own_past import knowledge_of
from predictor.curve.prediction import EarlierRun, Prediction, predict, predict_together
from predictor.model.fitting import fit_model
from predictor.model.posterior import Belief, ObservedBandwidth, Scatter, fitted, posterior
from predictor.model.system_model import SystemModel
from predictor.model.trying import Trial, worth_trying
from summario.phases.values import Phase

PARTS = ("sequence", "year", "one", "logged", "closed", "size", "nothing")
AFTER = (0, 10, 30)
DEMO = "testbed"
# Four of five values of Student's t distribution with 4 degrees are within so many scales.
OF_FIVE = 1.533
# The variance of an unknown bandwidth, and how its runs scatter as a rule.
UNMEASURED, SCATTER = 0.7**2 + 0.7**2, 0.1
MOST = 50
ENOUGH = 100


@dataclass(frozen=True)
class Case:
    """An application or a pattern with its measured runs.

    Attributes
    ----------
    name, group : str
        Its name, and whether it is of the demonstration, another application or a hidden pattern.
    phases : sequence of Phase
        Its phases.
    knowledge : SystemModel
        The benchmarks that are known of its system.
    nodes : int
        Its compute nodes.
    runs : mapping of int to sequence of float
        Measured MiB/s by number of I/O nodes.
    """

    name: str
    group: str
    phases: Sequence[Phase]
    knowledge: SystemModel
    nodes: int
    runs: Mapping[int, Sequence[float]]

    def predicted(self, outcomes: Sequence[EarlierRun] = ()) -> Prediction:
        return predict(
            self.phases, self.knowledge, system="here", nodes=self.nodes, earlier=outcomes
        )


class Halves(NamedTuple):
    """Runs that a rule may see, and means of others that judge it."""

    used: Mapping[int, Sequence[float]]
    judges: Mapping[int, float]

    def regret(self, io_nodes: int) -> float:
        return 1 - self.judges[io_nodes] / max(self.judges.values())

    @property
    def oracle(self) -> float:
        return self.regret(best_of({n: fmean(runs) for n, runs in self.used.items()}))


def main() -> None:
    arguments = parse_arguments()
    parts = [arguments.only] if arguments.only else PARTS
    found: list[Claim] = []
    if "sequence" in parts:
        found += sequence()
    if "year" in parts:
        found += year()
    known = list(cases()) if {"one", "logged", "closed"} & set(parts) else []
    if "one" in parts:
        found += one_run(known)
    if "logged" in parts:
        found += logged(known, arguments.seeds)
    if "closed" in parts:
        found += closed(known, arguments.seeds)
    patterns = forge(DATA / "forge")["MareNostrum 4"] if {"size", "nothing"} & set(parts) else ()
    if "size" in parts:
        another_size(patterns)
    if "nothing" in parts:
        no_benchmark(patterns, arguments.seeds)
    print("\n| claim | measured | |\n| --- | --- | --- |")
    for claim in found:
        print(f"| {claim.text} | {claim.measured} | {'PASS' if claim.holds else 'MISS'} |")
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(one) for one in found], indent=1), "utf-8")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what outcomes teach.")
    parser.add_argument("--only", choices=PARTS, help="measure this part only")
    parser.add_argument("--seeds", type=int, default=20, help="random halves and orders of runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all claims there too")
    return parser.parse_args()


def cases() -> Iterator[Case]:
    """The shipped applications, and the shipped benchmarks, each with its own runs hidden."""
    for folder in shipped():
        data = read(folder)
        knowledge, nodes = knowledge_of(data), data.provenance.nodes
        seen = set()
        for log, phases in data.phases.items():
            if log.application in seen:
                continue
            seen.add(log.application)
            runs: dict[int, list[float]] = defaultdict(list)
            for rerun in data.applications[log.application]:
                runs[rerun.io_nodes].append(rerun.bandwidth_mib_s)
            group = "demonstration" if folder.name == DEMO else "other applications"
            yield Case(f"{folder.name}: {log.application}", group, phases, knowledge, nodes, runs)
        curves = named_curves(data)
        for name, curve in curves.items():
            rest = tuple(other for other in curves.values() if other is not curve)
            if len(rest) > 2:
                yield hidden(f"{folder.name}: {name}", curve, rest, nodes)


def hidden(name: str, curve: Curve, rest: tuple[Curve, ...], nodes: int) -> Case:
    known = SystemModel(rest, fit_model(rest))
    phases = [phase_of(curve.config)]
    return Case(name, "hidden patterns", phases, known, nodes, curve.bandwidths_mib_s)


# The sequence of ten and sixty


def sequence() -> Iterator[Claim]:
    """The benchmarks say 0; ten runs with 8 got 30 MiB/s, and all later ones with 0 get 26."""
    [periodic] = [case for case in cases() if case.name == f"{DEMO}: periodic"]
    for later in (1, 3, 60):
        outcomes = [
            *(EarlierRun(8, 30.0, day=day) for day in range(10)),
            *(EarlierRun(0, 26.0, day=10 + day) for day in range(later)),
        ]
        answer = periodic.predicted(outcomes).decision.io_nodes
        yield Claim(f"8 I/O nodes after {later} outcomes with 0", str(answer), answer == 8)


# A year of the same benchmarks


def year() -> Iterator[Claim]:
    """The next run of a benchmark from its earlier ones, with no prediction to begin with."""
    print("| system | runs | mean error | best other rule | median | best other | covered |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    covered: list[bool] = []
    months: dict[str, list[bool]] = defaultdict(list)
    for file in sorted((DATA / "year").glob("*.csv.gz")):
        system = file.name.partition("-")[0]
        series = list(series_of(file))
        level = fmean(math.log(speed) for runs in series for _, speed in runs)
        judged = [one for runs in series for one in judged_of(runs, level)]
        errors = np.array([one.errors for one in judged])
        means, medians = errors.mean(axis=0), np.median(errors, axis=0)
        inside = [one.is_inside for one in judged]
        covered += inside
        for one in judged:
            moment = datetime.fromtimestamp(one.day * 86_400, timezone.utc)
            months[f"{system} {moment:%Y-%m}"].append(one.is_inside)
        print(
            f"| {system} | {len(judged)} | {means[0]:.3f} | {means[1:].min():.3f}"
            f" | {medians[0]:.4f} | {medians[1:].min():.4f} | {fmean(inside):.1%} |"
        )
        for name, most, values in (("mean", 1.02, means), ("median", 1.15, medians)):
            ratio = values[0] / values[1:].min()
            yield Claim(
                f"{system}: {name} error at most {most} × the best other rule",
                f"{ratio:.2f} ×",
                bool(ratio <= most),
            )
    share = fmean(covered)
    yield Claim("76 to 84 % of the year's runs inside", f"{share:.1%}", 0.76 <= share <= 0.84)
    shares = {month: fmean(inside) for month, inside in months.items() if len(inside) >= ENOUGH}
    outside = {month: share for month, share in shares.items() if not 0.65 <= share <= 0.92}
    named = ", ".join(f"{month} {share:.0%}" for month, share in outside.items())
    yield Claim(
        f"65 to 92 % inside in each month with at least {ENOUGH} runs",
        f"all but {len(outside)} of {len(shares)}" + (f" ({named})" if named else ""),
        not outside,
    )


class JudgedRun(NamedTuple):
    """A run: |predicted / measured - 1| of the posterior and of the other rules."""

    day: float
    is_inside: bool
    errors: tuple[float, ...]


def series_of(file: Path) -> Iterator[list[tuple[float, float]]]:
    """Day and MiB/s of the runs of each benchmark that ran more than once, the oldest first."""
    with gzip.open(file, "rt", encoding="utf-8") as text:
        heads, *rows = csv.reader(text)
    # The first column, an index, has no name and in one file no comma either.
    heads = [""] * (len(rows[0]) - len(heads)) + heads
    found: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        run = dict(zip(heads, row, strict=True))
        moved = {way: float(run[f"darshan_biggest_{way}_api_bytes"] or 0) for way in WAYS}
        way = max(WAYS, key=moved.__getitem__)
        files = run[f"darshan_biggest_{way}_api_files"]
        key = run["darshan_app"], run["_file_system"], way, run["darshan_nprocs"], files
        speed = float(run["darshan_agg_perf_by_slowest_posix"] or 0)
        if speed > 0 and all(key):
            found[key].append((float(run["darshan_start_time"]) / 86_400, speed))
    return (sorted(runs) for runs in found.values() if len(runs) > 1)


WAYS = ("write", "read")


def judged_of(runs: Sequence[tuple[float, float]], level: float) -> Iterator[JudgedRun]:
    prior = Belief(np.array([level]), np.array([[UNMEASURED]]))
    for place in range(1, len(runs)):
        past, (day, got) = runs[max(0, place - MOST) : place], runs[place]
        outcomes = [ObservedBandwidth(0, math.log(speed), when) for when, speed in past]
        scatter = fitted(prior, outcomes, Scatter(np.array([SCATTER])))
        after = posterior(prior, outcomes, scatter, day)
        expected = float(after.mean[0])
        deviation = math.sqrt(after.covariance[0, 0] + scatter.of_runs[0] ** 2)
        newest_first = [speed for _, speed in reversed(past)]
        guesses = (math.exp(expected), *other_rules(newest_first))
        yield JudgedRun(
            day,
            abs(math.log(got) - expected) <= OF_FIVE * deviation,
            tuple(abs(guess / got - 1) for guess in guesses),
        )


def other_rules(newest_first: Sequence[float]) -> tuple[float, float, float]:
    """Mean of the last five; mean, and median, that weigh each run 0.8 of the next newer one."""
    weights = 0.8 ** np.arange(len(newest_first))
    order = np.argsort(newest_first)
    heavier = np.cumsum(weights[order]) >= weights.sum() / 2
    return (
        fmean(newest_first[:5]),
        float(np.average(newest_first, weights=weights)),
        newest_first[order[np.argmax(heavier)]],
    )


# One past run


def one_run(known: Iterable[Case]) -> Iterator[Claim]:
    """Errors without and with one run, against the means of all other runs."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for case in known:
        before = expected_of(case.predicted())
        for n, runs in case.runs.items():
            for place, got in enumerate(runs):
                truth = {m: fmean(others) for m, others in case.runs.items() if m != n}
                rest = [*runs[:place], *runs[place + 1 :]]
                truth |= {n: fmean(rest)} if rest else {}
                if not truth.keys() & before.keys():
                    continue
                after = expected_of(case.predicted([EarlierRun(n, got)]))
                found[case.group].append((error_of(before, truth), error_of(after, truth)))
    print("\n| one past run | runs | mean error without it | with it | worse by over 2 points |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for group, errors in found.items():
        without, corrected = (fmean(each) for each in zip(*errors, strict=True))
        worse = [after - before for before, after in errors]
        share = fmean(one > 0.02 for one in worse)
        print(f"| {group} | {len(errors)} | {without:.3f} | {corrected:.3f} | {share:.1%} |")
        yield Claim(
            f"{group}: one past run makes at most 3 % worse by over 2 points",
            f"{share:.1%}",
            share <= 0.03,
        )
        yield Claim(
            f"{group}: one past run makes none worse by more than 5 points",
            f"{100 * max(worse):.0f}",
            max(worse) <= 0.05,
        )


# Runs of another size, and applications without a benchmark


def another_size(patterns: Sequence[Curve]) -> None:
    """Errors for half, or twice, as many processes as the runs of an application had.

    Each tenth of the kinds of I/O is hidden in turn: all patterns of one layout, one request size
    and one number of processes per node.
    """
    kinds: dict[tuple[object, ...], list[Curve]] = defaultdict(list)
    for curve in patterns:
        config = curve.config
        kinds[config.layout, config.transfer_size, processes(curve) // (config.nodes or 1)] += [
            curve
        ]
    errors: dict[str, list[float]] = defaultdict(list)
    for fold in range(10):
        unseen = list(kinds.values())[fold::10]
        rest = tuple(one for one in patterns if not any(one in kind for kind in unseen))
        known = SystemModel(rest, fit_model(rest))
        for ran, asked in (pair for kind in unseen for pair in permutations(kind, 2)):
            if max(processes(ran), processes(asked)) > 2 * min(processes(ran), processes(asked)):
                continue
            runs = [
                EarlierRun(n, got)
                for n, all_runs in ran.bandwidths_mib_s.items()
                for got in all_runs[:3]
            ]
            versions = [[phase_of(one.config)] for one in (ran, asked)]
            nodes = [ran.config.nodes, asked.config.nodes]
            told = partial(predict_together, versions, known, system="here", nodes=nodes)
            before, without = map(expected_of, told())
            after, together = map(expected_of, told(earlier=runs))
            moved = {n: without[n] * after[n] / before[n] for n in without}
            truth = {n: fmean(got) for n, got in asked.bandwidths_mib_s.items()}
            for way, expected in (("without", without), ("together", together), ("moved", moved)):
                errors[way].append(error_of(expected, truth))
    print(f"\nRuns of another size: mean error of {len(errors['moved'])} predictions\n")
    print("| without them | drawn together | moved as much |\n| ---: | ---: | ---: |")
    print("| " + " | ".join(f"{fmean(each):.3f}" for each in errors.values()) + " |")


def no_benchmark(patterns: Sequence[Curve], seeds: int) -> None:
    """Regrets if all benchmarks of the layout are hidden, after outcomes of numbers at random."""
    found: dict[tuple[int, int], list[float]] = defaultdict(list)
    decided: dict[int, list[bool]] = defaultdict(list)
    oracle = []
    for curve in patterns:
        rest = tuple(one for one in patterns if one.config.layout != curve.config.layout)
        case = Case(
            "",
            "",
            [phase_of(curve.config)],
            SystemModel(rest),
            curve.config.nodes or 0,
            curve.bandwidths_mib_s,
        )
        for seed in range(seeds):
            random = np.random.default_rng(seed)
            halves = halves_of(case.runs, random)
            oracle.append(halves.oracle)
            numbers = random.choice(sorted(halves.used), AFTER[-1])
            outcomes = [EarlierRun(int(n), float(random.choice(halves.used[n]))) for n in numbers]
            for count in (0, 3, *AFTER[1:]):
                decision = case.predicted(outcomes[:count]).decision
                is_decided = decision.source == "model"
                decided[count].append(is_decided)
                for default in (0, 8):
                    given = decision.io_nodes if is_decided else default
                    found[count, default].append(halves.regret(given or 0))
    print("\nWithout a benchmark: mean regret after outcomes of numbers at random\n")
    print("| outcomes | decided | regret, default 0 | default 8 | oracle |\n|" + " ---: |" * 5)
    for count, shares in decided.items():
        regrets = " | ".join(f"{fmean(found[count, default]):.3f}" for default in (0, 8))
        print(f"| {count} | {fmean(shares):.0%} | {regrets} | {fmean(oracle):.3f} |")


def processes(curve: Curve) -> int:
    return curve.config.tasks or 1


def expected_of(prediction: Prediction) -> dict[int, float]:
    return {point.io_nodes: point.bandwidth_mib_s.mean for point in prediction.curve}


def error_of(expected: Mapping[int, float], truth: Mapping[int, float]) -> float:
    return fmean(abs(expected[n] / truth[n] - 1) for n in truth if n in expected)


# Replays


def logged(known: Iterable[Case], seeds: int) -> Iterator[Claim]:
    """Outcomes of numbers at random."""
    found = [replay(*each, way="logged") for each in seeded(known, seeds)]
    print("\nLogged replay: mean regret after outcomes, in brackets its standard error\n")
    table(found)
    regrets = [one.regrets[10] for one in found if one.group == "demonstration"]
    after = fmean(regrets)
    yield Claim("demonstration, logged, 10 outcomes: at most 2 %", f"{after:.1%}", after <= 0.02)


def closed(known: Sequence[Case], seeds: int) -> Iterator[Claim]:
    """Outcomes of the number that the rule gave itself, with and without trials."""
    for explore in (0.0, 0.01, 0.03):
        found = [replay(*each, way="closed", explore=explore) for each in seeded(known, seeds)]
        print(f"\nClosed replay, `explore` {explore:g}: mean regret after outcomes\n")
        table(found)
        for group in dict.fromkeys(one.group for one in found):
            ours = [one for one in found if one.group == group]
            oracle = fmean(one.oracle for one in ours)
            before, after, last = (fmean(one.regrets[n] for one in ours) for n in AFTER)
            if explore:
                cost = fmean(one.cost for one in ours)
                yield Claim(
                    f"{group}, `explore` {explore:g}, 30 outcomes: at most 1.5 × the oracle's",
                    f"{last:.3f}, oracle {oracle:.3f}",
                    last <= 1.5 * oracle,
                )
                yield Claim(
                    f"{group}, `explore` {explore:g}: trials cost at most 1.5 × as much",
                    f"{cost:.4f}",
                    cost <= 1.5 * explore,
                )
            else:
                change = error_of_mean(one.regrets[10] - one.regrets[0] for one in ours)
                yield Claim(
                    f"{group}, no trials: after 10 outcomes not above that before",
                    f"{after:.3f} after {before:.3f}, standard error {change:.3f}",
                    after <= before + change,
                )


class Replay(NamedTuple):
    """The regrets of a rule by number of outcomes, and the share that its trials lost."""

    group: str
    oracle: float
    regrets: Mapping[int, float]
    cost: float


def seeded(known: Iterable[Case], seeds: int) -> Iterator[tuple[Case, int]]:
    for case in known:
        expected = expected_of(case.predicted())
        enough = min(map(len, case.runs.values())) > 1
        if enough and len(expected.keys() & case.runs.keys()) > 1:
            yield from ((case, seed) for seed in range(seeds))


def table(found: Sequence[Replay]) -> None:
    print(f"| | {' | '.join(map(str, AFTER))} | oracle |\n|---" + "| ---: " * 4 + "|")
    for group in dict.fromkeys(one.group for one in found):
        ours = [one for one in found if one.group == group]
        cells = [[one.regrets[n] for one in ours] for n in AFTER]
        words = [f"{fmean(cell):.3f} ({error_of_mean(cell):.3f})" for cell in cells]
        print(f"| {group} | {' | '.join(words)} | {fmean(one.oracle for one in ours):.3f} |")


def replay(case: Case, seed: int, *, way: str, explore: float = 0.0) -> Replay:
    random = np.random.default_rng(seed)
    halves = halves_of(case.runs, random)
    outcomes: list[EarlierRun] = []
    regrets, losses = {}, []
    for count in range(AFTER[-1] + 1):
        tried = given = -1
        if way == "closed" or count in AFTER:
            given, trial = answer(case.predicted(outcomes), halves, explore)
            is_trial = trial is not None and random.random() < trial.jobs
            tried = trial.place if is_trial and trial else given
        if count in AFTER:
            regrets[count] = halves.regret(given)
        n = tried if way == "closed" else int(random.choice(sorted(halves.used)))
        if way == "closed":
            losses.append(1 - halves.judges[n] / halves.judges[given])
        outcomes.append(EarlierRun(n, float(random.choice(halves.used[n])), day=float(count)))
    return Replay(case.group, halves.oracle, regrets, fmean(losses) if losses else 0.0)


def answer(prediction: Prediction, halves: Halves, explore: float) -> tuple[int, Trial | None]:
    """The number that the rule gives, and a trial of another one (its place is the number)."""
    choice = prediction.choice
    numbers = [point.io_nodes for point in choice.curve]
    columns = [place for place, n in enumerate(numbers) if n in halves.used]
    means = {numbers[place]: choice.curve[place].bandwidth_mib_s.mean for place in columns}
    given = best_of(means)
    place = numbers.index(given)
    found = worth_trying(choice.expected_mib_s, choice.scatter, place, columns, explore)
    return given, found and found._replace(place=numbers[found.place])


def halves_of(runs: Mapping[int, Sequence[float]], random: np.random.Generator) -> Halves:
    used, judges = {}, {}
    for n, all_runs in runs.items():
        shuffled = random.permutation(all_runs)
        middle = len(shuffled) // 2
        used[n], judges[n] = shuffled[:middle].tolist(), float(shuffled[middle:].mean())
    return Halves(used, judges)


def best_of(expected: Mapping[int, float]) -> int:
    """The number with the highest bandwidth: a tolerance would give up some on purpose."""
    return max(expected, key=expected.__getitem__)


def error_of_mean(values: Iterable[float]) -> float:
    kept = list(map(float, values))
    return stdev(kept) / math.sqrt(len(kept))


if __name__ == "__main__":
    main()
