"""The arbiter's list for the hooks: which I/O nodes they give to a job."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ioncast_base.errors import InputError
from ioncast_base.files import program_of
from scheduler_plugin.arbiter.placement import Names, Program
from scheduler_plugin.roots_files import write_in_place

# As in io_nodes.sh: the hooks read no more.
LONGEST_BYTES = 65_536
_LONGEST_PAIRS_BYTES = 16 << 20


def names_of_jobs(folder: str, job_ids: Sequence[int]) -> dict[int, Names]:
    """Read the names of jobs' I/O nodes, which the hooks noted; jobs without names are left out."""
    found = {}
    for job_id in job_ids:
        try:
            with (Path(folder) / f"{job_id}.hosts").open("rb") as file:
                text = file.read(LONGEST_BYTES).decode(errors="replace")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=folder) from error
        names = tuple(line.split()[0] for line in text.splitlines() if line.strip())
        found[job_id] = tuple(dict.fromkeys(names))
    return {job_id: names for job_id, names in found.items() if names}


def disturbing_pairs(path: str) -> frozenset[frozenset[Program]]:
    """Read the pairs of programs that `ioncast interference --store DIR --format json` prints.

    Raises
    ------
    InputError
        If the file cannot be read or has something else.
    """
    try:
        with Path(path).open("rb") as file:
            pairs = json.loads(file.read(_LONGEST_PAIRS_BYTES))
        return frozenset(
            frozenset(
                (program_of(str(pair[f"{by}program"])), int(pair[f"{by}processes"]))
                for by in ("", "by_")
            )
            for pair in pairs
            if pair["is_disturbing"]
        )
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=path) from error
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        remedy = "write it with `ioncast interference --store DIR --format json`"
        raise InputError("these are not pairs of programs", where=path, remedy=remedy) from error


def write_list(path: str, names: Mapping[int, Names], now_s: int, slow: Sequence[str] = ()) -> None:
    """Write the names of waiting jobs, the first ones first, and the slow I/O nodes.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    write_in_place(Path(path), list_text(names, now_s, slow).encode(), "PLACEMENT")


def list_text(names: Mapping[int, Names], now_s: int, slow: Sequence[str] = ()) -> str:
    """The text of the list, at most as long as the hooks read; jobs at the end are left out.

    Jobs that are not in the list get the slow I/O nodes last, too.
    """
    first, last = f"ioncast-placement {now_s}\n", f"end {now_s}\n"
    if slow:
        first += f"last {' '.join(slow)}\n"
    lines = "".join(_lines(names, LONGEST_BYTES - len(first) - len(last)))
    return f"{first}{lines}{last}"


def _lines(names: Mapping[int, Names], most_bytes: int) -> Iterator[str]:
    for job_id, chosen in names.items():
        line = f"{job_id} {' '.join(chosen)}\n"
        most_bytes -= len(line.encode())
        if most_bytes < 0:
            return
        yield line
