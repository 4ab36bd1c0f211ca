"""The survey of a site as a page: numbers at a glance, figures, and the numbers behind each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ioncast.insights.checks.registry import all_checks
from ioncast.insights.comparison.in_words import layer_text
from ioncast.insights.figures.drawn import READ, Column, Drawn, percent, short_name
from ioncast.insights.figures.size_figure import bin_in_words
from ioncast.insights.tables.histograms_table import BINS
from ioncast.show import survey_figures as figures
from ioncast.show.rendering import write_offline
from ioncast.show.survey_figures import share_said
from ioncast.warehouse.survey import TITLES, Row, Survey
from ioncast.warehouse.survey_texts import UNKNOWN, cell, heading, is_text
from ioncast_base.pages.figures import Figure
from ioncast_base.wording import counted, duration, in_digits, size
from summario.reading.layouts import SIZE_BINS

Answers = Mapping[str, Sequence[Row]]
_AMOUNTS = {"bytes": "bytes", "io": "io_seconds", "metadata": "metadata_seconds", "jobs": "jobs"}
_BINS = dict(zip(SIZE_BINS, map(bin_in_words, BINS), strict=True))


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


@dataclass(frozen=True)
class SurveyShown:
    """A survey for a template."""

    lead: str
    tiles: tuple[Tile, ...]
    sections: tuple[SectionShown, ...]


def write_survey(path: str | Path, survey: Survey) -> None:
    """Write a survey as a page that needs no network. On an error an older page stays."""
    write_offline(path, "survey.html", shown=survey_shown(survey))


def survey_shown(survey: Survey) -> SurveyShown:
    """Arrange a survey for a template, without sections that have no rows."""
    sections = tuple(section for section in _sections(survey) if section.figures)
    return SurveyShown(_lead(survey), tuple(_tiles(survey)), sections)


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
    said = "Files that cannot be read have no month, so they are left out." if survey.month else ""
    yield _section("unusable", "Unusable logs", said, [_table("unusable", answers)])


def _section(key: str, title: str, said: str, drawn: Iterable[Drawn]) -> SectionShown:
    return SectionShown(key, title, said, tuple(each for each in drawn if each.rows))


def _table(key: str, answers: Answers) -> Drawn:
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


def _months(answers: Answers) -> Iterator[Drawn]:
    answer = answers["by_month"]
    months = figures.dated(answer)
    figure = figures.jobs_by_month(months) if months else None
    said = "Jobs, and the share of their processes' time in reads and writes." if figure else ""
    yield _drawn("by_month", said, figure, answer, is_wide=True)


def _largest(key: str, answers: Answers, noun: str) -> Drawn:
    """Draw the users or programs with most of an amount."""
    answer, amount = answers[key], _AMOUNTS[key.rpartition("_")[2]]
    names = [_name(row[noun], noun) for row in answer]
    values = [row[amount] or 0 for row in answer]
    labels = [f"{cell(amount, row[amount])}, {share_said(row['share'])}" for row in answer]
    colour = READ if noun == "user_id" else figures.FILES
    figure = figures.listed_bars(names, values, labels, colour, room=1.7)
    said = f"Together {share_said(sum(row['share'] or 0 for row in answer))} of all."
    return _drawn(key, said, figure, answer)


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


def _files(answers: Answers) -> Iterator[Drawn]:
    if sizes := answers["sizes_histogram"]:
        said = "The size is the highest offset that was used, plus 1."
        yield _drawn("sizes_histogram", said, figures.files_by_size(sizes), sizes)
    if by_processes := answers["files_by_processes"]:
        said = "Median, mean and 95th percentile of the files of a job."
        figure = figures.files_by_processes(by_processes)
        yield _drawn("files_by_processes", said, figure, by_processes)
    yield _table("sizes", answers)


def _requests(answers: Answers) -> Iterator[Drawn]:
    by_month, requests = answers["reads_writes_by_month"], answers["access_sizes"]
    if months := figures.dated(by_month):
        said = "Bytes read and written."
        yield _drawn("reads_writes_by_month", said, figures.bytes_by_month(months), by_month)
    if by_month:
        said = "Each file counts at its highest API. The table has each API by itself."
        figure = figures.reads_to_writes(by_month)
        yield _drawn("reads_writes", said, figure, answers["reads_writes"])
    for api in dict.fromkeys(row["api"] for row in requests):
        of_api = [row for row in requests if row["api"] == api]
        shown = [{**row, "bin": _BINS[row["bin"]]} for row in of_api]
        title = f"{layer_text(api)} requests by size"
        drawn = _drawn("access_sizes", "", figures.requests_by_size(of_api), shown)
        yield replace(drawn, key=f"sizes-{api.lower()}", title=title, caption=title)


def _mpiio_said(survey: Survey) -> str:
    found = survey.only("mpiio")
    if not found["jobs"]:
        return ""
    share, collective, moved = (
        share_said(found[name]) for name in ("mpiio_share", "collective_share", "mpiio_bytes_share")
    )
    said = f"{share} of {found['jobs']:,} jobs with several processes use MPI-IO"
    if not found["mpiio_share"]:
        return f"{said}."
    return (
        f"{said}, {collective} of these with collective calls. They move {moved} of the bytes of"
        " such jobs."
    )


def _mpiio(answers: Answers) -> Iterator[Drawn]:
    answer = answers["mpiio_by_month"]
    if months := figures.dated(answer):
        said = "Shares in jobs with several processes."
        figure = figures.mpiio_by_month(months)
        yield _drawn("mpiio_by_month", said, figure, answer, is_wide=True)


def _predictions(answers: Answers) -> Iterator[Drawn]:
    if answer := answers.get("predicted"):
        said = (
            "Exact: the same I/O was measured. Interpolated: between measured sizes. Model: beyond"
            " them. Unknown: nothing of its kind was measured."
        )
        yield _drawn("predicted", said, figures.predicted(answer), answer, is_wide=True)
        for key in ("missing_by_bytes", "missing_by_io"):
            yield _table(key, answers)


def _causes(answer: Sequence[Row]) -> Drawn:
    titles = {check.code: check.title for check in all_checks()}
    names = [f"{row['code']} {titles.get(row['code'], '')}" for row in answer]
    labels = [
        counted(row["jobs"], "job")
        + (f", {duration(row['seconds_at_stake'])} at stake" if row["seconds_at_stake"] else "")
        for row in answer
    ]
    values = [row["jobs"] for row in answer]
    figure = figures.listed_bars(names, values, labels, figures.CAUSES, room=2.3)
    said = "Jobs with each cause, and the time that it takes of all their run times at most."
    return _drawn("causes", said, figure, answer)
