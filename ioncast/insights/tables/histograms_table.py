"""Table 4, histograms: requests by size (Carns et al. 2009, Figures 5 and 6)."""

from __future__ import annotations

from ioncast.insights.tables.scopes import Scope
from ioncast.insights.tables.values import Line, Table

# Darshan's bins; the upper edge belongs to each.
BINS = (
    "0–100 bytes",
    "100 bytes–1 KiB",
    "1–10 KiB",
    "10–100 KiB",
    "100 KiB–1 MiB",
    "1–4 MiB",
    "4–10 MiB",
    "10–100 MiB",
    "100 MiB–1 GiB",
    "more than 1 GiB",
)


def histograms(scope: Scope) -> Table:
    """Count the reads and the writes in each of Darshan's ten bins, with their shares."""
    lines: list[Line] = []
    for layer in scope.layers():
        if layer.layer.api == "STDIO":
            continue
        for of, requests in (("reads", layer.layer.reads), ("writes", layer.layer.writes)):
            whole = layer.sum(requests.requests)
            lines += [
                layer.line(
                    histogram_row(of, bin_),
                    layer.sum(requests.histogram[:, place]),
                    wholes=whole,
                    of=of,
                    is_rare=True,
                )
                for place, bin_ in enumerate(BINS)
            ]
    return Table("histograms", "Requests by size", tuple(lines))


def histogram_row(of: str, bin_: str) -> str:
    """Name the characteristic of a bin; `of` is "reads" or "writes"."""
    return f"{of} of {bin_}"
