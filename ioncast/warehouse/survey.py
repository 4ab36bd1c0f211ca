"""The survey of a site: the answers of named queries, which tables and pages show.

The questions are those of Carns et al. (2009), section IV-B, and some of our own: unusable logs,
access sizes, systems, worst runs and causes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ioncast.warehouse.queries import Query, query_of

if TYPE_CHECKING:
    from ioncast.warehouse import engine

Row = Mapping[str, Any]
Ask = Callable[[str, Mapping[str, str]], Sequence[Row]]
"""Answers a named query with values of its parameters, as a user writes them, by rows."""

# Rows of a list of the worst and the largest.
_MOST = "10"


class SurveyQuestion(NamedTuple):
    """A question of the survey: its title, the named query, and values of parameters."""

    title: str
    query: str
    given: Mapping[str, str] = {}


def _largest(title: str, query: str) -> dict[str, SurveyQuestion]:
    """Ask for users or programs in the order of each amount."""
    orders = {"bytes": "bytes", "io": "I/O time", "metadata": "metadata time", "jobs": "jobs"}
    return {
        f"{query}_by_{order}": SurveyQuestion(
            f"{title} by {words}", query, {"by": order, "limit": _MOST}
        )
        for order, words in orders.items()
    }


QUESTIONS: Mapping[str, SurveyQuestion] = {
    "totals": SurveyQuestion("All jobs", "totals"),
    "by_month": SurveyQuestion("Jobs by month", "by-month"),
    "by_system": SurveyQuestion("Jobs by system", "by-system"),
    "io_share": SurveyQuestion("Processes' time in I/O", "io-share"),
    **_largest("Users", "users"),
    **_largest("Programs", "programs"),
    "sizes_all": SurveyQuestion("Sizes of files", "sizes-all"),
    "sizes": SurveyQuestion("Sizes of files by file system", "sizes"),
    "sizes_histogram": SurveyQuestion("Files by size", "sizes-histogram"),
    "files_per_job": SurveyQuestion("Files of a job", "files-per-job"),
    "files_by_processes": SurveyQuestion("Files of a job by processes", "files-by-processes"),
    "reads_writes": SurveyQuestion("Reads and writes by API", "reads-writes"),
    "reads_writes_by_month": SurveyQuestion("Reads and writes by month", "reads-writes-by-month"),
    "access_sizes": SurveyQuestion("Requests by size", "access-sizes"),
    "mpiio": SurveyQuestion("MPI-IO in jobs of several processes", "mpiio"),
    "mpiio_by_month": SurveyQuestion("MPI-IO by month", "mpiio-by-month"),
    "worst_runs": SurveyQuestion("Runs with most seconds at stake", "worst-runs", {"limit": _MOST}),
    "causes": SurveyQuestion("Most frequent causes", "causes", {"limit": _MOST}),
    "unusable": SurveyQuestion("Logs by reason", "unusable"),
}


TITLES: Mapping[str, str] = {
    **{key: question.title for key, question in QUESTIONS.items()},
    "predicted": "I/O by its match with a benchmark",
    "missing_by_bytes": "Patterns without a benchmark, by bytes",
    "missing_by_io": "Patterns without a benchmark, by I/O time",
}
"""The titles of all answers; the last three need a benchmark database."""


@dataclass(frozen=True)
class Survey:
    """The answers to all questions, by their keys in `TITLES`.

    `system` and `month` (as "2026-01" or "2026-01-2026-03") tell which jobs count; None: all.
    """

    system: str | None
    month: str | None
    answers: Mapping[str, tuple[Row, ...]]

    def only(self, key: str) -> Row:
        """Return the row of an answer that always has one row."""
        [row] = self.answers[key]
        return row


def survey_queries() -> list[Query]:
    """List the queries of all questions."""
    return [query_of(question.query) for question in QUESTIONS.values()]


def by_name(ask: engine.Ask) -> Ask:
    """Make the function that answers named queries."""

    def answer(name: str, given: Mapping[str, str]) -> Sequence[Row]:
        query = query_of(name)
        rows: list[Row] = ask(query, query.values(given)).to_pylist()
        return rows

    return answer


def survey_of(ask: Ask, *, system: str | None = None, month: str | None = None) -> Survey:
    """Ask all questions about the jobs of a system in some months."""
    chosen = {name: value for name, value in (("system", system), ("month", month)) if value}
    answers = {
        key: tuple(ask(question.query, {**chosen, **question.given}))
        for key, question in QUESTIONS.items()
    }
    return Survey(system, month, answers)


def with_coverage(survey: Survey, predicted: Sequence[Row], missing: Sequence[Row]) -> Survey:
    """Add which I/O would be predicted how well, and the largest patterns without a benchmark."""
    by_io = sorted(missing, key=lambda row: -row["io_seconds"])
    most = int(_MOST)
    found = {
        "predicted": tuple(predicted),
        "missing_by_bytes": tuple(missing[:most]),
        "missing_by_io": tuple(by_io[:most]),
    }
    return replace(survey, answers={**survey.answers, **found})


def to_json(survey: Survey) -> dict[str, Any]:
    """Turn a survey into plain values for JSON."""
    answers = {key: list(map(dict, rows)) for key, rows in survey.answers.items()}
    return {"system": survey.system, "month": survey.month, **answers}


CSV_COLUMNS = ("question", "row", "name", "value")


def to_rows(survey: Survey) -> Iterator[Row]:
    """List each value of a survey with its question, its row (from 1) and its name."""
    for key, rows in survey.answers.items():
        for number, row in enumerate(rows, start=1):
            for name, value in row.items():
                yield dict(zip(CSV_COLUMNS, (key, number, name, value), strict=True))
