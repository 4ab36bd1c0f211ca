"""Diagnoses of runs by the store of the site; a reason stands where a run has no diagnosis."""

from __future__ import annotations

from collections.abc import Sequence

from ioncast.service.context import service
from ioncast.service.web.http.problems import words_of
from ioncast.service.web.site_store import DiagnosisOfRun
from ioncast_base.errors import IoncastError

_NO_STORE = "this service has no store"
_NO_LOGS = "this service has no log of the run"
_UNREADABLE = "the store cannot tell it now; try again later"


def diagnoses_of_runs(runs: Sequence[tuple[str, ...]]) -> list[DiagnosisOfRun | str]:
    """Diagnose runs, given the SHA-256 of their logs; a text tells why a run has no diagnosis."""
    store = service().store
    if store.folder is None:
        return [_NO_STORE] * len(runs)
    with_logs = [logs for logs in runs if logs]
    try:
        found = iter(store.diagnoses(with_logs) if with_logs else ())
    except IoncastError as error:
        return [words_of(error) or _UNREADABLE] * len(runs)
    return [next(found) if logs else _NO_LOGS for logs in runs]
