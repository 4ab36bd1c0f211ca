"""Tokens are shown once, stored as hashes, and never valid again after they are revoked."""

from __future__ import annotations

import hashlib
import json
import re
import string
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine, text

from benchdb.store.database import open_database, transaction
from ioncast.cli import cli
from ioncast.service.store.credentials import ROLES, digest
from ioncast.service.store.tokens import (
    Token,
    add_token,
    revoke_token,
    tokens,
    valid_tokens,
)
from ioncast_base.errors import ConflictError, InputError, UnknownNameError
from ioncast_base.times import instant

pytestmark = pytest.mark.both_databases

ROOT = Path(__file__).resolve().parents[4]
# 256 bits in the letters of RFC 4648, section 5.
SHAPE = re.compile("ion_[A-Za-z0-9_-]{43}")
Ioncast = Callable[..., Result]


def add(engine: Engine, name: str = "slurm", role: str = "scheduler") -> str:
    with transaction(engine, write=True) as connection:
        return add_token(connection, name, role)


def revoke(engine: Engine, name: str = "slurm") -> bool:
    with transaction(engine, write=True) as connection:
        return revoke_token(connection, name)


def all_tokens(engine: Engine) -> list[Token]:
    with transaction(engine) as connection:
        return tokens(connection)


def valid(engine: Engine) -> list[tuple[str, str, str, str | None]]:
    with transaction(engine) as connection:
        return valid_tokens(connection)


def test_a_hash_is_the_sha_256_of_the_token() -> None:
    # FIPS 180-2, appendix B.1.
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert digest("abc") == expected
    assert digest("ion_\ud800") != digest("ion_?")


def test_a_token_is_256_random_bits_and_only_its_hash_is_stored(database: Engine) -> None:
    made = [add(database, f"number {i}", ROLES[i % 3]) for i in range(100)]
    assert all(SHAPE.fullmatch(token) for token in made)
    assert len(set(made)) == 100
    # 4,300 random characters contain all 64 letters.
    assert set("".join(token[4:] for token in made)) == set(
        string.ascii_letters + string.digits + "-_"
    )
    with transaction(database) as connection:
        stored = repr(connection.execute(text("SELECT * FROM tokens")).all())
    for i, token in enumerate(made):
        assert token[4:] not in stored
        assert hashlib.sha256(token.encode()).hexdigest() in stored
        assert (digest(token), f"number {i}", ROLES[i % 3], None) in valid(database)


def test_a_token_is_valid_until_it_is_revoked(database: Engine) -> None:
    token = add(database)
    other = add(database, "portal", "reader")
    assert valid(database) == [
        (digest(token), "slurm", "scheduler", None),
        (digest(other), "portal", "reader", None),
    ]
    assert revoke(database)
    assert valid(database) == [(digest(other), "portal", "reader", None)]
    first, second = all_tokens(database)
    assert (first.name, first.role, second.name, second.revoked_at) == (
        "slurm",
        "scheduler",
        "portal",
        None,
    )
    for moment in map(instant, (first.created_at, first.revoked_at)):
        assert moment is not None
        assert abs(datetime.now(timezone.utc) - moment) < timedelta(minutes=1)


def test_a_revoked_token_stays_revoked(database: Engine) -> None:
    add(database)
    revoke(database)
    before = all_tokens(database)
    assert not revoke(database)
    assert all_tokens(database) == before
    with pytest.raises(ConflictError, match="already a revoked token 'slurm'; choose another name"):
        add(database)
    assert valid(database) == []


def test_no_two_tokens_have_the_same_name(database: Engine) -> None:
    token = add(database)
    with pytest.raises(ConflictError, match="there is already a token 'slurm'"):
        add(database, role="admin")
    assert valid(database) == [(digest(token), "slurm", "scheduler", None)]


@pytest.mark.parametrize("name", ["", " slurm", "a  b", "a\nb", "a\0", "a\ud800", "a" * 101])
def test_an_invalid_name_is_rejected(database: Engine, name: str) -> None:
    with pytest.raises(InputError):
        add(database, name)
    with pytest.raises(UnknownNameError):
        revoke(database, name)
    assert all_tokens(database) == []


def test_there_are_three_roles(database: Engine) -> None:
    assert ROLES == ("reader", "scheduler", "admin")
    with pytest.raises(InputError, match="roles are reader, scheduler, admin"):
        add(database, role="root")


def test_a_missing_token_cannot_be_revoked(database: Engine) -> None:
    with pytest.raises(UnknownNameError, match="no token 'slurm'"):
        revoke(database)
    add(database, "portal")
    with pytest.raises(UnknownNameError) as caught:
        revoke(database)
    assert str(caught.value) == "the database has no token 'slurm'; its tokens are portal"


