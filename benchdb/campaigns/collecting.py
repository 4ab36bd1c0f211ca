"""Reads the results of a campaign's runs from their files, and stores the measurements."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from operator import itemgetter
from pathlib import Path

from sqlalchemy import Engine

from benchdb.campaigns.engines import ENGINES
from benchdb.campaigns.failing import comparable, error_line
from benchdb.campaigns.folder import CampaignFolder, CampaignRun, read
from benchdb.campaigns.script import OUTPUT, job_of
from benchdb.measurements.importers import ImportOptions, ResultFile, read_measurements
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import transaction
from benchdb.store.schema import longest, measurements
from benchdb.store.writes import tell_syslog
from ioncast_base.errors import InputError
from ioncast_base.files import end_of_log, write_file

_RESULT = "result.json"


@dataclass(frozen=True)
class RunResult:
    """The result of a run that has ended.

    `started` is ISO 8601. `reason` is the line of its log that names the error, or the problem with
    its output; `error` is the same without what differs between runs that fail for one cause.
    """

    state: str
    bandwidth_mib_s: float | None = None
    started: str | None = None
    reason: str | None = None
    error: str | None = None


def result_of(folder: CampaignFolder, run: CampaignRun) -> RunResult | None:
    """The result of a run; None if it has not ended.

    The result is also written beside the run, so that the next call is fast.
    """
    result = _kept(run)
    if result is None:
        result = _judge(folder, run)
        if result is not None:
            _keep(run, result)
    return result


def failures(folder: CampaignFolder) -> list[tuple[CampaignRun, RunResult]]:
    """The failed runs of a campaign with their results."""
    results = ((run, result_of(folder, run)) for run in folder.runs)
    return [(run, result) for run, result in results if result and result.state == "failed"]


def failures_in_a_row(folder: CampaignFolder) -> list[tuple[CampaignRun, RunResult]]:
    """The last runs of a campaign, if they failed with one error and are as many as may do that.

    Failures before the last start of the campaign do not count, because somebody may have removed
    their cause.
    """
    started_ns = _written_ns(folder.path / "iops.yaml")
    ended = ((_written_ns(run.path / "exit_code"), run) for run in folder.runs)
    last = sorted(
        ((when_ns, run) for when_ns, run in ended if when_ns > started_ns), key=itemgetter(0)
    )
    limit = folder.platform.same_failures_limit
    results = [(run, result_of(folder, run)) for _, run in reversed(last[-limit:])]
    failed = [(run, result) for run, result in results if result and result.state == "failed"]
    same = len({result.error for _, result in failed}) == 1
    return failed if same and len(failed) == limit else []


def _written_ns(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def measurement_of(folder: CampaignFolder, run: CampaignRun) -> tuple[bytes, str, Measurement]:
    """Read the output of a run: its content, its format and its measurement."""
    content = (run.path / OUTPUT).read_bytes()
    config = run.cell.config
    file_format, rows = read_measurements(
        ResultFile(str(run.path / OUTPUT), content.decode("utf-8", "replace")),
        ImportOptions(
            io_nodes=run.cell.io_nodes,
            nodes=config.nodes,
            command=config.command_line(launcher=True),
        ),
    )
    measurements_found = [row for row in rows if isinstance(row, Measurement)]
    if len(rows) != 1 or [row.config for row in measurements_found] != [config.pattern()]:
        ran = ", ".join(row.config.command_line(launcher=True) for row in measurements_found)
        raise InputError(
            f"the benchmark ran another configuration: {ran}",
            where=str(run.path / OUTPUT),
            remedy="check `launch` in the platform file",
        )
    measured = replace(
        measurements_found[0],
        started=_read(run.path / "started"),
        command=_kept_command(ENGINES[folder.engine].measure(job_of(folder, run.cell))),
        campaign=folder.campaign.name,
    )
    return content, file_format, measured


def _kept_command(command: str) -> str:
    """Cut a command to the length of its column; fio's command names each compute node."""
    most = longest(measurements.c.command)
    return command if len(command) <= most else f"{command[: most - 1]}…"


def store_results(engine: Engine, folder: CampaignFolder, runs: Iterable[CampaignRun]) -> None:
    """Store the measurements of finished runs; a stored measurement stays as it is.

    A finished run whose output was removed or damaged later becomes a failed run.
    """
    for run in runs:
        result = result_of(folder, run)
        if result is None or result.state != "done":
            continue
        try:
            content, file_format, measured = measurement_of(folder, run)
        except (InputError, FileNotFoundError) as error:
            _keep(run, _failed(result.started, str(error)))
            continue
        with transaction(engine, write=True) as connection:
            system, file = folder.platform.system, str(run.path / OUTPUT)
            is_new = store(
                connection,
                system=system,
                file=file,
                content=content,
                file_format=file_format,
                rows=[measured],
            )
        if is_new:
            tell_syslog("measurements", file, system)


def bandwidth(file_path: str) -> float:
    """The bandwidth in MiB/s of the run whose exit code is in this file; IOPS calls it."""
    path = Path(file_path).parent
    folder = read(path.parent.parent)
    run = next(run for run in folder.runs if run.path == path)
    result = result_of(folder, run)
    if result is None or result.bandwidth_mib_s is None:
        stop_after_same_failures(folder)
        raise InputError(result.reason if result and result.reason else "the run has not ended")
    return result.bandwidth_mib_s


def stop_after_same_failures(folder: CampaignFolder) -> None:
    """Let no other run of a campaign start if its last runs failed with the same error."""
    failed = failures_in_a_row(folder)
    if failed:
        run, result = failed[0]
        write_file(
            folder.path / "stopped",
            f"{len(failed)} runs in a row failed with the same error: {result.reason}; see"
            f" {run.path / 'log'}",
        )


def _kept(run: CampaignRun) -> RunResult | None:
    """The result that was written beside the run; None if it is missing or damaged."""
    try:
        record = json.loads((run.path / _RESULT).read_text(encoding="utf-8"))
        result = RunResult(**record)
        measured = result.bandwidth_mib_s is not None and float(result.bandwidth_mib_s) > 0
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return result if result.state == ("done" if measured else "failed") else None


def _keep(run: CampaignRun, result: RunResult) -> None:
    # If the folder is read-only, the result is read from the output again each time.
    with suppress(InputError):
        write_file(run.path / _RESULT, json.dumps(asdict(result)))


def _judge(folder: CampaignFolder, run: CampaignRun) -> RunResult | None:
    code = _read(run.path / "exit_code")
    if not code:
        return None
    started = _read(run.path / "started")
    if code != "0":
        return _why_it_failed(run, code, started)
    try:
        _, _, measured = measurement_of(folder, run)
    except FileNotFoundError:
        return _failed(started, "the benchmark left no output")
    except InputError as error:
        return _failed(started, str(error))
    except OSError:
        # The output may be readable the next time.
        return None
    return RunResult("done", measured.bandwidth_mib_s, started)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def _why_it_failed(run: CampaignRun, code: str, started: str | None) -> RunResult:
    # The script of a run writes the step that failed; the log says why.
    step = _read(run.path / "cause")
    log = end_of_log(run.path / "log")
    said = error_line("\n".join(line for line in log.splitlines() if line.strip() != step))
    if step is None and said is None:
        # Without a word, the exit code is all that tells two errors apart.
        return RunResult("failed", None, started, f"exit code {code}", f"exit code {code}")
    return _failed(started, ": ".join(text for text in (step, said) if text))


def _failed(started: str | None, reason: str) -> RunResult:
    return RunResult("failed", None, started, reason, comparable(reason))
