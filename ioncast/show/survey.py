"""The survey of a site as a page: numbers at a glance, figures, and the numbers behind each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ioncast.insights.checks.registry import all_checks
from ioncast.insights.comparison.in_words import layer_text
from ioncast.insights.figures.drawn import (
    METADATA,
    READ,
    WRITE,
    Column,
    Drawn,
    percent,
    short_name,
)
from ioncast.insights.figures.size_figure import bin_in_words, size_panel
from ioncast.insights.tables.histograms_table import BINS
from ioncast.show.rendering import write_offline
from ioncast.warehouse.survey import TITLES, Row, Survey
from ioncast.warehouse.survey_texts import UNKNOWN, cell, heading, is_text
from ioncast_base.pages.figures import (
    Axis,
    Bars,
    Figure,
    Line,
    Panel,
    Points,
    Series,
    Symbol,
    categories,
    from_zero,
    logarithmic,
    numbers,
    rows,
    stacked,
)
from ioncast_base.wording import counted, duration, in_digits, size
from summario.reading.layouts import SIZE_BINS

_FILES, _COLLECTIVE = "var(--kind-2)", "var(--kind-5)"
_MONTHS = 12
# Months between two labels, and the most labels. Fewer months would make bars as wide as a hand.
_STEPS, _MOST_LABELS, _FEWEST_MONTHS = (1, 3, 6, 12, 24, 60, 120), 6, 8
# Pixels of a row of a histogram and of a list. Room for the text of the longest bar.
_BIN, _ROW, _ROOM = 26, 40, 1.35
# The bins of the queries: from each size or number on, to those of the next bin.
_SIZES = tuple(1 << 4 * power for power in range(11))
_PROCESSES = (1, 2, *(4**power + 1 for power in range(1, 8)))


class Tile(NamedTuple):
    """A number at the top of the page."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class SectionShown:
    """A part of the page."""

    key: str
    title: str
    said: str
    figures: tuple[Drawn, ...]


def write_survey(path: str | Path, survey: Survey) -> None:
    """Write a survey as a page that needs no network. On an error an older page stays."""
    sections = [section for section in _sections(survey) if section.figures]
    tiles, lead = list(_tiles(survey)), _lead(survey)
    write_offline(path, "survey.html", lead=lead, tiles=tiles, sections=sections)


def _lead(survey: Survey) -> str:
    totals = survey.only("totals")
    system = f" of {survey.system}" if survey.system else ""
    if not totals["logs"]:
        return f"No logs{system} can be used."
    first, last = (cell(name, totals[name]) for name in ("first_start_us", "last_start_us"))
    return (
        f"Runs{system} that started from {first} to {last} UTC. A job with several logs counts"
        " once for each of them, a file once for each log. Unknown values are left out."
    )


def _tiles(survey: Survey) -> Iterator[Tile]:
    totals, share, mpiio = (survey.only(key) for key in ("totals", "io_share", "mpiio"))
    yield Tile("Logs", f"{totals['logs']:,}", f"of {counted(totals['jobs'], 'job')}")
    yield Tile("Users", f"{totals['users']:,}", f"with {counted(totals['programs'], 'program')}")
    read = totals["read_bytes"] or 0
    moved = read + (totals["written_bytes"] or 0)
    yield Tile("Bytes moved", size(moved), f"{percent(read, moved)} of them read")
    hours = cell("core_hours", share["core_hours"])
    capped = share["capped_jobs"]
    yield Tile(
        "Processes' time in I/O",
        cell("io_share", share["io_share"]),
        f"of {hours} core-hours" + (f", {capped:,} jobs capped" if capped else ""),
    )
    yield Tile(
        "Jobs with MPI-IO",
        cell("mpiio_share", mpiio["mpiio_share"]),
        f"of {mpiio['jobs']:,} with several processes",
    )


