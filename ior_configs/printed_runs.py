"""Splits a text into the runs of IOR that printed it, such as those of a job script's loop."""

from __future__ import annotations

import re
from collections import deque
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
_FIRST_CHARACTERS = frozenset("a{I")
_LINES_ABOVE = 1000
_HEADLESS_TEXT = re.compile(r"Command line\b.*:")
_TEXT_END = re.compile(r"Finished *:")
_ROW = re.compile(r"(?:write|read) +[0-9]")


@dataclass(frozen=True)
class PrintedRun:
    """The lines of one run, without a launcher's ranks in front; read them before the next run.

    At most the last 1000 lines before the first run, or between two runs, belong to the next run.
    """

    file_format: str
    first_line: int
    lines: Iterator[str]


def printed_runs(lines: Iterable[str]) -> Iterator[PrintedRun]:
    """Yield the runs in a text, without holding them; an InputError if several runs are mixed."""
    texts = _Texts(lines)
    while run := texts.next_run():
        yield run
        deque(run.lines, maxlen=0)


class _Texts:
    """The lines of a text with their numbers and the lines below them, up to the next run."""

    def __init__(self, lines: Iterable[str]) -> None:
        below = chain(map(without_rank, lines), [""])
        self._rest = enumerate(pairwise(below), 1)
        # The line where the next run begins, if the last run ended there.
        self._start: tuple[str, int, str] | None = None

    def next_run(self) -> PrintedRun | None:
        above = deque[str](maxlen=_LINES_ABOVE)
        start = self._start or self._find_start(above)
        if start is None:
            return None
        file_format, first_line, line = start
        opening = [*above, line]
        for number, (line, below) in self._rest:
            # IOR 3.2 prints the header of its text before its JSON.
            begun = format_of_start(line, below)
            if begun:
                file_format, first_line = begun, number
            opening.append(line)
            if line and not begun:
                break
        return PrintedRun(file_format, first_line, chain(opening, self._body(file_format)))

    def _find_start(self, above: deque[str]) -> tuple[str, int, str] | None:
        for number, (line, below) in self._rest:
            file_format = format_of_start(line, below)
            if file_format is None and _HEADLESS_TEXT.match(line):
                file_format = "ior-text"
            if file_format:
                return file_format, number, line
            if is_row(line):
                raise mixed_runs("a result stands between two runs")
            above.append(line)
        return None

    def _body(self, file_format: str) -> Iterator[str]:
        """Yield the lines of a run up to its end or to the start of the next one."""
        self._start = None
        for number, (line, below) in self._rest:
            begun = format_of_start(line, below)
            if begun:
                self._start = begun, number, line
                return
            yield line
            if file_format == "ior-text" and _TEXT_END.match(line):
                return


def is_row(line: str) -> bool:
    """Whether a line is a result in IOR's text."""
    return _ROW.match(line) is not None


def without_rank(line: str) -> str:
    """Remove the rank that a launcher put in front of a line."""
    rank = _RANK.match(line)
    if rank is None:
        return line
    # mpiexec repeats the rank where IOR printed a line in pieces.
    return line.replace(rank[0], "") if rank[0][0] == "[" else line[rank.end() :]


def format_of_start(line: str, below: str) -> str | None:
    """Return the format of the run that begins in a line; None if none begins there."""
    if line.lstrip()[:1] not in _FIRST_CHARACTERS:
        return None
    both = f"{line}\n{below}"
    return next((name for name, start in _STARTS.items() if start.match(both)), None)
