from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.applications.spec import collective, multiphase
from experiments.studies import settings
from experiments.studies.settings import Settings, check_settings, obstacle
from experiments.studies.study import STUDIES, Study
from ioncast_base.errors import InputError
from tests.support.emulated import bundled, small
from tests.support.pydarshan import without_pydarshan

SETTINGS = Settings(
    scale=1 / 64, repetitions=2, seed=1, engine="fio", darshan=None, command="ioncast tiny"
)


def study(name: str) -> Study:
    return next(one for one in STUDIES if one.name == name)


def test_files_that_do_not_fit_are_rejected_with_the_largest_scale_that_fits() -> None:
    # Each of 16 processes writes 128 MiB in eight phases, on two replicas. An eighth of that would
    # fill the storage completely.
    with pytest.raises(InputError) as caught:
        check_settings(study("periodic"), bundled("testbed"), replace(SETTINGS, scale=1.0))
    assert str(caught.value) == (
        "platform testbed: periodic-a at scale 1 needs 32g of storage, which has 4g and"
        " keeps 64m free; the largest scale that fits is 0.123"
    )


@pytest.mark.parametrize("scale", [0.123, 0.001])
def test_files_that_fit_are_accepted(scale: float) -> None:
    check_settings(study("periodic"), bundled("testbed"), replace(SETTINGS, scale=scale))


@pytest.mark.parametrize("one", STUDIES, ids=lambda one: one.name)
def test_every_study_fits_on_the_platform_that_comes_with_it(one: Study) -> None:
    check_settings(one, bundled("testbed"), replace(SETTINGS, scale=one.scale))


def test_storage_that_is_too_small_for_every_scale_is_rejected() -> None:
    tiny = small("tiny")
    storage = tiny.storage.model_copy(update={"memory": 1 << 20})
    with pytest.raises(InputError, match="which has 1m and keeps 64m free; give it more memory"):
        check_settings(study("single"), tiny.model_copy(update={"storage": storage}), SETTINGS)


def test_a_darshan_library_that_cannot_trace_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings, "has_mpi4py", lambda: False)
    with_darshan = replace(SETTINGS, darshan=Path("libdarshan.so"))
    with pytest.raises(InputError, match=r"needs mpi4py; .* leave --darshan out"):
        check_settings(study("single"), bundled("testbed"), with_darshan)


def test_a_study_whose_logs_cannot_be_written_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "find_darshan", lambda: None)
    with without_pydarshan(), pytest.raises(InputError, match="needs PyDarshan"):
        check_settings(study("single"), bundled("testbed"), SETTINGS)


def test_fio_cannot_do_collective_mpi_io() -> None:
    assert obstacle(collective(16, 8, 1.0), "fio") == "fio does no MPI-IO"
    assert obstacle(multiphase(16, 8, 1.0), "fio") is None