def _sections(survey: Survey) -> Iterator[SectionShown]:
    answers = survey.answers
    systems = [_table("by_system", answers)] if len(answers["by_system"]) > 1 else []
    yield _section("time", "Over time", "", [*_months(answers), *systems])
    yield _section(
        "users",
        "Users and programs",
        "The ten with most bytes, I/O time, metadata time and jobs, and their shares of all.",
        [
            *(_largest(key, answers, "user_id") for key in answers if key.startswith("users_by")),
            *(_largest(key, answers, "program") for key in answers if key.startswith("programs_")),
        ],
    )
    yield _section("files", "Files", _files_said(survey), _files(answers))
    yield _section("requests", "Reads and writes", "", _requests(answers))
    yield _section("mpiio", "MPI-IO and collective calls", _mpiio_said(survey), _mpiio(answers))
    worst = [_causes(answers["causes"]), _table("worst_runs", answers)]
    yield _section("worst", "Slow I/O and its causes", "", worst)
    yield _section("benchmarks", "Predictions and benchmarks", "", _predictions(answers))
    said = "Files that are no readable logs belong to no month." if survey.month else ""
    yield _section("unusable", "Unusable logs", said, [_table("unusable", answers)])


def _section(key: str, title: str, said: str, figures: Iterable[Drawn | None]) -> SectionShown:
    return SectionShown(key, title, said, tuple(each for each in figures if each and each.rows))


def _table(key: str, answers: Mapping[str, Sequence[Row]]) -> Drawn:
    """Show an answer as a table only."""
    return _drawn(key, "", None, answers[key], is_wide=True)


def _drawn(
    key: str, said: str, figure: Figure | None, answer: Sequence[Row], *, is_wide: bool = False
) -> Drawn:
    title = TITLES[key]
    names = list(answer[0]) if answer else []
    return Drawn(
        key=key.replace("_", "-"),
        title=title,
        said=said,
        figure=figure,
        caption=title,
        columns=tuple(Column(heading(name), is_text(name)) for name in names),
        rows=tuple(tuple(_cell(name, row[name]) for name in names) for row in answer),
        is_wide=is_wide,
    )


def _cell(name: str, value: Any) -> str:
    return short_name(value) if name == "path" else cell(name, value)


def _months(answers: Mapping[str, Sequence[Row]]) -> Iterator[Drawn]:
    answer = answers["by_month"]
    dated = _dated(answer)
    if not dated:
        yield _table("by_month", answers)
        return
    at = list(dated)
    jobs = Bars(
        "jobs",
        "var(--kind-0)",
        at,
        [row["jobs"] for row in dated.values()],
        width=0.8,
        hints=[f"{row['month']}: {counted(row['jobs'], 'job')}" for row in dated.values()],
    )
    shares = [row["io_share"] for row in dated.values()]
    share = Points(
        "time in I/O",
        METADATA,
        at,
        shares,
        hints=[f"{row['month']}: {cell('io_share', row['io_share'])}" for row in dated.values()],
    )
    across = _month_axis(at)
    percents = from_zero([share], "processes' time in I/O", "{:.0%}".format)
    panels = [
        Panel(across, from_zero([jobs], "jobs"), [jobs], 180),
        Panel(across, percents, [share], 180),
    ]
    said = "Jobs, and the share of their processes' time in reads and writes."
    yield _drawn(
        "by_month", said, Figure(panels, is_beside=True, has_legend=False), answer, is_wide=True
    )


def _dated(answer: Sequence[Row]) -> dict[int, Row]:
    """Number the months of an answer since the year 0; those that are not known are left out."""
    return {
        int(row["month"][:4]) * _MONTHS + int(row["month"][5:]) - 1: row
        for row in answer
        if row["month"]
    }


def _month_axis(at: Sequence[int]) -> Axis:
    """Make an axis of months, at least as long as bars look well."""
    more = max(_FEWEST_MONTHS - (at[-1] - at[0] + 1), 0) / 2
    low, high = at[0] - 0.5 - more, at[-1] + 0.5 + more
    step = next((each for each in _STEPS if high - low <= _MOST_LABELS * each), _STEPS[-1])
    ticks = {
        float(month): f"{month // _MONTHS}"
        + ("" if step % _MONTHS == 0 else f"-{month % 12 + 1:02}")
        for month in range(int(low) + 1, int(high) + 1)
        if month % step == 0
    }
    return Axis("", low, high, ticks, has_grid=False)


