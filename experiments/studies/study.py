"""The case studies: their applications, and the default share of the applications' bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from experiments.applications import spec
from experiments.applications.spec import Application

Builder = Callable[[int, int, float], Application]
"""Makes an application from a number of processes, a number of compute nodes and a scale."""


@dataclass(frozen=True)
class Study:
    """A case study.

    Attributes
    ----------
    name : str
        Name of its command.
    title, summary : str
        Its subject, as a heading and as a sentence.
    builders : tuple of callable
        Builders of its applications.
    scale : float
        Default share of the applications' bytes per process; RR-9366 has 1.
    """

    name: str
    title: str
    summary: str
    builders: tuple[Builder, ...]
    scale: float

    def applications(self, tasks: int, nodes: int, scale: float) -> tuple[Application, ...]:
        """Build the applications for a number of processes and of compute nodes."""
        return tuple(build(tasks, nodes, scale) for build in self.builders)


STUDIES = (
    Study(
        name="single",
        title="Case study I: one phase of I/O",
        summary="Run case study I: one phase, in a shared file (SINGLE-A) and in a file per process"
        " (SINGLE-B).",
        builders=(spec.single_a, spec.single_b),
        scale=1 / 8,
    ),
    Study(
        name="periodic",
        title="Case study II: the same phase several times",
        summary="Run case study II: eight phases of the same I/O, ten seconds apart and each with"
        " new files, in a shared 1D-strided file (PERIODIC-A) and with small requests to a file"
        " per process (PERIODIC-B).",
        builders=(spec.periodic_a, spec.periodic_b),
        scale=1 / 128,
    ),
    Study(
        name="hacc",
        title="Case study III: HACC-IO",
        summary="Run case study III: HACC-IO's checkpoint, nine arrays and a header in a file per"
        " process.",
        builders=(spec.hacc_io,),
        scale=1 / 8,
    ),
    Study(
        name="applications",
        title="More applications",
        summary="Run more applications: phases of different kinds, uneven I/O of some of the"
        " processes, and collective MPI-IO with and without aggregators.",
        builders=(spec.multiphase, spec.irregular, spec.collective, spec.aggregated),
        scale=1 / 32,
    ),
    Study(
        name="files",
        title="Many small files",
        summary="Run an application of many small files: each process writes 200 files of 4 to"
        " 16 KiB in a folder of its own, and then reads as many. mdtest measures rates of files"
        " beside the benchmarks.",
        builders=(spec.small_files,),
        scale=1.0,
    ),
)
