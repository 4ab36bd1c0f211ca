"""`study.json`: the study that a folder belongs to, so that it can continue after a stop."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from experiments.platform.description import Description
from experiments.studies.settings import Settings
from ioncast_base.errors import InputError
from ioncast_base.files import write_file
from ioncast_base.toml_files import TomlTable, read_text

_FILE = "study.json"


class Begun(TomlTable):
    """A study that has begun.

    Attributes
    ----------
    study : str
        Name of the study.
    date : str
        Date of its first run, ISO 8601.
    platform : Description
        The platform that it runs on.
    settings : Settings
        Its settings.
    """

    study: str
    date: str
    platform: Description
    settings: Settings


def write_begun(folder: Path, begun: Begun) -> None:
    """Write the file of a study that begins."""
    write_file(folder / _FILE, begun.model_dump_json(indent=1) + "\n")


def has_begun(folder: Path) -> bool:
    """Whether a folder belongs to a study."""
    return (folder / _FILE).exists()


def read_begun(folder: Path) -> Begun:
    """Read the file of a study that has begun.

    Raises
    ------
    InputError
        If the folder does not belong to a study, or the file is damaged.
    """
    if not has_begun(folder):
        raise InputError(
            "not the folder of a study",
            where=str(folder),
            remedy="start one, for instance with `ioncast experiment hacc`",
        )
    file = folder / _FILE
    try:
        return Begun.model_validate_json(read_text(file))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        key = ".".join(map(str, problem["loc"]))
        place = f" at key `{key}`" if key else ""
        raise InputError(
            f"it is damaged{place}: {problem['msg']}",
            where=str(file),
            remedy="start the study again in another folder",
        ) from error
