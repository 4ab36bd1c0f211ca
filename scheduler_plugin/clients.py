"""The clients of slurmrestd and of ioncast's service, made from the settings."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from scheduler_plugin.service_client import Ioncast
from scheduler_plugin.settings import Settings
from scheduler_plugin.slurm import Slurm
from scheduler_plugin.token_files import is_open, read_token

_LOG = logging.getLogger("ioncast.slurm")


@contextmanager
def clients(settings: Settings, service_timeout_s: float) -> Iterator[tuple[Slurm, Ioncast]]:
    """Open a client of slurmrestd and one of ioncast's service.

    Parameters
    ----------
    settings : Settings
        The site's settings. Token files are read anew for each request.
    service_timeout_s : float
        Seconds that one request to the service may take in all.

    Raises
    ------
    InputError
        When a token file cannot be read or has no token.
    """
    slurmrestd, service = settings.slurmrestd, settings.service
    for path in (slurmrestd.token_file, service.token_file):
        read_token(path)
        if is_open(path):
            _LOG.warning("%s: everybody can read this token; run chmod o-r on it", path)
    with (
        Slurm(
            slurmrestd.address,
            slurmrestd.user,
            lambda: read_token(slurmrestd.token_file),
            slurmrestd.timeout_s,
        ) as slurm,
        Ioncast(service.address, lambda: read_token(service.token_file), service_timeout_s) as ours,
    ):
        yield slurm, ours
