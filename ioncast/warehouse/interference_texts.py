"""Interference and disturbing pairs in words, as plain values and as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from ioncast.warehouse.interference import DisturbedRun, Interference, Move, Server, TimeAlone
from ioncast.warehouse.pairs import DisturbingPair
from ioncast.warehouse.survey_texts import cell
from ioncast_base.visible_text import visible
from ioncast_base.wording import bandwidth, counted, duration, in_digits, listed, size

CSV_COLUMNS = (
    *("log", "program", "job_id", "server_kind", "server", "start_us", "end_us", "bytes"),
    *("share", "busy_seconds", "common_bytes", "common_busy_seconds", "is_estimated"),
)
_BASES = {
    "alone": "its run alone",
    "history": "the median of {runs}",
    "prediction": "the prediction",
}


def plain(value: Any) -> Any:
    """Turn interference into plain values for JSON, without single requests."""
    if isinstance(value, Server):
        return value._asdict()
    if is_dataclass(value):
        names = [each.name for each in fields(value) if each.name != "requests"]
        return {name: plain(getattr(value, name)) for name in names}
    return [plain(each) for each in value] if isinstance(value, tuple) else value


def to_rows(found: Interference) -> Iterator[dict[str, Any]]:
    """List the use of each server by each application, with `CSV_COLUMNS`."""
    runs = {run.log: run for run in found.runs}
    for use in found.uses:
        run = runs[use.log]
        place = {"server_kind": use.server.kind, "server": use.server.number}
        values = {**plain(use), **place, "program": run.program, "job_id": run.job_id}
        yield {name: values[name] for name in CSV_COLUMNS}


def sentences(found: Interference) -> Iterator[str]:
    """Say who disturbed whom, where and when, and what avoids it."""
    names = names_of(found)
    if any(use.is_estimated for use in found.uses):
        yield (
            "Without the times of requests, bytes are spread evenly from the first to the last"
            " access (estimated)."
        )
    if found.undated:
        yield f"Their start is unknown: {listed([names[log] for log in found.undated])}."
    if not found.uses:
        yield "No log tells the servers of its I/O, so nothing can be said about them."
    elif not found.disturbances:
        yield "No two of these logs move bytes on the same server at the same time."
    for server in found.bottlenecks:
        uses = [use for use in found.uses if use.server == server and use.common_bytes]
        spans = [each for each in found.disturbances if each.server == server]
        start, end = min(each.start_us for each in spans), max(each.end_us for each in spans)
        moved = listed([f"{size(use.common_bytes)} of {names[use.log]}" for use in uses])
        clock = f"from {cell('start_us', start)} UTC for {duration((end - start) / 1e6)}"
        yield f"The bottleneck is {server_text(server)}: {clock} it moves {moved}."
    for run in found.runs:
        if run.slowest is not None:
            yield f"{names[run.log]}{_slowdown(run)}."
    for each in found.disturbances:
        if each.blame is not None:
            lost = f", {duration(each.blamed_seconds)} at most" if each.blamed_seconds else ""
            yield (
                f"{names[each.by]} has {each.blame:.0%} of the blame for {names[each.log]}{lost}:"
                f" it moves {size(each.by_bytes)} on {server_text(each.server)} beside"
                f" {size(each.bytes)}."
            )
    yield from (_move(move, names) for move in found.moves)


def names_of(found: Interference) -> dict[str, str]:
    """Name each log by its program and job, and by its file where these are not enough."""
    names = [f"{visible(run.program or 'a program')} of job {run.job_id}" for run in found.runs]
    return {
        run.log: f"{name} ({visible(run.path)})" if names.count(name) > 1 else name
        for run, name in zip(found.runs, names, strict=True)
    }


def server_text(server: Server) -> str:
    """Name a server."""
    return f"{'I/O node' if server.kind == 'ION' else server.kind} {server.number}"


def alone_text(alone: TimeAlone) -> str:
    """Say how a time alone is known."""
    return _BASES[alone.basis].format(runs=counted(alone.runs, "other run"))


def _slowdown(run: DisturbedRun) -> str:
    if run.alone is None or run.slowdown is None or run.seconds is None:
        return (
            ": its slowdown is unknown, because no run alone, no history and no prediction tells"
            " its time without others"
        )
    more = "longer" if run.slowdown >= 0 else "shorter"
    alone = f"{duration(run.alone.seconds)} ({alone_text(run.alone)})"
    return f" takes {duration(run.seconds)}, {abs(run.slowdown):.0%} {more} than {alone}"


def _move(move: Move, names: Mapping[str, str]) -> str:
    name, other = names[move.log], names[move.beside]
    if move.kind == "ION":
        return f"Move: give {name} an I/O node that {other} does not use."
    left = f"without OST {listed([str(each) for each in move.left])}"
    if move.cost is None:
        return f"Move: give {name} other OSTs than {other} has, {left}."
    cost = "" if move.cost_seconds is None else f", {duration(move.cost_seconds)}"
    return (
        f"Move: stripe {name} over {counted(len(move.kept), 'OST')}, {left}. This costs it at most"
        f" {move.cost:.0%} of its time alone{cost}."
    )


def pair_texts(pairs: Sequence[DisturbingPair]) -> list[dict[str, Any]]:
    """Write the rows of a table of pairs."""
    return [
        {
            "disturbed": _variant(pair.program, pair.processes, pair.user_id),
            "by": _variant(pair.by_program, pair.by_processes, pair.by_user_id),
            "on the same": pair.places,
            "together": f"{pair.together}: {bandwidth(pair.together_mib_s)}",
            "apart": f"{pair.apart}: {bandwidth(pair.apart_mib_s)}",
            "p": in_digits(pair.p, 2),
            "disturbing": "yes" if pair.is_disturbing else "not shown",
        }
        for pair in pairs
    ]


def _variant(program: str, processes: int, user_id: int | None) -> str:
    return f"{visible(program)}, {counted(processes, 'process')}, user {user_id}"
