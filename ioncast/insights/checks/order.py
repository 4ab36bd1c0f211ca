"""P11 to P14: random requests, and requests in order."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ioncast.insights.checks.concerned import time_of_requests, worst_files
from ioncast.insights.checks.values import Case, Find, Finding
from ioncast.insights.facts.values import Requests, total
from ioncast_base.kinds import Operation


def random_requests(case: Case, operation: Operation) -> Finding | None:
    """Look for requests that surely start below the end of the one before them."""
    layer = case.facts.layers.get("POSIX")
    if layer is None:
        return None
    requests = layer.of(operation)
    random, judged = total(requests.random), _judged(requests)
    limits = case.thresholds
    if random <= limits.random_share * judged or random <= limits.least_count:
        return None
    files, worst = worst_files(case, layer.used_files, layer.of_files(requests.random), judged)
    return Finding(
        "HIGH",
        numbers={"random": random, "requests": judged, "share": random / judged, "files": files},
        thresholds={"random_share": limits.random_share, "least_count": limits.least_count},
        files=worst,
        at_stake=time_of_requests(case, layer, operation, layer.of_files(requests.random)),
        is_estimate=True,
    )


def ordered_requests(case: Case, operation: Operation) -> Finding | None:
    """Look for requests that are consecutive or sequential, nearly all of them."""
    layer = case.facts.layers.get("POSIX")
    if layer is None:
        return None
    requests = layer.of(operation)
    judged, all_, limit = _judged(requests), total(requests.requests), case.thresholds.ordered_share
    # Without a second request to a file there is no order.
    if all_ <= total(requests.first):
        return None
    random_share = total(requests.random) / judged
    if 1 - random_share < limit:
        return None
    consecutive = total(requests.consecutive)
    sequential = total(requests.sequential) - consecutive
    return Finding(
        "OK",
        numbers={
            "consecutive_share": consecutive / all_,
            "sequential_share": sequential / all_,
            "random_share": random_share,
        },
        thresholds={"ordered_share": limit},
    )


def _judged(requests: Requests) -> int:
    """Count the requests whose order Darshan tells: all but the first ones, at least 1."""
    return max(1, total(requests.requests) - total(requests.first))


FINDERS: Mapping[str, Find] = {
    "P11": partial(random_requests, operation="read"),
    "P12": partial(ordered_requests, operation="read"),
    "P13": partial(random_requests, operation="write"),
    "P14": partial(ordered_requests, operation="write"),
}