def _largest(key: str, answers: Mapping[str, Sequence[Row]], noun: str) -> Drawn:
    """Draw the users or programs with most of an amount."""
    answer = answers[key]
    amount = {"bytes": "bytes", "io": "io_seconds", "metadata": "metadata_seconds"}.get(
        key.rpartition("_")[2], "jobs"
    )
    names = [_name(row[noun], noun) for row in answer]
    labels = [f"{cell(amount, row[amount])}, {_share(row['share'])}" for row in answer]
    bars = Bars(
        "",
        READ if noun == "user_id" else _FILES,
        range(len(answer)),
        [row[amount] or 0 for row in answer],
        width=0.34,
        labels=labels,
    )
    axis = from_zero([bars], "", _writes(amount), _ROOM * 1.25)
    together = sum(row["share"] or 0 for row in answer)
    said = f"Together {_share(together)} of all."
    panel = rows(names, _unlabelled(axis), [bars], row=_ROW)
    return _drawn(key, said, Figure([panel], has_legend=False), answer)


def _writes(amount: str) -> Callable[[float], str]:
    return lambda value: cell(amount, value)


def _unlabelled(axis: Axis) -> Axis:
    """Leave out the labels of an axis whose bars have texts."""
    return replace(axis, ticks={})


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else percent(value, 1)


def _name(value: Any, noun: str) -> str:
    if value is None:
        return UNKNOWN
    return f"User {value}" if noun == "user_id" else short_name(value)


def _files_said(survey: Survey) -> str:
    sizes, files = survey.only("sizes_all"), survey.only("files_per_job")
    if not sizes["files"]:
        return ""
    return (
        f"{counted(sizes['files'], 'file')} of a known size: {size(sizes['mean_bytes'])} in the"
        f" mean, half of them at most {size(sizes['median_bytes'])}. A job uses"
        f" {in_digits(files['mean'])} files in the mean, half of the jobs at most"
        f" {in_digits(files['median'])}, and 95% at most {in_digits(files['p95'])}."
    )


def _files(answers: Mapping[str, Sequence[Row]]) -> Iterator[Drawn]:
    sizes = answers["sizes_histogram"]
    if sizes:
        counts = {row["least_bytes"]: row["files"] for row in sizes}
        bins = [each for each in _SIZES if min(counts) <= each <= max(counts)]
        names = [_sizes_said(each) for each in bins]
        said = "The size is the highest offset that was used, plus 1."
        panel = _histogram(names, [counts.get(each, 0) for each in bins], "files")
        yield _drawn("sizes_histogram", said, Figure([panel], has_legend=False), sizes)
    by_processes = answers["files_by_processes"]
    if by_processes:
        said = "Median, mean and 95th percentile of the files of a job."
        yield _drawn("files_by_processes", said, _spread(by_processes), by_processes)
    yield _table("sizes", answers)


def _sizes_said(least: int) -> str:
    if least == _SIZES[-1]:
        return f"{size(least)} or more"
    return f"{size(least)} to {size(_SIZES[_SIZES.index(least) + 1])}"


def _processes_said(least: int) -> str:
    if least == _PROCESSES[-1]:
        return f"{least:,} or more"
    last = _PROCESSES[_PROCESSES.index(least) + 1] - 1
    return f"{least:,} to {last:,}" if last > least else f"{least}"


def _histogram(names: Sequence[str], counts: Sequence[float], title: str) -> Panel:
    labels = [in_digits(count) for count in counts]
    bars = Bars("", _FILES, range(len(names)), list(counts), labels=labels)
    axis = _unlabelled(from_zero([bars], title, room=_ROOM))
    return Panel(categories(names), axis, [bars], _BIN * len(names), is_lying=True)


def _spread(answer: Sequence[Row]) -> Figure:
    """Draw median, mean and 95th percentile of files a job."""
    at = range(len(answer))
    looks: Sequence[tuple[str, str, Symbol]] = (
        ("median", READ, "circle"),
        ("mean", WRITE, "diamond"),
        ("p95", METADATA, "triangle"),
    )
    series: list[Series] = [
        Points(
            name,
            colour,
            at,
            [row[name] for row in answer],
            symbol,
            hints=[f"{name}: {in_digits(row[name])} files" for row in answer],
        )
        for name, colour, symbol in looks
    ]
    most = max(max(row["p95"], row["mean"]) for row in answer)
    axis = logarithmic(0.5, max(10.0, 1.5 * most), "files of a job, logarithmic", in_digits)
    names = [_processes_said(row["least_processes"]) for row in answer]
    across = categories(names, "processes")
    return Figure([Panel(across, axis, series, 34 * len(answer), is_lying=True)])