def test_a_token_may_expire(database: Engine) -> None:
    moment = datetime(2027, 1, 1, 12, tzinfo=timezone(timedelta(hours=1)))
    with transaction(database, write=True) as connection:
        token = add_token(connection, "portal", "reader", moment)
    expires_at = "2027-01-01T11:00:00.000000+00:00"
    assert valid(database) == [(digest(token), "portal", "reader", expires_at)]
    assert [each.expires_at for each in all_tokens(database)] == [expires_at]


@pytest.fixture
def ioncast(location: str) -> Ioncast:
    def run(*args: str) -> Result:
        return CliRunner().invoke(cli, ["token", *args, "--db", location])

    return run


def listed(ioncast: Ioncast) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(ioncast("list", "--format", "json").stdout)
    return rows


def test_the_command_prints_the_token_alone(ioncast: Ioncast, location: str) -> None:
    result = ioncast("add", "slurm", "--role", "scheduler")
    assert result.exit_code == 0
    assert SHAPE.fullmatch(result.stdout.removesuffix("\n"))
    assert "Authorization: Bearer" in result.stderr
    # A token in another database than the service's is of no use to anybody.
    assert Path(urlsplit(location).path).name in result.stderr
    engine = open_database(location)
    assert valid(engine) == [(digest(result.stdout.strip()), "slurm", "scheduler", None)]
    engine.dispose()


def test_the_command_lists_tokens_without_them(ioncast: Ioncast, location: str) -> None:
    open_database(location).dispose()
    assert ioncast("list").stdout == "no tokens\n"
    assert listed(ioncast) == []
    token = ioncast("add", "slurm", "--role", "admin").stdout.strip()
    [row] = listed(ioncast)
    assert (row["name"], row["role"], row["revoked_at"]) == ("slurm", "admin", None)
    table = ioncast("list").stdout
    assert table.split()[:4] == ["name", "role", "created", "revoked"]
    assert "slurm" in table
    for secret in (token[4:], digest(token)):
        assert secret not in table + json.dumps(row)


def test_the_command_revokes_a_token_once(ioncast: Ioncast) -> None:
    ioncast("add", "slurm", "--role", "reader")
    assert ioncast("revoke", "slurm").stdout == "slurm: revoked\n"
    assert ioncast("revoke", "slurm").stdout == "slurm: was revoked before\n"
    assert isinstance(ioncast("revoke", "other").exception, UnknownNameError)
    [row] = listed(ioncast)
    assert instant(row["revoked_at"]) is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["add", "slurm"], "Missing option '--role'"),
        (["add", "slurm", "--role", "root"], "'root' is not one of"),
        (
            ["add", "a  b", "--role", "reader"],
            "'a b' is not a valid name of a token",
        ),
        (["revoke", "slurm"], "the database has no token 'slurm'; it has no tokens"),
    ],
)
def test_bad_commands_are_one_line_and_exit_code_2(
    tmp_path: Path, args: list[str], says: str
) -> None:
    place = tmp_path / "bench.sqlite"
    command = [sys.executable, "-m", "ioncast", "token", *args, "--db", str(place)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("ioncast: ")
    assert says in line


def test_revoking_leaves_no_database_behind(tmp_path: Path) -> None:
    place = tmp_path / "bench.sqlite"
    result = CliRunner().invoke(cli, ["token", "revoke", "slurm", "--db", str(place)])
    assert isinstance(result.exception, UnknownNameError)
    assert not place.exists()


def test_the_command_makes_a_token_that_expires(ioncast: Ioncast) -> None:
    before = datetime.now(timezone.utc)
    assert ioncast("add", "portal", "--role", "reader", "--expires", "90d").exit_code == 0
    [row] = listed(ioncast)
    expires_at = instant(row["expires_at"])
    assert expires_at is not None
    after = datetime.now(timezone.utc)
    assert before + timedelta(days=90) <= expires_at <= after + timedelta(days=90)
    assert "expires" in ioncast("list").stdout.splitlines()[0]


@pytest.mark.parametrize("duration", ["90", "", "-1d", "soon", "0d", "999999999d"])
def test_a_token_cannot_expire_after_no_duration(ioncast: Ioncast, duration: str) -> None:
    result = ioncast("add", "portal", "--role", "reader", "--expires", duration)
    assert isinstance(result.exception, InputError)
    assert "--expires" in str(result.exception)
    # No token has this name yet.
    assert ioncast("add", "portal", "--role", "reader").exit_code == 0
