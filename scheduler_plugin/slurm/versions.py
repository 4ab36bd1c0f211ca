"""Versions of Slurm's REST interface: one class for each version that changed a field we read.

Slurm 22.05 supports 0.0.38, 23.02 also 0.0.39, and so on to 25.11, which supports 0.0.41 to 0.0.44.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_plugin.slurm.jobs import ENDED, REQUEUED, Job
from scheduler_plugin.slurm.licences import Licence

# 22.05 and 23.02 give only one state. While one of these flags is set they give the flag instead of
# the base state.
_BASE_STATES = {
    "CONFIGURING": "RUNNING",
    "POWER_UP_NODE": "RUNNING",
    "RESIZING": "RUNNING",
    "SIGNALING": "RUNNING",
    "STOPPED": "RUNNING",
    "STAGE_OUT": "COMPLETING",
    REQUEUED: "PENDING",
    "REQUEUE_FED": "PENDING",
    "REQUEUE_HOLD": "PENDING",
    "RESV_DEL_HOLD": "PENDING",
    "SPECIAL_EXIT": "PENDING",
}
_NO_VALUE = 0xFFFFFFFE
_NOT_OVER = ("COMPLETING", "STAGE_OUT")
# All fields of a job, a partition or an association that are read below and in licence_limits.py.
_READ = frozenset(
    {
        "account",
        "admin_comment",
        "allocation_nodes",
        "array",
        "array_job_id",
        "array_task_id",
        "association",
        "cluster",
        "comment",
        "eligible_time",
        "end_time",
        "het",
        "het_job_id",
        "job_id",
        "job_state",
        "licenses",
        "licenses_allocated",
        "max",
        "name",
        "node_count",
        "parent_account",
        "partition",
        "priority",
        "qos",
        "start_time",
        "state",
        "state_reason",
        "submit_time",
        "tasks",
        "time",
        "tres",
        "user",
        "user_id",
        "user_name",
    }
)
# Every job has this field. In other answers only partitions and associations may have it.
_EVERY_JOB_HAS = "partition"


def without_unread(entry: dict[str, Any]) -> dict[str, Any]:
    """Drop the fields of a job (partition, association) that are not read, while JSON is decoded.

    A job has up to 150 fields; all of them take eight times the memory and twice the time.
    """
    if _EVERY_JOB_HAS not in entry:
        return entry
    return {field: value for field, value in entry.items() if field in _READ}


@dataclass(frozen=True)
class Version38:
    """0.0.38: numbers and states are plain values."""

    name: str

    def job(self, entry: Mapping[str, Any]) -> Job:
        """Read a job of slurmctld."""
        state = self.state(entry["job_state"])
        priority = self.number(entry.get("priority"))
        return Job(
            id=int(entry["job_id"]),
            user=entry.get("user_name") or str(entry.get("user_id", "")),
            name=entry.get("name") or "",
            partition=entry.get("partition") or "",
            state=state,
            reason=entry.get("state_reason") or "None",
            is_held=state == "PENDING" and priority == 0,
            priority=priority,
            submitted_s=self.number(entry.get("submit_time")) or None,
            started_s=_unless(state == "PENDING", self.number(entry.get("start_time"))),
            ended_s=_unless(state not in ENDED, self.number(entry.get("end_time"))),
            nodes=self.number(entry.get("node_count")),
            tasks=self.number(entry.get("tasks")),
            licenses=self.licenses(entry),
            admin_comment=entry.get("admin_comment") or "",
            array_job_id=self.number(entry.get("array_job_id")) or None,
            array_task_id=self.number(entry.get("array_task_id")),
            het_job_id=self.number(entry.get("het_job_id")) or None,
            qos=entry.get("qos") or "",
            account=entry.get("account") or "",
            begins_s=self.number(entry.get("eligible_time")) or None,
        )

    def accounted_job(self, entry: Mapping[str, Any]) -> Job:
        """Read a job of slurmdbd."""
        state = self.accounted_state(entry["state"]["current"])
        times, array = entry["time"], entry.get("array") or {}
        return Job(
            id=int(entry["job_id"]),
            user=entry.get("user") or (entry.get("association") or {}).get("user") or "",
            name=entry.get("name") or "",
            partition=entry.get("partition") or "",
            state=state,
            reason=entry["state"].get("reason") or "None",
            is_held=False,
            priority=self.number(entry.get("priority")),
            submitted_s=self.number(times["submission"]) or None,
            started_s=_unless(state == "PENDING", self.number(times["start"])),
            ended_s=_unless(state not in ENDED, self.number(times["end"])),
            nodes=self.number(entry.get("allocation_nodes")),
            tasks=None,
            licenses=self.accounted_licenses(entry),
            admin_comment=(entry.get("comment") or {}).get("administrator") or "",
            array_job_id=self.number(array.get("job_id")) or None,
            array_task_id=self.number(array.get("task_id")),
            het_job_id=self.number((entry.get("het") or {}).get("job_id")) or None,
        )

    def licence(self, entry: Mapping[str, Any]) -> Licence:
        """Read a licence of the cluster."""
        return Licence(entry["LicenseName"], int(entry["Total"]), int(entry["Used"]))

    def partition(self, entry: Mapping[str, Any]) -> tuple[str, str]:
        """Read the name and the QOS of a partition; without a QOS its name is empty."""
        return entry["name"], entry.get("qos") or ""

    def number(self, value: Any) -> int | None:
        """Read a number; None if it is missing or one of Slurm's NO_VAL and INFINITE."""
        return None if value is None or int(value) >= _NO_VALUE else int(value)

    def begin_time(self, begins_s: int) -> int | str:
        """Write the Unix time before which a job must not start."""
        return f"uts{begins_s}"

    def state(self, value: Any) -> str:
        """Read a job's base state."""
        return _BASE_STATES.get(str(value), str(value))

    def accounted_state(self, value: Any) -> str:
        """Read the state of a run of slurmdbd."""
        return REQUEUED if value == REQUEUED else self.state(value)

    def licenses(self, entry: Mapping[str, Any]) -> str:
        """Licences that a job has, or asks for while it waits."""
        return entry.get("licenses") or ""

    def accounted_licenses(self, entry: Mapping[str, Any]) -> str:
        """Licences of a job of slurmdbd.

        0.0.38 gives only licences that AccountingStorageTRES counts.
        """
        resources = (entry.get("tres") or {}).get("allocated") or []
        return ",".join(
            f"{resource['name']}:{resource['count']}"
            for resource in resources
            if resource["type"] == "license"
        )


