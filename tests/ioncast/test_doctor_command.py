"""`ioncast doctor` on databases and services that are there, missing, damaged and secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchdb.store.database import open_database
from ioncast.cli import cli
from ioncast_base.errors import EXTRAS

PROJECT = Path(__file__).resolve().parents[2]
TESTBED = PROJECT / "experiments" / "data" / "testbed" / "benchmarks.csv"


def rows_of(*options: str, code: int = 0, **variables: str) -> dict[str, dict[str, str]]:
    """The rows by subject; a service and a database that another test left do not count."""
    env = {"IONCAST_DB": "", "IONCAST_ADDRESS": ""} | variables
    done = CliRunner().invoke(cli, ["doctor", "--format", "json", *options], env=env)
    assert done.exit_code == code, done.output
    return {row["subject"]: row for row in json.loads(done.stdout)}


def test_a_new_user_is_told_how_to_get_a_database(tmp_path: Path) -> None:
    rows = rows_of(XDG_DATA_HOME=str(tmp_path))
    assert str(tmp_path / "ioncast" / "ioncast.sqlite") in rows["database"]["found"]
    assert (rows["database"]["status"], "ioncast bench import" in rows["database"]["remedy"]) == (
        "WARN",
        True,
    )
    installed = rows["extras"]["found"] + "".join(row for row in rows if row.startswith("extra "))
    assert all(extra in installed for extra in EXTRAS.values())


def test_measurements_and_old_models_are_told(tmp_path: Path) -> None:
    place = tmp_path / "bench.sqlite"
    open_database(place).dispose()
    assert rows_of("--db", str(place))["systems"]["status"] == "WARN"
    imported = ["bench", "import", str(TESTBED), "--system", "testbed", "--db", str(place)]
    assert CliRunner().invoke(cli, imported).exit_code == 0
    rows = rows_of("--db", str(place))
    assert rows["database"]["found"].endswith("1 system with measurements")
    assert "ioncast model fit --system testbed" in rows["model of testbed"]["remedy"]
    assert "systems" not in rows


def test_a_damaged_database_fails_with_its_place(tmp_path: Path) -> None:
    place = tmp_path / "bench.sqlite"
    place.write_bytes(b"damaged" * 100)
    row = rows_of("--db", str(place), code=1)["database"]
    assert (row["status"], row["found"].startswith(f"{place}: ")) == ("FAIL", True)


def test_no_secret_is_shown(tmp_path: Path) -> None:
    """The output goes into support tickets."""
    pytest.importorskip("psycopg")
    url = "postgresql+psycopg://me:hunter2@127.0.0.1:9/x?password=hunter3"
    secrets = {"IONCAST_DB": url, "IONCAST_TOKEN": "hunter4"}
    rows = rows_of(code=1, **secrets, IONCAST_ADDRESS="http://127.0.0.1:9")
    assert "hunter" not in json.dumps(rows)
    assert "IONCAST_TOKEN" in rows["variables"]["found"]
    assert {rows[part]["status"] for part in ("database", "service")} == {"FAIL"}
    assert "\\n" not in rows["database"]["found"]
