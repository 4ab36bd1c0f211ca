"""The applications of the case studies: steps of I/O that are the same in every run.

The sizes of SINGLE, PERIODIC and HACC-IO are those of Inria RR-9366. A scale multiplies the bytes
of each process and does not change the size of a request. Of many small files it multiplies the
number.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Literal

from ioncast_base.errors import InputError
from ioncast_base.kinds import FileAccess

_KIB = 1024
_MIB = 1024**2
# IOR reads and writes words of 8 bytes, so every request is a multiple of them.
_WORD_BYTES = 8
# Bytes of one particle in each of HACC-IO's arrays: xx, yy, zz, vx, vy, vz, phi, pid and mask.
_PARTICLE_BYTES = (4, 4, 4, 4, 4, 4, 4, 8, 2)
_HACC_HEADER_BYTES = 24 * _MIB

Access = tuple[int, int]
"""Offset and size in bytes of one request."""


@dataclass(frozen=True)
class Step:
    """I/O of one kind on files of its own; all processes begin it together.

    Attributes
    ----------
    name : str
        Name of the step's file; files per process add a dot and the rank.
    operation : {"write", "read"}
        The operation. Another program has written the files that a step reads.
    file_access : {"shared", "unique"}
        One file, or a file per process.
    layout : {"contiguous", "1d-strided"}
        Place of a process's requests in a shared file: one after the other, or in turn with
        those of the other processes.
    requests : tuple of (int, int)
        Size in bytes and number of the requests of each process, in this order.
    header_bytes : int
        Size of a header at the start of a process's file, written last; 0 without a header.
    api : {"POSIX", "MPIIO"}
        The interface; MPI-IO calls are collective.
    weights : tuple of int
        Number of times that each process repeats its requests; 0 for a process that takes no
        part. Without weights, each process makes its requests once.
    aggregators : int
        Number of processes that move the data of collective calls, by hints of MPI-IO; 0 leaves it
        to MPI-IO.
    files : int
        Number of files of each process, which it uses one after the other. Several files are in a
        folder of the process, and each has one request: `requests` are then the sizes that the
        files have in turn, each with the number 1.
    """

    name: str
    operation: Literal["write", "read"]
    file_access: FileAccess
    layout: Literal["contiguous", "1d-strided"]
    requests: tuple[tuple[int, int], ...]
    header_bytes: int = 0
    api: Literal["POSIX", "MPIIO"] = "POSIX"
    weights: tuple[int, ...] = ()
    aggregators: int = 0
    files: int = 1

    def __post_init__(self) -> None:
        positive = self.requests and all(size > 0 and count > 0 for size, count in self.requests)
        by_turns = self.layout == "1d-strided"
        refusals = {
            "its requests need a size and a number above 0": not positive,
            "at least one process must take part": bool(self.weights) and not any(self.weights),
            "only files per process can have a header": (
                self.header_bytes > 0 and self.file_access == "shared"
            ),
            "a 1D-strided file must be shared, with requests of one size": by_turns
            and (self.file_access == "unique" or len(self.requests) > 1),
            "all processes of a 1D-strided file must make equally many requests": by_turns
            and len(set(self.weights) - {0}) > 1,
            "collective I/O needs a shared file, and all processes equally": (
                self.api == "MPIIO" and (self.file_access == "unique" or bool(self.weights))
            ),
            "only collective I/O has aggregators": self.aggregators > 0 and self.api != "MPIIO",
            "several files of a process need POSIX, a file per process and single requests": (
                self.files > 1
                and (
                    (self.api, self.file_access) != ("POSIX", "unique")
                    or bool(self.weights or self.header_bytes)
                    or any(count != 1 for _, count in self.requests)
                )
            ),
        }
        for refusal, refused in refusals.items():
            if refused:
                raise InputError(refusal, where=f"step {self.name}")

    def file_name(self, rank: int) -> str:
        """Name of the file that a process uses."""
        return self.name if self.file_access == "shared" else f"{self.name}.{rank:08d}"

    def weight(self, rank: int) -> int:
        """Number of times that a process makes its requests."""
        return self.weights[rank] if self.weights else 1

    def process_bytes(self, rank: int) -> int:
        """Bytes that a process reads or writes."""
        if self.files > 1:
            return sum(size for _, accesses in self._small_files(rank) for _, size in accesses)
        weight = self.weight(rank)
        body = sum(size * count for size, count in self.requests)
        return weight * body + (self.header_bytes if weight else 0)

    def uses(self, rank: int, tasks: int) -> list[tuple[str, list[Access]]]:
        """List the files of a process in their order, with the requests in each.

        A process that takes no part has a file without requests. Parameters are those of
        `accesses`.
        """
        if self.files > 1:
            return self._small_files(rank)
        return [(self.file_name(rank), self.accesses(rank, tasks))]

    def _small_files(self, rank: int) -> list[tuple[str, list[Access]]]:
        sizes = [size for size, _ in self.requests]
        folder = self.file_name(rank)
        return [(f"{folder}/{n:06d}", [(0, sizes[n % len(sizes)])]) for n in range(self.files)]

    def accesses(self, rank: int, tasks: int) -> list[Access]:
        """List the requests of a process in its file; a step with several `files` has `uses`.

        Parameters
        ----------
        rank, tasks : int
            Number of the process, and of all processes.

        Returns
        -------
        list of (int, int)
            Offset and size in bytes of each request, in order; empty for a process that takes no
            part.
        """
        if not self.weight(rank):
            return []
        sizes = [size for size, count in self.requests for _ in range(count)] * self.weight(rank)
        if self.layout == "1d-strided":
            taking_part = [other for other in range(tasks) if self.weight(other)]
            turn, round_bytes = taking_part.index(rank), len(taking_part) * sizes[0]
            return [(k * round_bytes + turn * size, size) for k, size in enumerate(sizes)]
        before = sum(self.process_bytes(other) for other in range(rank))
        first = self.header_bytes if self.file_access == "unique" else before
        offsets = itertools.accumulate(sizes, initial=first)
        header = [(0, self.header_bytes)] if self.header_bytes else []
        return [*zip(offsets, sizes, strict=False), *header]


@dataclass(frozen=True)
class Application:
    """An application: its processes do steps of I/O one after the other, with pauses.

    Attributes
    ----------
    name : str
        Name of letters, digits and dashes.
    tasks, nodes : int
        Number of processes, and of the compute nodes that they are spread over.
    steps : tuple of Step
        The steps; their names differ.
    pause_s : float
        Seconds between two steps. The extraction tells steps of one kind apart only if the
        pause is longer than its `time_distance`.
    """

    name: str
    tasks: int
    nodes: int
    steps: tuple[Step, ...]
    pause_s: float = 0.0

    def __post_init__(self) -> None:
        for step in self.steps:
            if step.weights and len(step.weights) != self.tasks:
                raise InputError(
                    f"{len(step.weights)} weights for {self.tasks} processes",
                    where=f"step {step.name}",
                )
        if len({step.name for step in self.steps}) < len(self.steps):
            raise InputError("two steps have the same name", where=self.name)

    def step_bytes(self, step: Step) -> int:
        """Bytes that all processes read or write in one step."""
        return sum(step.process_bytes(rank) for rank in range(self.tasks))

    @property
    def bytes(self) -> int:
        """Bytes that all processes read and write in all steps."""
        return sum(self.step_bytes(step) for step in self.steps)


def single_a(tasks: int, nodes: int, scale: float) -> Application:
    """RR-9366's SINGLE-A: a shared file, contiguous, 128 MiB per process in requests of 2 MiB.

    Parameters
    ----------
    tasks, nodes : int
        Number of processes and of compute nodes.
    scale : float
        Share of the report's bytes per process.
    """
    step = Step("data", "write", "shared", "contiguous", _requests(128 * _MIB, 2 * _MIB, scale))
    return Application("single-a", tasks, nodes, (step,))


def single_b(tasks: int, nodes: int, scale: float) -> Application:
    """RR-9366's SINGLE-B: a file per process of 64 MiB in requests of 4 MiB."""
    step = Step("data", "write", "unique", "contiguous", _requests(64 * _MIB, 4 * _MIB, scale))
    return Application("single-b", tasks, nodes, (step,))


