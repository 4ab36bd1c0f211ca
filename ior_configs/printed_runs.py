"""Splits a text into the runs of IOR that printed it, such as those of a job script's loop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

from ior_configs.results import mixed_runs

# Launchers put the rank in front of each line: srun --label and flux run --label-io "0: ", mpiexec
# -prepend-rank "[0] ", mpirun --tag-output "[1,0]<stdout>:", with the job's name in Open MPI 5.
_RANK = re.compile(r" *\d+: ?|\[\d+\] |\[(?:\S+@)?\d+,\d+\]<std(?:out|err)>: ?")
# The first line of a run by format, together with the line below it.
_STARTS = {
    "ior-rank-csv": re.compile(r"\s*access,rank,"),
    "ior-csv": re.compile(r"access,bw\(MiB/s\),"),
    "ior-json": re.compile(r'[ \t]*\{\s*"(?:Version|Began)"\s*:'),
    "ior-text": re.compile(r"IOR-\S+: MPI Coordinated Test"),
}
_HEADLESS_TEXT = re.compile(r"Command line\b.*:")
_TEXT_END = re.compile(r"Finished *:")
_ROW = re.compile(r"(?:write|read) +[0-9]")


@dataclass(frozen=True)
class PrintedRun:
    """The lines that one run of IOR printed.

    Attributes
    ----------
    file_format : str
        The format, as `ior_configs.outputs.sniff` calls it.
    first_line : int
        The number of the line where it begins, from 1.
    lines : list of str
        Its lines, without the ranks that a launcher puts in front. Lines that stand before the
        first run, or between two runs, belong to the next run.
    """

    file_format: str
    first_line: int
    lines: list[str]


def printed_runs(lines: Iterable[str]) -> Iterator[PrintedRun]:
    """Yield the runs in the lines of a text; none if IOR did not print it.

    Raises
    ------
    InputError
        If runs wrote to the text at the same time, so that a result stands outside of its run.
    """
    file_format, first_line, start_index, run = None, 1, 0, list[str]()
    for number, (line, below) in enumerate(pairwise(chain(map(_without_rank, lines), [""])), 1):
        start = _format_of_start(line, below)
        if start is None and file_format is None and _HEADLESS_TEXT.match(line):
            start = "ior-text"
        # IOR 3.2 prints the header of its text before its JSON.
        if start and file_format and any(run[start_index + 1 :]):
            yield PrintedRun(file_format, first_line, run)
            run = []
        if start:
            file_format, first_line, start_index = start, number, len(run)
        if file_format is None and is_row(line):
            raise mixed_runs("a result stands between two runs")
        run.append(line)
        if file_format == "ior-text" and _TEXT_END.match(line):
            yield PrintedRun(file_format, first_line, run)
            file_format, run = None, []
    if file_format:
        yield PrintedRun(file_format, first_line, run)


def is_row(line: str) -> bool:
    """Whether a line is a result in IOR's text."""
    return _ROW.match(line) is not None


def _without_rank(line: str) -> str:
    rank = _RANK.match(line)
    if rank is None:
        return line
    # mpiexec repeats the rank where IOR printed a line in pieces.
    return line.replace(rank[0], "") if rank[0][0] == "[" else line[rank.end() :]


def _format_of_start(line: str, below: str) -> str | None:
    """Return the format of the run that begins in a line; None if none begins there."""
    both = f"{line}\n{below}"
    return next((name for name, start in _STARTS.items() if start.match(both)), None)
