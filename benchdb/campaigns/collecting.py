"""What the runs of a campaign came to: from the files they left, into the database."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sqlalchemy import Engine

from benchdb.campaigns.engines import ENGINES
from benchdb.campaigns.folder import CampaignFolder, Run, read
from benchdb.campaigns.script import OUTPUT, job_of
from benchdb.measurements.importers import Source, read_measurements
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import transaction
from benchdb.store.schema import longest, measurements
from ioncast_base.errors import InputError
from ioncast_base.files import write_file

_RESULT = "result.json"
_LOG_BYTES = 4096


@dataclass(frozen=True)
class Result:
    """What a run that ended came to.

    Attributes
    ----------
    state : str
        "done" or "failed".
    bandwidth_mib_s : float or None
        Of a run that is done.
    started : str or None
        When the benchmark began, ISO 8601.
    reason : str or None
        Why a run failed: the last line of its log, or what is wrong with its output.
    """

    state: str
    bandwidth_mib_s: float | None = None
    started: str | None = None
    reason: str | None = None


def result_of(folder: CampaignFolder, run: Run) -> Result | None:
    """What a run came to; None if it did not end.

    The answer is kept beside the run, so that a campaign of thousands is read at once.
    """
    result = _kept(run)
    if result is None:
        result = _judge(folder, run)
        if result is not None:
            _keep(run, result)
    return result


def failures(folder: CampaignFolder) -> list[tuple[Run, Result]]:
    """Runs of a campaign that failed."""
    results = ((run, result_of(folder, run)) for run in folder.runs)
    return [(run, result) for run, result in results if result and result.state == "failed"]


def measurement_of(folder: CampaignFolder, run: Run) -> tuple[bytes, str, Measurement]:
    """A run's output, its format, and the measurement in it.

    Raises
    ------
    InputError
        When the output cannot be used.
    """
    content = (run.path / OUTPUT).read_bytes()
    config = run.cell.config
    file_format, rows = read_measurements(
        Source(
            where=str(run.path / OUTPUT),
            text=content.decode("utf-8", "replace"),
            io_nodes=run.cell.io_nodes,
            nodes=config.nodes,
            command=config.command_line(launcher=True),
        )
    )
    if len(rows) != 1 or rows[0].config != config.pattern():
        ran = ", ".join(row.config.command_line(launcher=True) for row in rows)
        raise InputError(
            f"not what was to be run, but {ran}",
            where=str(run.path / OUTPUT),
            remedy="see `launch` in the platform file",
        )
    measured = replace(
        rows[0],
        started=_read(run.path / "started"),
        command=_kept_command(ENGINES[folder.engine].measure(job_of(folder, run.cell))),
        campaign=folder.campaign.name,
    )
    return content, file_format, measured


def _kept_command(command: str) -> str:
    """What the database takes of a command; fio's names each compute node."""
    most = longest(measurements.c.command)
    return command if len(command) <= most else f"{command[: most - 1]}…"


def store_results(engine: Engine, folder: CampaignFolder, runs: Iterable[Run]) -> None:
    """Store the measurements of runs that are done; what is stored already is left alone.

    Parameters
    ----------
    engine : Engine
        From `benchdb.store.database.open_database`.
    folder : CampaignFolder
        The campaign.
    runs : iterable of Run
        Of it.

    Notes
    -----
    A run whose output was lost or damaged since is a failed one from now on.
    """
    for run in runs:
        result = result_of(folder, run)
        if result is None or result.state != "done":
            continue
        try:
            content, file_format, measured = measurement_of(folder, run)
        except (InputError, FileNotFoundError) as error:
            _keep(run, Result("failed", started=result.started, reason=str(error)))
            continue
        with transaction(engine, write=True) as connection:
            store(
                connection,
                system=folder.platform.system,
                file=str(run.path / OUTPUT),
                content=content,
                file_format=file_format,
                rows=[measured],
            )


def bandwidth(file_path: str) -> float:
    """The bandwidth, in MiB/s, of the run whose exit code is in a file; IOPS asks for it.

    Raises
    ------
    InputError
        When the run failed.
    """
    path = Path(file_path).parent
    folder = read(path.parent.parent)
    run = next(run for run in folder.runs if run.path == path)
    result = result_of(folder, run)
    if result is None or result.bandwidth_mib_s is None:
        raise InputError(result.reason if result and result.reason else "the run did not end")
    return result.bandwidth_mib_s


def _kept(run: Run) -> Result | None:
    """What was found out before; None if that is not there or damaged."""
    try:
        record = json.loads((run.path / _RESULT).read_text(encoding="utf-8"))
        result = Result(**record)
        measured = result.bandwidth_mib_s is not None and float(result.bandwidth_mib_s) > 0
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return result if result.state == ("done" if measured else "failed") else None


def _keep(run: Run, result: Result) -> None:
    # Who may only read the folder finds it out again each time.
    with suppress(InputError):
        write_file(run.path / _RESULT, json.dumps(asdict(result)))


def _judge(folder: CampaignFolder, run: Run) -> Result | None:
    code = _read(run.path / "exit_code")
    if not code:
        return None
    started = _read(run.path / "started")
    if code != "0":
        return Result("failed", started=started, reason=_last_line(run.path / "log", code))
    try:
        _, _, measured = measurement_of(folder, run)
    except FileNotFoundError:
        return Result("failed", started=started, reason="the benchmark left no output")
    except InputError as error:
        return Result("failed", started=started, reason=str(error))
    except OSError:
        # It may be there the next time.
        return None
    return Result("done", measured.bandwidth_mib_s, started)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def _last_line(log: Path, code: str) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(log.stat().st_size - _LOG_BYTES, 0))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        text = ""
    lines = ("".join(c for c in line if c.isprintable()).strip() for line in text.splitlines())
    said = [line for line in lines if line]
    return said[-1] if said else f"exit code {code}"