def periodic_a(
    tasks: int, nodes: int, scale: float, *, phases: int = 8, pause_s: float = 10.0
) -> Application:
    """RR-9366's PERIODIC-A: in each phase a shared 1D-strided file, 128 MiB per process in 512 KiB.

    Parameters
    ----------
    tasks, nodes, scale : int, int, float
        As for `single_a`.
    phases : int
        Number of phases.
    pause_s : float
        Seconds between two phases.
    """
    requests = _requests(128 * _MIB, 512 * _KIB, scale)
    steps = tuple(
        Step(f"data.{number}", "write", "shared", "1d-strided", requests)
        for number in range(phases)
    )
    return Application("periodic-a", tasks, nodes, steps, pause_s)


def periodic_b(
    tasks: int, nodes: int, scale: float, *, phases: int = 8, pause_s: float = 10.0
) -> Application:
    """RR-9366's PERIODIC-B: in each phase a file per process, 128 MiB in requests of 4 KiB.

    Its parameters are those of `periodic_a`.
    """
    requests = _requests(128 * _MIB, 4 * _KIB, scale)
    steps = tuple(
        Step(f"data.{number}", "write", "unique", "contiguous", requests)
        for number in range(phases)
    )
    return Application("periodic-b", tasks, nodes, steps, pause_s)


