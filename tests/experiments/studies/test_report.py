"""The report page of the shipped testbed."""

from __future__ import annotations

import csv
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from statistics import fmean, median

import pytest

from benchdb.measurements.curves import Curve
from experiments.datasets import DataSet
from experiments.evaluation import Evaluation
from experiments.studies.report import benchmark_rows, run_rows, write_html
from ior_configs import IorConfig

_MIB = 1 << 20


class Tables(HTMLParser):
    """The rows of each table, by the headings above it."""

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
def page(testbed: DataSet, evaluated: Evaluation, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_html(path, "Measured <here>", testbed, evaluated)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tables(page: str) -> dict[tuple[str, str], list[list[str]]]:
    parser = Tables()
    parser.feed(page)
    return parser.rows


@pytest.mark.slow
def test_the_page_is_one_file_with_its_title(page: str) -> None:
    assert "<h1>Measured &lt;here&gt;</h1>" in page
    assert "<script src" not in page
    assert "<link" not in page


def test_the_page_has_the_provenance_of_the_data(page: str, testbed: DataSet) -> None:
    head, _, _ = page.partition("<h2>")
    assert testbed.provenance.command in head
    assert "Darshan 3.5.0&#39;s runtime" in head
    assert "16 processes on 8 compute nodes of testbed, seed 7, 11" in head


def test_table_7_stands_above_our_phases(
    tables: dict[tuple[str, str], list[list[str]]],
) -> None:
    header, report, here = tables["hacc-io", "Phases (RR-9366: Table 7)"]
    assert header[1:4] == ["start, s", "end, s", "time, s"]
    assert report[0] == "RR-9366"
    assert report[1:4] == ["0.032", "2.386", "2.337"]
    assert report[4:] == ["write", "1.73 GiB", "POSIX", "640", "contiguous", "unique", "64", "1"]
    # Each of 16 processes writes ten requests, like those of the report.
    assert here[4:] == ["write", "442 MiB", "POSIX", "160", "contiguous", "unique", "16", "1"]


def test_the_processes_and_nodes_of_the_report_are_shown(page: str) -> None:
    assert "<p>RR-9366: 64 processes on 8 nodes.</p>" in page


def bandwidths(table: Path, name: str) -> dict[int, list[float]]:
    """MiB/s of the runs of a pattern or application, by number of I/O nodes."""
    found: dict[int, list[float]] = defaultdict(list)
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["name"] == name:
                found[int(row["io_nodes"])].append(float(row["bandwidth_mib_s"]))
    return found


def test_table_8_stands_above_our_errors(
    tables: dict[tuple[str, str], list[list[str]]], testbed: DataSet
) -> None:
    rows = tables["hacc-io", "Errors of single reruns (RR-9366: Table 8)"]
    found = {row[0]: row[1:] for row in rows}
    assert found["RR-9366, 10 requests of 3 MB"] == ["", "0.10", "0.22", "0.12", "0.99"]
    assert found["RR-9366, 1 request of 24 MB"] == ["", "0.10", "7.77", "0.15", "61.47"]
    header, arrays = (
        bandwidths(testbed.folder / "benchmarks.csv", name)
        for name in ("w-fpp-contig-24m", "w-fpp-contig-400k")
    )
    errors = []
    for n, reruns in bandwidths(testbed.folder / "applications.csv", "hacc-io").items():
        # Each process writes a header of 24 MiB and arrays of 3.8 MB.
        arrays_mib = 3.8e6 / _MIB
        mean = (24 + arrays_mib) / (24 / fmean(header[n]) + arrays_mib / fmean(arrays[n]))
        errors += [abs(mean - rerun) / rerun for rerun in reruns]
    count, _, composed, _, _ = found["here, nearest benchmarks' means"]
    assert count == "29"
    assert float(composed) == pytest.approx(fmean(errors), abs=0.0075)


def test_the_errors_of_the_prediction_are_those_of_the_published_curve(
    tables: dict[tuple[str, str], list[list[str]]], testbed: DataSet
) -> None:
    rows = tables["hacc-io", "Errors of single reruns (RR-9366: Table 8)"]
    [[count, *values]] = [row[1:] for row in rows if row[0] == "here, prediction"]
    with (testbed.folder / "tables" / "predictions.csv").open(encoding="utf-8") as file:
        means = {
            int(row["io_nodes"]): float(row["predicted_mib_s"])
            for row in csv.DictReader(file)
            if row["application"] == "hacc-io"
        }
    errors = [
        abs(means[n] - rerun) / rerun
        for n, reruns in bandwidths(testbed.folder / "applications.csv", "hacc-io").items()
        for rerun in reruns
    ]
    assert count == "29"
    wanted = (min(errors), fmean(errors), median(errors), max(errors))
    assert list(map(float, values)) == pytest.approx(wanted, abs=0.0055)


def test_an_application_that_the_report_lacks_has_only_our_rows(
    tables: dict[tuple[str, str], list[list[str]]],
) -> None:
    _, *phases = tables["multiphase", "Phases"]
    assert [row[0] for row in phases] == ["here, 1", "here, 2", "here, 3"]
    assert [row[5] for row in phases] == ["64 MiB", "64 MiB", "32 MiB"]


def test_each_application_has_figures_of_its_reruns_and_of_their_halves(
    page: str, testbed: DataSet
) -> None:
    assert page.count("<figure>") == 2 * len(testbed.applications)


def test_dunns_test_stands_beside_the_curve(
    tables: dict[tuple[str, str], list[list[str]]], testbed: DataSet
) -> None:
    header, *rows = tables["hacc-io", "Bandwidth by number of I/O nodes (RR-9366: Figure 6)"]
    with (testbed.folder / "tables" / "dunn.csv").open(encoding="utf-8") as file:
        published = [row for row in csv.DictReader(file) if row["application"] == "hacc-io"]
    shown = [float(row[header.index("Dunn's p")]) for row in rows]
    wanted = [float(row["p_value"]) for row in published]
    assert shown == pytest.approx(wanted, abs=0.0055)


def test_table_9_has_runs_with_direct_access_in_mib_s(
    tables: dict[tuple[str, str], list[list[str]]], page: str, testbed: DataSet
) -> None:
    rows = tables["hacc-io", "Single runs without I/O nodes, MiB/s (RR-9366: Table 9)"]
    found = {row[0]: row[1:] for row in rows}
    assert [found["RR-9366, HACC-IO"][run] for run in (0, 3)] == ["488.3", "41971.4"]
    reruns = bandwidths(testbed.folder / "applications.csv", "hacc-io")[0]
    here = found["here, hacc_io_write_posix_fpp 100000 /scratch/app"]
    assert [cell for cell in here if cell] == [f"{value:.1f}" for value in reruns]
    assert "RR-9366 writes MB/s, as HACC-IO prints it, but means MiB/s." in page


def test_a_program_with_fewer_runs_has_empty_cells() -> None:
    assert run_rows({"one": [1.0], "two": [2.0, 3.0]}) == [
        {"of": "one", "run 1": "1.0", "run 2": ""},
        {"of": "two", "run 1": "2.0", "run 2": "3.0"},
    ]


def test_numbers_of_io_nodes_are_in_order_even_if_the_first_pattern_lacks_one() -> None:
    config = IorConfig.from_command_line("mpiexec -n 2 ior -w -F -b 4m -t 1m")
    first, second = benchmark_rows(
        {
            "first": Curve(1, config, "ior", {0: (10.0, 10.0), 8: (20.0,)}),
            "second": Curve(2, config, "ior", {0: (10.0,), 4: (30.0,), 8: (20.0,)}),
        }
    )
    assert list(first) == list(second) == ["pattern", "0", "4", "8", "IOR"]
    assert (first["0"], first["4"], second["4"]) == ("10 ±0% (2)", "", "30 ±0% (1)")


def test_the_page_explains_the_start_of_the_seconds(page: str) -> None:
    assert page.count("before its processes start") == 3
