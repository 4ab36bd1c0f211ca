"""The settings file of the checks: TOML with other thresholds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, create_model

from ioncast.insights.checks.values import Thresholds
from ioncast_base.limits import MOST_BYTES
from ioncast_base.toml_files import TomlTable, read_toml


def read_thresholds(path: str | Path) -> Thresholds:
    """Read the thresholds of a settings file; those that are not in it have their defaults."""
    return Thresholds(**read_toml(Path(path), _FILE).model_dump())


def _limits(name: str, default: float) -> Any:
    """Make the type of a key: a share is at most 1, a count is a whole number."""
    if isinstance(default, bool):
        return bool
    most = 1 if "share" in name or "probability" in name else MOST_BYTES
    least = -1 if "correlation" in name else 0
    return Annotated[type(default), Field(ge=least, le=most)]


_FIELDS: dict[str, Any] = {
    name: (_limits(name, default), default) for name, default in vars(Thresholds()).items()
}
_FILE: type[TomlTable] = create_model("_FILE", __base__=TomlTable, **_FIELDS)