class Version39(Version38):
    """0.0.39: a number comes with flags (set, infinite); times are written as numbers."""

    def partition(self, entry: Mapping[str, Any]) -> tuple[str, str]:
        """Read the name and the QOS of a partition, which stands beside those that it allows."""
        return entry["name"], (entry.get("qos") or {}).get("assigned") or ""

    def number(self, value: Any) -> int | None:
        """Read ``{"set": …, "infinite": …, "number": …}`` or, in a few fields, a plain number."""
        if not isinstance(value, Mapping):
            return super().number(value)
        return super().number(value["number"]) if value["set"] and not value["infinite"] else None

    def begin_time(self, begins_s: int) -> int | str:
        """Write the Unix time as a number."""
        return begins_s

    def accounted_licenses(self, entry: Mapping[str, Any]) -> str:
        """Licences of a job of slurmdbd, as a text of their own."""
        return entry.get("licenses") or ""


class Version40(Version39):
    """0.0.40: the state is a list of the base state and its flags."""

    def state(self, value: Any) -> str:
        """The base state; while a job completes, COMPLETING instead."""
        if not isinstance(value, list):
            raise TypeError("the state is not a list")
        unfinished = [state for state in value if state in _NOT_OVER]
        return super().state((unfinished or value)[0])

    def accounted_state(self, value: Any) -> str:
        """Read the state of a run of slurmdbd; REQUEUED is one of its flags."""
        return REQUEUED if REQUEUED in value else self.state(value)


class Version43(Version40):
    """0.0.43: a job may ask for alternatives; its allocated licences have a field of their own."""

    def licenses(self, entry: Mapping[str, Any]) -> str:
        """Allocated licences, or requested ones before the allocation."""
        return str(entry.get("licenses_allocated") or super().licenses(entry))


NEWEST_FIRST: tuple[Version38, ...] = (
    Version43("0.0.44"),
    Version43("0.0.43"),
    Version40("0.0.42"),
    Version40("0.0.41"),
    Version40("0.0.40"),
    Version39("0.0.39"),
    Version38("0.0.38"),
)


def _unless(expected: bool, time_s: int | None) -> int | None:
    """A time; None if it is only expected, or 0, which means that it is not set."""
    return None if expected else time_s or None
