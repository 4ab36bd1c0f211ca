"""S01, P01 to P04: bytes through STDIO, and reads beside writes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ioncast.insights.checks.concerned import time_of_requests, worst_files
from ioncast.insights.checks.values import Case, Find, Finding, Result, Unknown
from ioncast.insights.facts.values import Layer, share, total
from ioncast_base.kinds import APIS, OPERATIONS, Operation


def stdio_bytes(case: Case) -> Finding | None:
    """S01: a large share of the bytes of all files moves through STDIO."""
    files, limit = case.facts.files, case.thresholds.stdio_share
    moved = np.where(files.api == APIS.index("STDIO"), files.bytes, 0)
    stdio, all_ = total(moved), total(files.bytes)
    part = share(stdio, all_)
    if part is None or part <= limit:
        return None
    count, worst = worst_files(case, np.arange(len(files)), moved, all_)
    layer = case.facts.layers["STDIO"]
    return Finding(
        "HIGH",
        numbers={"stdio_bytes": stdio, "bytes": all_, "share": part, "files": count},
        thresholds={"stdio_share": limit},
        files=worst,
        at_stake=np.add(
            *(
                time_of_requests(case, layer, each, layer.of_files(layer.of(each).requests))
                for each in OPERATIONS
            )
        ),
    )


def more_of_one(case: Case, most: Operation, what: str) -> Result:
    """P01 to P04: more requests, or bytes, of one operation than of the other."""
    layer = case.facts.layers.get("POSIX")
    if layer is None:
        return None
    for requests in (layer.reads, layer.writes):
        if what == "requests" and (requests.bytes[requests.requests == 0] > 0).any():
            return Unknown("the log does not count all requests")
    numbers = {operation: _number(layer, operation, what) for operation in OPERATIONS}
    both, limit = sum(numbers.values()), case.thresholds.difference_share
    difference = share(2 * numbers[most] - both, both)
    if difference is None or difference <= limit:
        return None
    return Finding(
        "INFO",
        numbers={
            "reads": numbers["read"],
            "writes": numbers["write"],
            "read_share": numbers["read"] / both,
            "write_share": numbers["write"] / both,
        },
        thresholds={"difference_share": limit},
    )


def _number(layer: Layer, operation: Operation, what: str) -> int:
    requests = layer.of(operation)
    return total(requests.requests if what == "requests" else requests.bytes)


FINDERS: Mapping[str, Find] = {
    "S01": stdio_bytes,
    "P01": partial(more_of_one, most="write", what="requests"),
    "P02": partial(more_of_one, most="read", what="requests"),
    "P03": partial(more_of_one, most="write", what="bytes"),
    "P04": partial(more_of_one, most="read", what="bytes"),
}
