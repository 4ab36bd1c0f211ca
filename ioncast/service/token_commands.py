"""`ioncast token`: add, list and revoke the tokens of the service's clients."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime, timedelta, timezone

import click

from benchdb.command_database import reading_database
from benchdb.store.database import opened_database, shown, transaction, transaction_on
from benchdb.store.writes import tell_syslog
from ioncast.service.store.credentials import ROLES
from ioncast.service.store.tokens import add_token, revoke_token, tokens
from ioncast_base.command_options import CommandGroup, database_option, table_format_option
from ioncast_base.errors import InputError
from ioncast_base.text_tables import text_table
from ioncast_base.times import parse_duration


@click.group(
    cls=CommandGroup,
    epilog="""\b
Examples:
  ioncast token add slurm --role scheduler
  ioncast token add portal --role reader --expires 90d
  ioncast token list
  ioncast token revoke slurm
""",
)
def token() -> None:
    """Manage the tokens that let clients use the service."""


@token.command("add", epilog="\b\nExample:\n  ioncast token add slurm --role scheduler > token")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    required=True,
    help="A reader asks; a scheduler also stores runs and outcomes; an admin may do everything.",
)
@click.option(
    "--expires",
    metavar="DURATION",
    help="The token expires after this time, such as 90d or 12h.  [default: never]",
)
@database_option
def add(name: str, role: str, expires: str | None, location: str | None) -> None:
    """Create a token for NAME and print it; it cannot be shown again."""
    expires_at = _moment_after(expires) if expires is not None else None
    with opened_database(location) as engine, transaction(engine, write=True) as connection:
        made = add_token(connection, name, role, expires_at)
    tell_syslog("token", f"added {name}")
    click.echo(made)
    click.echo(
        f"ioncast: save this token now, because only its hash is stored, in {shown(engine.url)};"
        " only services with this database accept it, in the header `Authorization: Bearer TOKEN`",
        err=True,
    )


@token.command("list", epilog="\b\nExample:\n  ioncast token list --format json")
@table_format_option
@database_option
def list_tokens(output_format: str, location: str | None) -> None:
    """List names and roles of all tokens; the tokens themselves are not stored."""
    with reading_database(location) as connection:
        rows = [asdict(each) for each in tokens(connection)]
    if output_format == "json":
        click.echo(json.dumps(rows, indent=1))
        return
    names = {"created_at": "created", "revoked_at": "revoked", "expires_at": "expires"}
    table = [{names.get(name, name): value for name, value in row.items()} for row in rows]
    click.echo(text_table(table) or "no tokens")


@token.command("revoke", epilog="\b\nExample:\n  ioncast token revoke slurm")
@click.argument("name")
@database_option
def revoke(name: str, location: str | None) -> None:
    """Revoke the token of NAME; it can never become valid again."""
    with transaction_on(location, write=True) as connection:
        was_valid = revoke_token(connection, name)
    if was_valid:
        tell_syslog("token", f"revoked {name}")
    click.echo(f"{name}: {'revoked' if was_valid else 'was revoked before'}")


def _moment_after(duration: str) -> datetime:
    try:
        return datetime.now(timezone.utc) + timedelta(seconds=parse_duration(duration))
    except (InputError, OverflowError) as error:
        raise InputError(
            f"{duration!r} is not a duration that a token can have",
            where="--expires",
            remedy="write it with the units d, h, m and s, like 90d or 12h",
        ) from error
