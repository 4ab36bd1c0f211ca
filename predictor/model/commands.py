"""`ioncast model`: fit the models that predictions use, and show them."""

from __future__ import annotations

import json

import click

from benchdb.command_database import reading_database
from benchdb.store.database import reading
from benchdb.store.fitted_models import stored_models
from benchdb.store.systems import require_system
from ioncast_base.command_options import (
    CommandGroup,
    database_option,
    system_option,
    table_format_option,
)
from predictor.commands import command_line
from predictor.curve.asking import fit_anew
from predictor.model.summary import summarise, to_json, to_text


@click.group(
    cls=CommandGroup,
    epilog="""\b
Examples:
  ioncast model fit --system mysite
  ioncast model show --system mysite
""",
)
def model() -> None:
    """Fit the models that predictions use, and show them.

    `ioncast predict` fits a model by itself if none is stored or the measurements have changed.
    """


@model.command(
    "fit",
    epilog="""\b
Examples:
  ioncast model fit --system mysite
  ioncast model fit --system mysite --engine fio
""",
)
@click.option("--system", required=True, help="The system whose measurements to use.")
@click.option(
    "--engine",
    help="The program whose benchmarks to use; by default as for `ioncast predict`.",
)
@database_option
def fit(system: str, engine: str | None, location: str | None) -> None:
    """Fit a system's model again, store it and show it."""
    fitted = fit_anew(command_line(location), system, engine)
    with reading(location) as connection:
        found = [
            summarise(connection, name, stored)
            for name, stored in stored_models(connection, system)
            if stored.engine == fitted.engine
        ]
    click.echo(to_text(found))


@model.command(
    "show",
    epilog="""\b
Examples:
  ioncast model show
  ioncast model show --system mysite --format json
""",
)
@system_option
@table_format_option
@database_option
def show(system: str | None, output_format: str, location: str | None) -> None:
    """Show the stored models: their measurements, their errors, and how far they reach.

    Error and regret are those on configurations that were held back.
    """
    with reading_database(location) as connection:
        name = system and require_system(connection, system)
        found = [
            summarise(connection, *stored_model) for stored_model in stored_models(connection, name)
        ]
    if output_format == "json":
        click.echo(json.dumps([to_json(each) for each in found], indent=1))
    else:
        click.echo(to_text(found))