def hacc_io(tasks: int, nodes: int, scale: float, *, particles: int = 100_000) -> Application:
    """HACC-IO's checkpoint: a file per process with nine arrays and a header, written last.

    Parameters
    ----------
    tasks, nodes, scale : int, int, float
        As for `single_a`. HACC-IO itself has scale 1, because its header is always 24 MiB.
    particles : int
        Particles of each process, before scaling.
    """
    scaled = max(1, round(particles * scale))
    arrays = tuple((size * scaled, 1) for size in _PARTICLE_BYTES)
    header_bytes = _whole_words(_HACC_HEADER_BYTES * scale)
    step = Step("checkpoint", "write", "unique", "contiguous", arrays, header_bytes)
    return Application("hacc-io", tasks, nodes, (step,))


def hacc_io_particles(application: Application) -> int | None:
    """Number of particles with which HACC-IO itself does the I/O of an application.

    Returns
    -------
    int or None
        Particles of each process; None if HACC-IO cannot do it.
    """
    particles = application.steps[0].requests[0][0] // _PARTICLE_BYTES[0]
    same = hacc_io(application.tasks, application.nodes, 1.0, particles=particles)
    return particles if application == same else None


def multiphase(tasks: int, nodes: int, scale: float, *, pause_s: float = 1.5) -> Application:
    """Read a shared input, write a checkpoint per process, then a shared 1D-strided output."""
    steps = (
        Step("input", "read", "shared", "contiguous", _requests(128 * _MIB, _MIB, scale)),
        Step("checkpoint", "write", "unique", "contiguous", _requests(128 * _MIB, _MIB, scale)),
        Step("output", "write", "shared", "1d-strided", _requests(64 * _MIB, 64 * _KIB, scale)),
    )
    return Application("multiphase", tasks, nodes, steps, pause_s)


def irregular(tasks: int, nodes: int, scale: float, *, pause_s: float = 1.5) -> Application:
    """Write uneven files per process, then a shared file from every fourth process only."""
    uneven = tuple(1 + rank % 4 for rank in range(tasks))
    some = tuple(int(rank % 4 == 0) for rank in range(tasks))
    steps = (
        Step(
            "domain",
            "write",
            "unique",
            "contiguous",
            _requests(32 * _MIB, 256 * _KIB, scale),
            weights=uneven,
        ),
        Step(
            "report",
            "write",
            "shared",
            "contiguous",
            _requests(128 * _MIB, 128 * _KIB, scale),
            weights=some,
        ),
    )
    return Application("irregular", tasks, nodes, steps, pause_s)


def collective(tasks: int, nodes: int, scale: float) -> Application:
    """Write a shared 1D-strided file with collective MPI-IO, in requests of 128 KiB."""
    requests = _requests(64 * _MIB, 128 * _KIB, scale)
    step = Step("field", "write", "shared", "1d-strided", requests, api="MPIIO")
    return Application("collective", tasks, nodes, (step,))


def aggregated(tasks: int, nodes: int, scale: float) -> Application:
    """Write as `collective` does, through one aggregator for every fourth process."""
    [step] = collective(tasks, nodes, scale).steps
    hinted = replace(step, aggregators=max(tasks // 4, 1))
    return Application("aggregated", tasks, nodes, (hinted,))


def small_files(tasks: int, nodes: int, scale: float, *, pause_s: float = 1.5) -> Application:
    """Write many small files of 4, 8 and 16 KiB, then read as many that are there before.

    The scale multiplies the number of files, which is 200 for each process, and not their sizes.
    """
    files = max(2, round(200 * scale))
    sizes = tuple((kib * _KIB, 1) for kib in (4, 8, 16))
    steps = (
        Step("results", "write", "unique", "contiguous", sizes, files=files),
        Step("samples", "read", "unique", "contiguous", sizes, files=files),
    )
    return Application("small-files", tasks, nodes, steps, pause_s)


def _requests(process_bytes: int, request_bytes: int, scale: float) -> tuple[tuple[int, int], ...]:
    """Scale the bytes of a process; a request gets smaller only if they are less than one."""
    scaled = _whole_words(process_bytes * scale)
    if scaled < request_bytes:
        return ((scaled, 1),)
    return ((request_bytes, round(scaled / request_bytes)),)


def _whole_words(n_bytes: float) -> int:
    return max(1, round(n_bytes / _WORD_BYTES)) * _WORD_BYTES
