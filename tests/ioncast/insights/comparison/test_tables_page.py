"""The page of tables: marks, figures, names that look like HTML."""

from __future__ import annotations

from pathlib import Path

from ioncast.insights.comparison.tables_page import write_html
from tests.ioncast.insights.published_logs import chombo, madbench, s3d
from tests.ioncast.insights.tables.reading import characterisation
from tests.support.command import run_ioncast
from tests.support.records import posix_record, write_log


def page_of(folder: Path, *paths: Path, by_file: bool = False) -> str:
    page = folder / "page.html"
    write_html([characterisation(path, by_file=by_file) for path in paths], page, 0.05)
    return page.read_text(encoding="utf-8")


def test_values_that_differ_are_marked(tmp_path: Path) -> None:
    text = page_of(tmp_path, s3d(tmp_path, "collective"), s3d(tmp_path, "independent"))
    assert "<mark>≠ 102,401</mark>" in text
    assert "<mark>≠ 6.25 MiB</mark>" not in text


def test_sizes_of_several_runs_share_a_figure(tmp_path: Path) -> None:
    text = page_of(tmp_path, chombo(tmp_path), madbench(tmp_path))
    assert text.count("<h3>POSIX writes by size</h3>") == 1
    assert ">chombo</li>" in text
    assert ">madbench</li>" in text


def test_a_page_needs_no_network(tmp_path: Path) -> None:
    text = page_of(tmp_path, chombo(tmp_path))
    assert "<script src" not in text
    assert "<link" not in text


def test_names_of_files_are_no_html(tmp_path: Path) -> None:
    record = posix_record("/d/<script>alert(1)</script>", WRITES=1)
    log = write_log(tmp_path / "<b>a.darshan", [record], nprocs=1)
    text = page_of(tmp_path, log, chombo(tmp_path), by_file=True)
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<b>a" not in text


def test_the_command_writes_a_page_beside_its_output(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run_ioncast("characterize", "--format", "json", "--html", page, chombo(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("[")
    assert "<h2>Operations</h2>" in page.read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    done = run_ioncast("characterize", "--html", tmp_path / "no/page.html", chombo(tmp_path))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_run_without_io_time_has_no_figure_of_times(tmp_path: Path) -> None:
    """Darshan's times are 0 if calls are faster than the clock."""
    log = write_log(tmp_path / "a.darshan", [posix_record("/d/a", OPENS=1)], nprocs=2)
    text = page_of(tmp_path, log, log)
    assert "<h2>Time per process</h2>" in text
    assert "seconds per process" not in text
