"""The options of a question for a prediction, which `predict` and `advise` share."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from typing import Any

import click

from ioncast_base.command_options import Number, WholeNumber
from ioncast_base.limits import MOST_PREDICTED_IO_NODES
from predictor.curve.asking import PredictionRequest
from predictor.curve.prediction import DecisionRules

Command = Callable[..., None]

# Python raises ValueError for numbers of thousands of digits.
_DIGITS = 10

nodes_option = click.option(
    "--nodes",
    type=WholeNumber(min=1),
    help="Compute nodes of the job. By default those of the host names in its log; needed if the"
    " log does not name the host of every process.",
)


def _parse_io_nodes(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    """Parse a list of numbers of I/O nodes such as 0,1,2,4,8."""
    if value is None:
        return None
    numbers = [number.strip() for number in value.split(",")]
    if not all(number.isascii() and number.isdecimal() for number in numbers):
        raise click.BadParameter(f"{value!r} is not a list of numbers such as 0,1,2,4,8")
    if any(len(number) > _DIGITS or int(number) > MOST_PREDICTED_IO_NODES for number in numbers):
        raise click.BadParameter(
            f"more than {MOST_PREDICTED_IO_NODES} I/O nodes cannot be predicted"
        )
    return tuple(sorted({int(number) for number in numbers}))


_OPTIONS = (
    click.option("--system", required=True, help="The system to predict for."),
    nodes_option,
    click.option(
        "--io-nodes",
        callback=_parse_io_nodes,
        metavar="N,N,...",
        help="Numbers of I/O nodes to predict; by default all that were measured for I/O of the"
        " job's kinds.",
    ),
    click.option(
        "--engine",
        help="The program whose benchmarks to use, such as ior or fio; by default IOR, or the one"
        " that measured most configurations. Benchmarks of different programs are never mixed.",
    ),
    click.option(
        "--ran-with",
        type=WholeNumber(0, MOST_PREDICTED_IO_NODES),
        metavar="N",
        help="Number of I/O nodes of the run in the log, if you know it: the bandwidth of the run"
        " then corrects the prediction. It corrects more where less was measured.",
    ),
    click.option(
        "--tolerance",
        type=Number(0, 1, max_open=True),
        default=DecisionRules.tolerance,
        show_default=True,
        help="Share of the best bandwidth that a decision may give up for fewer I/O nodes.",
    ),
    click.option(
        "--min-confidence",
        type=Number(0, 1, max_open=True),
        default=DecisionRules.min_confidence,
        show_default=True,
        help="Decide only if the number reaches 90% of the best bandwidth, or is better"
        " than the default, with at least this probability; else the site's default holds.",
    ),
    click.option(
        "--available",
        type=WholeNumber(min=0),
        metavar="N",
        help="Decide for at most N I/O nodes.",
    ),
    click.option(
        "--default",
        type=WholeNumber(min=0),
        metavar="N",
        help="The site's default: decide for N I/O nodes if nothing is known about the job, or too"
        " little.",
    ),
)


def asked_options(command: Command) -> Command:
    """Add the options to a command, which gets them as `asked`."""

    @wraps(command)
    def with_question(**options: Any) -> None:
        rules = ("tolerance", "min_confidence", "available", "default")
        policy = DecisionRules(**{name: options.pop(name) for name in rules})
        names = ("system", "nodes", "io_nodes", "ran_with", "engine")
        asked = PredictionRequest(**{name: options.pop(name) for name in names}, policy=policy)
        command(**options, asked=asked)

    return reduce(lambda made, option: option(made), reversed(_OPTIONS), with_question)
