"""The clients of slurmrestd and of ioncast's service, made from the settings."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from ioncast_base.errors import InputError
from scheduler_plugin.file_rights import Rule, entries_on_the_way, rights_problems, user_name
from scheduler_plugin.service_client import Ioncast
from scheduler_plugin.settings import SiteSettings
from scheduler_plugin.slurm import Slurm
from scheduler_plugin.token_files import read_token

_LOG = logging.getLogger("ioncast.slurm")
# The origin of each token, for the remedy of an error.
_SLURM = "renew-slurm-token writes a token of Slurm into this file; see docs/slurm.md"
_SERVICE = "`ioncast token add` prints the token of the service for this file; see docs/slurm.md"


@contextmanager
def clients(settings: SiteSettings, service_timeout_s: float) -> Iterator[tuple[Slurm, Ioncast]]:
    """Open a client of slurmrestd and one of ioncast's service.

    Parameters
    ----------
    settings : SiteSettings
        The site's settings. Token files are read anew for each request.
    service_timeout_s : float
        Seconds that one request to the service may take in all.

    Raises
    ------
    InputError
        When a token file cannot be read or has no token.
    """
    slurmrestd, service = settings.slurmrestd, settings.service
    for path, origin in ((slurmrestd.token_file, _SLURM), (service.token_file, _SERVICE)):
        _check_token(path, origin)
        rule = Rule(path, frozenset([user_name(os.geteuid())]), is_secret=True)
        for problem in rights_problems(rule, entries_on_the_way(path)):
            _LOG.warning("%s; %s", problem.found, problem.remedy)
    with (
        Slurm(
            slurmrestd.address,
            slurmrestd.user,
            lambda: read_token(slurmrestd.token_file),
            slurmrestd.timeout_s,
            cluster=slurmrestd.cluster,
        ) as slurm,
        Ioncast(service.address, lambda: read_token(service.token_file), service_timeout_s) as ours,
    ):
        yield slurm, ours


def _check_token(path: str, origin: str) -> None:
    try:
        read_token(path)
    except InputError as error:
        raise InputError(error.what, where=error.where, remedy=origin) from error
