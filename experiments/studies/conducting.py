"""Conducts a study: brings its platform up, measures, predicts, and writes tables and report."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from experiments.datasets import DataSet
from experiments.platform.description import Description, read_description
from experiments.platform.emulated import Emulated
from experiments.platform.emulator import down, find, up
from experiments.studies.begun import has_begun, read_begun
from experiments.studies.run import run_study
from experiments.studies.settings import Settings, check_new, check_settings
from experiments.studies.study import STUDIES, Study
from ioncast_base import signals
from ioncast_base.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from experiments.evaluation import Evaluation

REPORT = "report.html"
_TOML = ".toml"


def conduct(
    study: Study, place: str, output: Path | None, settings: Settings
) -> tuple[DataSet, Evaluation]:
    """Measure what a study needs, predict its applications, and write tables and report.

    Parameters
    ----------
    study : Study
        The study.
    place : str
        The name of a platform that is up, or the TOML file of one to bring up for the study.
    output : Path or None
        Folder for the results; None for one that is named after study and platform.
    settings : Settings
        The settings of the study.

    Returns
    -------
    DataSet
        The measurements; tables and `REPORT` are in its folder.
    Evaluation
        The predictions from them.

    Raises
    ------
    InputError
        If the folder exists or the platform cannot run the study; nothing has been started.
    IoncastError
        If the platform does not come up, or a kind of runs fails as a whole.
    """
    is_new = place.endswith(_TOML)
    description = read_description(place) if is_new else find(place).description
    folder = output or Path(f"{study.name}-{description.name}")
    check_new(folder)
    check_settings(study, description, settings)
    platform = brought_up(description) if is_new else nullcontext(Emulated(description))
    data = _measure(study, platform, folder, settings)
    return data, _publish(study, data)


def resume(folder: Path) -> tuple[DataSet, Evaluation]:
    """Continue a study that was stopped: run what has not succeeded, then as `conduct`.

    If its platform is not up, the platform is brought up for the study.

    Raises
    ------
    InputError
        If the folder does not belong to a study, or another platform of this name is up.
    IoncastError
        As `conduct`.
    """
    begun = read_begun(folder)
    study = next((study for study in STUDIES if study.name == begun.study), None)
    if study is None:
        raise InputError(f"there is no study called {begun.study!r}", where=str(folder))
    check_settings(study, begun.platform, begun.settings)
    platform = _up_already(begun.platform, folder)
    data = _measure(study, platform or brought_up(begun.platform), folder, begun.settings)
    return data, _publish(study, data)


def _up_already(description: Description, folder: Path) -> AbstractContextManager[Emulated] | None:
    """The platform of a study, if it is up; the study leaves it up."""
    try:
        emulated = find(description.name)
    except UnknownNameError:
        return None
    if emulated.description != description:
        raise InputError(
            f"the study began on another platform than the {description.name} that is up",
            where=str(folder),
            remedy=f"take it down: `ioncast platform down {description.name}`",
        )
    return nullcontext(emulated)


def _measure(
    study: Study, platform: AbstractContextManager[Emulated], folder: Path, settings: Settings
) -> DataSet:
    """Run a study; if it fails or is stopped, nothing of it keeps running."""
    with signals.raised(), platform as emulated:
        try:
            return run_study(study, emulated, folder, settings)
        except BaseException:
            if has_begun(folder):
                again = f"ioncast experiment resume {shlex.quote(str(folder))}"
                click.echo(f"ioncast: {folder} is incomplete: continue with `{again}`", err=True)
            raise


def _publish(study: Study, data: DataSet) -> Evaluation:
    """Write the tables and the report beside the measurements."""
    # These import SciPy, which takes longer than rejecting wrong settings.
    from experiments.evaluation import evaluate  # noqa: PLC0415
    from experiments.published import publish  # noqa: PLC0415
    from experiments.published_tables import tables_of  # noqa: PLC0415
    from experiments.studies.report import write_html  # noqa: PLC0415

    evaluation = evaluate(data)
    publish(data.folder, tables_of(data, evaluation))
    write_html(data.folder / REPORT, study.title, data, evaluation)
    return evaluation


@contextmanager
def brought_up(description: Description) -> Iterator[Emulated]:
    """A platform that is up as long as the study runs."""
    emulated = up(description)
    try:
        yield emulated
    finally:
        with signals.ignored():
            down(description.name)
