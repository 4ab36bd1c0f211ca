"""I03, I04: few servers of Lustre for the bytes of the run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ioncast.insights.checks.concerned import worst_files
from ioncast.insights.checks.values import Case, Find, Finding, Level, Result, Unknown
from ioncast.insights.facts.ost_use import files_on_one_stripe, ost_use
from ioncast.insights.facts.values import Bools

_NO_LAYOUT = "the log does not tell over which OSTs the files on Lustre are spread (LUSTRE)"


def one_stripe(case: Case) -> Result:
    """I03: a large file that several processes share has one stripe."""
    files, limit = case.facts.files, case.thresholds.one_stripe_bytes
    shared = (files.processes > 1) & (files.extent_bytes >= limit)
    if case.facts.lustre is None:
        return Unknown(_NO_LAYOUT) if _is_any_on_lustre(case, shared) else None
    found = files_on_one_stripe(case.facts)
    found = found[shared[found]]
    if not len(found):
        return None
    count, named = worst_files(case, found, files.extent_bytes[found])
    return Finding(
        "WARN",
        numbers={"files": count, "bytes": named[0].number},
        thresholds={"one_stripe_bytes": limit},
        files=named,
    )


def use_of_osts(case: Case) -> Result:
    """I04: the share of the OSTs of the file system that hold the files."""
    limits = case.thresholds
    use = ost_use(case.facts)
    if use is None:
        moved = case.facts.files.bytes > 0
        return Unknown(_NO_LAYOUT) if _is_any_on_lustre(case, moved) else None
    osts = use.osts or limits.osts
    if not osts:
        return Unknown("the number of OSTs is not known: set `osts` in the settings of the checks")
    part = min(use.used / osts, 1.0)
    level: Level = "HIGH" if part < limits.ost_share_bad else "WARN"
    if part >= limits.ost_share_good:
        level = "OK"
    return Finding(
        level,
        numbers={"used": use.used, "osts": osts, "share": part, "files": use.files},
        thresholds={
            "ost_share_good": limits.ost_share_good,
            "ost_share_bad": limits.ost_share_bad,
        },
        variant="" if level == "OK" else "few",
    )


def _is_any_on_lustre(case: Case, files: Bools) -> bool:
    """Whether the path of one of the files is on a file system of the type "lustre"."""
    facts = case.facts
    mounts = tuple(f"{path.rstrip('/')}/" for path, type_ in facts.run.mounts if type_ == "lustre")
    paths = (facts.files.path[row] for row in np.flatnonzero(files).tolist())
    return bool(mounts) and any(path.startswith(mounts) for path in paths)


FINDERS: Mapping[str, Find] = {"I03": one_stripe, "I04": use_of_osts}
