"""Reads the results of a campaign's runs from their files, and stores the measurements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from operator import itemgetter
from pathlib import Path

from sqlalchemy import Engine

from benchdb.campaigns.failing import comparable, error_line
from benchdb.campaigns.folder import CampaignFolder, CampaignRun, read
from benchdb.campaigns.mdtest_engine import engine_for
from benchdb.campaigns.script import job_of
from benchdb.measurements.file_rates import FILE_OPERATIONS, FileRate
from benchdb.measurements.importers import ImportOptions, ResultFile, read_measurements
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import transaction
from benchdb.store.schema import longest, measurements
from benchdb.store.writes import tell_syslog
from ioncast_base.errors import InputError
from ioncast_base.files import end_of_log, write_file
from ior_configs import IorConfig, MdtestConfig

_RESULT = "result.json"


@dataclass(frozen=True)
class RunResult:
    """The result of a run that has ended: a bandwidth, or the rates of mdtest by operation.

    `started` is ISO 8601. `reason` is the line of its log that names the error, or the problem with
    its output; `error` is the same without what differs between runs that fail for one cause.
    """

    state: str
    bandwidth_mib_s: float | None = None
    started: str | None = None
    reason: str | None = None
    error: str | None = None
    files_per_s: dict[str, float] | None = None


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
    """Read the output of a run of IOR or fio: its content, its format and its measurement."""
    config = run.cell.config
    content, file_format, rows = _output(folder, run)
    measurements_found = [row for row in rows if isinstance(row, Measurement)]
    if len(rows) != 1 or [row.config for row in measurements_found] != [_pattern(config)]:
        ran = (row.config.command_line(launcher=True) for row in measurements_found)
        raise _ran_another(folder, run, ran)
    measured = replace(
        measurements_found[0],
        started=_read(run.path / "started"),
        command=_kept_command(engine_for(config, folder.engine).measure(job_of(folder, run.cell))),
        campaign=folder.campaign.name,
    )
    return content, file_format, measured


def rates_of(folder: CampaignFolder, run: CampaignRun) -> tuple[bytes, str, list[FileRate]]:
    """Read the output of a run of mdtest: its content, its format, and a rate of each operation."""
    config = run.cell.config
    content, file_format, rows = _output(folder, run)
    rates = [row for row in rows if isinstance(row, FileRate)]
    ran = {
        MdtestConfig(
            files_per_process=rate.files_per_process or 1,
            bytes_per_file=rate.bytes_per_file,
            own_directory=rate.unique_directory,
            tasks=rate.tasks,
            nodes=rate.nodes or 1,
        )
        for rate in rates
    }
    if len(rows) != len(rates) or ran != {config}:
        raise _ran_another(folder, run, (one.command_line(launcher=True) for one in ran))
    if sorted(rate.operation for rate in rates) != sorted(FILE_OPERATIONS):
        raise InputError(
            "the output of mdtest does not have one rate of each operation",
            where=str(_output_file(folder, run)),
        )
    started = _read(run.path / "started")
    campaign = folder.campaign.name
    return (
        content,
        file_format,
        [replace(rate, started=started, campaign=campaign) for rate in rates],
    )


def _output(
    folder: CampaignFolder, run: CampaignRun
) -> tuple[bytes, str, list[Measurement | FileRate]]:
    """Read the rows of what a benchmark left."""
    file, config = _output_file(folder, run), run.cell.config
    content = file.read_bytes()
    file_format, rows = read_measurements(
        ResultFile(str(file), content.decode("utf-8", "replace")),
        ImportOptions(
            io_nodes=run.cell.io_nodes,
            nodes=config.nodes,
            command=config.command_line(launcher=True) if isinstance(config, IorConfig) else None,
        ),
    )
    return content, file_format, list(rows)


def _output_file(folder: CampaignFolder, run: CampaignRun) -> Path:
    return run.path / engine_for(run.cell.config, folder.engine).output


def _pattern(config: IorConfig | MdtestConfig) -> IorConfig | None:
    return config.pattern() if isinstance(config, IorConfig) else None


def _ran_another(folder: CampaignFolder, run: CampaignRun, ran: Iterable[str]) -> InputError:
    return InputError(
        f"the benchmark ran another configuration: {', '.join(ran)}",
        where=str(_output_file(folder, run)),
        remedy="check `launch` in the platform file",
    )


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
        rows: Sequence[Measurement | FileRate]
        try:
            if isinstance(run.cell.config, MdtestConfig):
                content, file_format, rows = rates_of(folder, run)
            else:
                content, file_format, measured = measurement_of(folder, run)
                rows = [measured]
        except (InputError, FileNotFoundError) as error:
            _keep(run, _failed(result.started, str(error)))
            continue
        with transaction(engine, write=True) as connection:
            system, file = folder.platform.system, str(_output_file(folder, run))
            is_new = store(
                connection,
                system=system,
                file=file,
                content=content,
                file_format=file_format,
                rows=rows,
            )
        if is_new:
            tell_syslog("measurements", file, system)


def bandwidth(file_path: str) -> float:
    """The bandwidth in MiB/s of the run whose exit code is in this file; IOPS calls it.

    For a run of mdtest it is the rate of its creates: IOPS only notes the number.
    """
    path = Path(file_path).parent
    folder = read(path.parent.parent)
    run = next(run for run in folder.runs if run.path == path)
    result = result_of(folder, run)
    if result is not None and result.files_per_s is not None:
        return result.files_per_s["create"]
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
        values = [*(result.files_per_s or {}).values(), result.bandwidth_mib_s or 0]
        measured = any(float(value) > 0 for value in values)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
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
        return _done(folder, run, started)
    except FileNotFoundError:
        return _failed(started, "the benchmark left no output")
    except InputError as error:
        return _failed(started, str(error))
    except OSError:
        # The output may be readable the next time.
        return None


def _done(folder: CampaignFolder, run: CampaignRun, started: str | None) -> RunResult:
    """The result of a run that succeeded."""
    if isinstance(run.cell.config, MdtestConfig):
        *_, rates = rates_of(folder, run)
        found: dict[str, float] = {rate.operation: rate.files_per_s for rate in rates}
        return RunResult("done", None, started, files_per_s=found)
    *_, measured = measurement_of(folder, run)
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
