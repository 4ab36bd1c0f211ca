"""Slurm's limits on a licence: the most of it that one job can have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

# With more than one of these, a job never starts: Slurm rejects it, or lets it wait for ever.
_OF_JOBS = (("per", "job"), ("per", "user"), ("per", "account"))
_OF_GROUPS = (("total",),)
_ENDLESS = 2**32 - 2


@dataclass(frozen=True)
class Limits:
    """The most licences of one name that one job can have, where Slurm limits them.

    Slurm compares names of accounts and QOS without regard to case; here they are in lower case.

    Attributes
    ----------
    total : int
        The number that Slurm has; 0 if it does not know the licence.
    partition_users : mapping of tuple to int
        By partition, account and user: the same for the jobs of one partition.
    """

    licence: str
    total: int
    partitions: Mapping[str, int] = field(default_factory=dict)
    qos: Mapping[str, int] = field(default_factory=dict)
    accounts: Mapping[str, int] = field(default_factory=dict)
    users: Mapping[tuple[str, str], int] = field(default_factory=dict)
    partition_users: Mapping[tuple[str, str, str], int] = field(default_factory=dict)

    def of_job(self, partition: str, qos: str, account: str, user: str) -> int:
        """Compute the lowest limit of a job; several partitions are separated by commas."""
        account = account.lower()
        found = [
            *(self.partitions.get(name) for name in partition.split(",")),
            self.qos.get(qos.lower()),
            self.accounts.get(account),
            self.users.get((account, user)),
            *(self.partition_users.get((name, account, user)) for name in partition.split(",")),
        ]
        return min([self.total, *(limit for limit in found if limit is not None)])


class Association(NamedTuple):
    """A row of Slurm's associations: an account, or a user of an account.

    With a partition it counts only for the user's jobs in this partition.
    """

    account: str
    user: str
    partition: str
    parent: str
    of_job: int | None
    of_group: int | None


def limits_of(
    licence: str,
    total: int,
    qos: Mapping[str, int | None],
    partitions: Mapping[str, str],
    associations: Sequence[Association],
) -> Limits:
    """Put Slurm's limits together."""
    limited = {name.lower(): limit for name, limit in qos.items() if limit is not None}
    accounts = _accounts([row for row in associations if not row.user])
    users = _users([row for row in associations if row.user], accounts)
    return Limits(
        licence,
        total,
        {name: limited[of.lower()] for name, of in partitions.items() if of.lower() in limited},
        limited,
        accounts,
        {key[1:]: limit for key, limit in users.items() if not key[0]},
        {key: limit for key, limit in users.items() if key[0]},
    )


def qos_limit(entry: Mapping[str, Any], licence: str) -> int | None:
    """Read the lowest limit of a QOS on one job; None without a limit."""
    resources = entry["limits"]["max"]["tres"]
    return _least(_counts(resources, [*_OF_JOBS, *_OF_GROUPS], licence))


def association(entry: Mapping[str, Any], licence: str) -> Association:
    """Read a row of the associations."""
    resources = entry["max"]["tres"]
    return Association(
        entry["account"],
        entry.get("user") or "",
        entry.get("partition") or "",
        entry.get("parent_account") or "",
        _least(_counts(resources, _OF_JOBS, licence)),
        _least(_counts(resources, _OF_GROUPS, licence)),
    )


def _counts(
    resources: Mapping[str, Any], paths: Iterable[Sequence[str]], licence: str
) -> Iterator[int]:
    """The counts of a licence in lists of trackable resources (TRES)."""
    for path in paths:
        found: Any = resources
        for key in path:
            found = found.get(key) or {}
        for entry in found:
            is_licence = entry["type"] == "license" and is_named(entry["name"], licence)
            if is_licence and 0 <= entry["count"] < _ENDLESS:
                yield int(entry["count"])


def is_named(name: str, licence: str) -> bool:
    """Whether a name is that of a licence, with or without its server: ``name@server``."""
    return licence in (name, name.partition("@")[0])


def _least(found: Iterable[int | None]) -> int | None:
    return min((limit for limit in found if limit is not None), default=None)


def _accounts(rows: Sequence[Association]) -> dict[str, int]:
    """The limits of accounts: Slurm gives them their parents' limits of jobs, not of groups."""
    by_name = {row.account.lower(): row for row in rows}

    def groups(row: Association) -> Iterator[int | None]:
        passed = set()
        while row.account not in passed:
            passed.add(row.account)
            yield row.of_group
            row = by_name.get(row.parent.lower(), row)

    limits = {row.account.lower(): _least([row.of_job, *groups(row)]) for row in rows}
    return {account: limit for account, limit in limits.items() if limit is not None}


def _users(
    rows: Iterable[Association], accounts: Mapping[str, int]
) -> dict[tuple[str, str, str], int]:
    """The limits of users, where they are lower than the account's; by partition or ""."""
    found: dict[tuple[str, str, str], int] = {}
    for row in rows:
        account = row.account.lower()
        limit = _least([row.of_job, row.of_group])
        if limit is not None and limit < accounts.get(account, _ENDLESS):
            found[row.partition, account, row.user] = limit
    return found
