from __future__ import annotations

import pytest

from experiments.applications.spec import Application
from experiments.studies.rr9366 import APPLICATIONS
from experiments.studies.study import STUDIES, Study

TASKS, NODES = 16, 8


def applications(name: str, scale: float = 1.0) -> tuple[Application, ...]:
    study = next(study for study in STUDIES if study.name == name)
    return study.applications(TASKS, NODES, scale)


def test_the_studies_have_all_applications_of_the_report_and_more() -> None:
    names = {one.name for study in STUDIES for one in study.applications(TASKS, NODES, 1.0)}
    assert names == {
        *(one.name.lower() for one in APPLICATIONS),
        "multiphase",
        "irregular",
        "collective",
        "aggregated",
        "small-files",
    }


def test_at_full_size_processes_move_the_bytes_of_the_report() -> None:
    full = {one.name: one for study in STUDIES for one in study.applications(TASKS, NODES, 1.0)}
    for reported in APPLICATIONS:
        application = full[reported.name.lower()]
        phase = application.steps[0]
        per_process = reported.phase.bytes // reported.processes
        assert application.step_bytes(phase) == TASKS * per_process
        assert phase.file_access == reported.phase.files


def test_the_periodic_applications_have_the_phases_and_pauses_of_the_report() -> None:
    for application in applications("periodic"):
        [known] = [one for one in APPLICATIONS if one.name.lower() == application.name]
        assert len(application.steps) == known.n_phases == 8
        # IOR's delay (-d) comes before each phase, so the first one begins after it.
        assert application.pause_s == round(known.phase.start) == 10
        assert len({step.file_name(0) for step in application.steps}) == 8


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_study_scales_the_bytes(study: Study) -> None:
    half = study.applications(TASKS, NODES, 0.5)
    for application, scaled in zip(study.applications(TASKS, NODES, 1.0), half, strict=True):
        assert scaled.bytes == pytest.approx(application.bytes / 2, rel=0.05)
