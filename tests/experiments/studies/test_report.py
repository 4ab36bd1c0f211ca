"""The report page of the data that is shipped."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from experiments import datasets
from experiments.datasets import DataSet
from experiments.evaluation import Evaluation, evaluate
from experiments.studies.report import direct_rows, phase_rows, write_html
from predictor.reruns import Rerun
from predictor.validation_tables import error_rows

TESTBED = Path(datasets.__file__).parent / "data" / "testbed"


class Tables(HTMLParser):
    """The rows of each table by the heading it stands under."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[tuple[str, str], list[list[str]]] = {}
        self._heading = {"h2": "", "h3": ""}
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"h2", "h3", "td", "th"}:
            self._inside = tag
            if tag[0] == "h":
                self._heading |= {"h3": ""} if tag == "h2" else {}
        if tag in {"h2", "h3"}:
            self._heading[tag] = ""
        if tag == "tr":
            self._here().append([])
        if tag in {"td", "th"}:
            self._here()[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in self._heading:
            self._heading[self._inside] += data
        elif self._inside:
            self._here()[-1][-1] += data.strip()

    def _here(self) -> list[list[str]]:
        return self.rows.setdefault((self._heading["h2"], self._heading["h3"]), [])


@pytest.fixture(scope="module")
def testbed() -> DataSet:
    return datasets.read(TESTBED)


@pytest.fixture(scope="module")
def evaluation(testbed: DataSet) -> Evaluation:
    return evaluate(testbed)


@pytest.fixture(scope="module")
def page(testbed: DataSet, evaluation: Evaluation, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_html(path, "What was measured <here>", testbed, evaluation)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tables(page: str) -> dict[tuple[str, str], list[list[str]]]:
    parser = Tables()
    parser.feed(page)
    return parser.rows


def test_the_page_is_one_file_with_its_title(page: str) -> None:
    assert "<h1>What was measured &lt;here&gt;</h1>" in page
    assert "<script src" not in page
    assert "<link" not in page


def test_the_page_says_where_the_data_is_from(page: str, testbed: DataSet) -> None:
    head, _, _ = page.partition("<h2>")
    assert testbed.provenance.command in head
    assert "Darshan 3.5.0&#x27;s runtime" in head
    assert "16 processes on 8 compute nodes of testbed, seed 7, 11" in head


def test_table_7_stands_above_the_phases_found_here(
    tables: dict[tuple[str, str], list[list[str]]],
) -> None:
    header, report, here = tables["hacc-io", "Phases (RR-9366: Table 7)"]
    assert header[1:4] == ["start, s", "end, s", "time, s"]
    assert report[0] == "RR-9366"
    assert report[1:4] == ["0.032", "2.386", "2.337"]
    assert report[4:] == ["write", "1.73 GiB", "POSIX", "640", "contiguous", "unique", "64", "1"]
    # 16 processes write ten requests each, as those of the report do.
    assert here[4:] == ["write", "442 MiB", "POSIX", "160", "contiguous", "unique", "16", "1"]


def test_what_the_report_ran_on_is_said(page: str) -> None:
    assert "<p>RR-9366: 64 processes on 8 nodes.</p>" in page


def test_table_8_stands_above_the_errors_found_here(
    tables: dict[tuple[str, str], list[list[str]]], evaluation: Evaluation
) -> None:
    rows = tables["hacc-io", "Errors of single reruns (RR-9366: Table 8)"]
    found = {row[0]: row[1:] for row in rows}
    assert found["RR-9366, 10 requests of 3 MB"] == ["", "0.10", "0.22", "0.12", "0.99"]
    assert found["RR-9366, 1 request of 24 MB"] == ["", "0.10", "7.77", "0.15", "61.47"]
    [ours] = [
        row for row in error_rows([evaluation.validated["hacc-io"]]) if row["of"] == "prediction"
    ]
    assert found["here, prediction"][0] == ours["runs"] == "29"
    assert float(found["here, prediction"][2]) == pytest.approx(float(ours["mean"]), abs=0.005)


def test_an_application_that_the_report_does_not_know_stands_alone(
    tables: dict[tuple[str, str], list[list[str]]],
) -> None:
    _, *phases = tables["multiphase", "Phases"]
    assert [row[0] for row in phases] == ["here, 1", "here, 2", "here, 3"]
    assert [row[5] for row in phases] == ["64 MiB", "64 MiB", "32 MiB"]


def test_each_application_has_a_figure_of_its_reruns(page: str, testbed: DataSet) -> None:
    assert page.count("Plotly.newPlot(") == len(testbed.applications)


def test_a_periodic_application_is_held_against_the_first_phase_of_the_report(
    testbed: DataSet,
) -> None:
    first, *ours = phase_rows("periodic-a", testbed.jobs["periodic"])
    assert first[""] == "RR-9366, first of 8"
    assert [row[""] for row in ours] == ["here, 1", "here, 2", "here, 3", "here, 4"]
    assert {row["spatiality"] for row in ours} == {first["spatiality"]}


def test_table_9_is_in_megabytes_and_of_runs_without_i_o_nodes() -> None:
    reruns = [Rerun("hacc-io", 0, 1, 100.0), Rerun("hacc-io", 4, 1, 200.0)]
    rows = {row["of"]: row for row in direct_rows(reruns, benchmark=[50.0, 51.0])}
    assert [rows["RR-9366, HACC-IO"][f"run {n}"] for n in (1, 4)] == ["488.3", "41971.4"]
    assert [rows["here, HACC-IO"][f"run {n}"] for n in (1, 2)] == ["104.9", ""]
    assert [rows["here, benchmarks"][f"run {n}"] for n in (1, 2)] == ["52.4", "53.5"]