def _requests(answers: Mapping[str, Sequence[Row]]) -> Iterator[Drawn]:
    by_month = answers["reads_writes_by_month"]
    if by_month:
        yield _drawn(
            "reads_writes_by_month",
            "Bytes read and written.",
            _bytes_by_month(by_month),
            by_month,
        )
    reads_writes = answers["reads_writes"]
    if by_month and reads_writes:
        said = "Each file counts at its highest API. The table has each API by itself."
        yield _drawn("reads_writes", said, _shares(by_month), reads_writes)
    for api in dict.fromkeys(row["api"] for row in answers["access_sizes"]):
        yield _access_sizes(
            layer_text(api), [r for r in answers["access_sizes"] if r["api"] == api]
        )


def _bytes_by_month(answer: Sequence[Row]) -> Figure | None:
    dated = _dated(answer)
    if not dated:
        return None
    parts = (("read", READ, "read_bytes"), ("written", WRITE, "written_bytes"))
    stacks = stacked([row[of] for row in dated.values()] for _, _, of in parts)
    series = [
        Bars(
            name,
            colour,
            list(dated),
            ends,
            starts,
            width=0.8,
            hints=[f"{row['month']}: {size(row[of])} {name}" for row in dated.values()],
        )
        for (name, colour, of), (starts, ends) in zip(parts, stacks, strict=True)
    ]
    return Figure([Panel(_month_axis(list(dated)), _in_bytes(series), series, 220)])


def _in_bytes(series: Sequence[Series]) -> Axis:
    """Make an axis of bytes with labels at round numbers of a binary unit."""
    axis = from_zero(series, "")
    unit = 1024.0 ** max(len(str(int(axis.high))) // 3 - 1, 0)
    ticks = from_zero(series, "", room=1.05)
    scaled = numbers(0, ticks.high / unit, "")
    return Axis("", 0, axis.high, {tick * unit: size(tick * unit) for tick in scaled.ticks})


def _shares(by_month: Sequence[Row]) -> Figure:
    """Draw the shares of reads and writes in bytes, requests and jobs."""
    pairs = []
    for name, read, written, write in (
        ("Bytes", "read_bytes", "written_bytes", size),
        ("Requests", "reads", "writes", in_digits),
        ("Jobs", "reading_jobs", "writing_jobs", in_digits),
    ):
        reads, writes = (sum(row[of] or 0 for row in by_month) for of in (read, written))
        pairs.append((f"{name}: {write(reads)} read, {write(writes)} write", reads, writes))
    ends = [reads / (reads + writes) if reads + writes else 0.0 for _, reads, writes in pairs]
    at = range(len(pairs))
    series = [
        Bars("reads", READ, at, ends, width=0.34),
        Bars("writes", WRITE, at, [1.0 if sum(pair[1:]) else 0.0 for pair in pairs], ends, 0.34),
    ]
    axis = numbers(0, 1, "", "{:.0%}".format)
    return Figure([rows([name for name, _, _ in pairs], axis, series)])


def _access_sizes(layer: str, answer: Sequence[Row]) -> Drawn:
    counts = {}
    for operation in ("read", "write"):
        found = {row["bin"]: row["requests"] for row in answer if row["operation"] == operation}
        if found:
            counts[f"{operation}s"] = [found.get(each, 0) for each in SIZE_BINS]
    panel = size_panel(counts, {"reads": READ, "writes": WRITE})
    figure = Figure([replace(panel, values=_unlabelled(panel.values))])
    in_words = dict(zip(SIZE_BINS, map(bin_in_words, BINS), strict=True))
    shown = [
        {"bin": in_words[row["bin"]], **{k: row[k] for k in ("operation", "requests", "small")}}
        for row in answer
    ]
    drawn = _drawn("access_sizes", "", figure, shown)
    title = f"{layer} requests by size"
    return replace(drawn, key=f"sizes-{layer.lower()}", title=title, caption=title)


def _mpiio_said(survey: Survey) -> str:
    found = survey.only("mpiio")
    if not found["jobs"]:
        return ""
    jobs = f"{found['jobs']:,} jobs with several processes"
    said = f"{_share(found['mpiio_share'])} of {jobs} use MPI-IO"
    if found["mpiio_share"]:
        said += f", {_share(found['collective_share'])} of these with collective calls"
    return f"{said}. They move {_share(found['mpiio_bytes_share'])} of the bytes of such jobs."


def _mpiio(answers: Mapping[str, Sequence[Row]]) -> Iterator[Drawn]:
    answer = answers["mpiio_by_month"]
    dated = _dated(answer)
    if not dated:
        return
    series: list[Series] = []
    looks: Sequence[tuple[str, str, str, Symbol]] = (
        ("jobs with MPI-IO", READ, "mpiio_share", "circle"),
        ("of these, jobs with collective calls", _COLLECTIVE, "collective_share", "diamond"),
        ("bytes with MPI-IO", WRITE, "mpiio_bytes_share", "triangle"),
    )
    for name, colour, of, symbol in looks:
        known = {month: row[of] for month, row in dated.items() if row[of] is not None}
        hints = [f"{dated[month]['month']}, {name}: {_share(known[month])}" for month in known]
        series += (
            Line("", colour, part, [known[month] for month in part], width=1)
            for part in _unbroken(list(known))
        )
        points = list(known.values())
        series.append(Points(name, colour, list(known), points, symbol, hints=hints))
    panel = Panel(_month_axis(list(dated)), numbers(0, 1, "", "{:.0%}".format), series, 220)
    said = "Shares in jobs with several processes."
    yield _drawn("mpiio_by_month", said, Figure([panel]), answer, is_wide=True)


def _unbroken(months: Sequence[int]) -> list[list[int]]:
    """Divide months into parts without a gap."""
    parts: list[list[int]] = []
    for month in months:
        if not parts or month > parts[-1][-1] + 1:
            parts.append([])
        parts[-1].append(month)
    return parts


def _predictions(answers: Mapping[str, Sequence[Row]]) -> Iterator[Drawn]:
    answer = answers.get("predicted")
    if not answer:
        return
    colours = ("var(--kind-2)", READ, METADATA, "var(--other)")
    shares = [[row[of] or 0.0 for of in ("bytes_share", "seconds_share")] for row in answer]
    series = [
        Bars(row["match"], colour, range(2), ends, starts, 0.34)
        for row, colour, (starts, ends) in zip(answer, colours, stacked(shares), strict=True)
    ]
    panel = rows(["Bytes", "I/O time"], numbers(0, 1, "", "{:.0%}".format), series)
    said = (
        "Exact: the same I/O was measured. Interpolated: between measured sizes. Model: beyond"
        " them. Unknown: nothing of its kind was measured."
    )
    yield _drawn("predicted", said, Figure([panel]), answer, is_wide=True)
    for key in ("missing_by_bytes", "missing_by_io"):
        yield _table(key, answers)


def _causes(answer: Sequence[Row]) -> Drawn | None:
    if not answer:
        return None
    titles = {check.code: check.title for check in all_checks()}
    names = [f"{row['code']} {titles.get(row['code'], '')}" for row in answer]
    labels = [
        counted(row["jobs"], "job")
        + (f", {duration(row['seconds_at_stake'])} at stake" if row["seconds_at_stake"] else "")
        for row in answer
    ]
    bars = Bars(
        "",
        _COLLECTIVE,
        range(len(answer)),
        [row["jobs"] for row in answer],
        width=0.34,
        labels=labels,
    )
    axis = _unlabelled(from_zero([bars], "", room=2.3))
    panel = rows(names, axis, [bars], row=_ROW)
    said = "Jobs with each cause, and the time that it takes of all their run times at most."
    return _drawn("causes", said, Figure([panel], has_legend=False), answer)
