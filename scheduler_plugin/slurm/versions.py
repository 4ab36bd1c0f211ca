"""What differs between the versions of Slurm's REST interface, a class for each that changed.

Slurm 22.05 speaks 0.0.38, 23.02 also 0.0.39, and so on to 25.11, which speaks 0.0.41 to 0.0.44.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from scheduler_plugin.slurm.jobs import ENDED, Job
from scheduler_plugin.slurm.licences import Licence

# Of a job that is in one of these and has a base state too, 22.05 and 23.02 tell only this.
_BASE_STATES = {
    "CONFIGURING": "RUNNING",
    "POWER_UP_NODE": "RUNNING",
    "RESIZING": "RUNNING",
    "SIGNALING": "RUNNING",
    "STOPPED": "RUNNING",
    "STAGE_OUT": "COMPLETING",
    "REQUEUED": "PENDING",
    "REQUEUE_FED": "PENDING",
    "REQUEUE_HOLD": "PENDING",
    "RESV_DEL_HOLD": "PENDING",
    "SPECIAL_EXIT": "PENDING",
}
_NO_VALUE = 0xFFFFFFFE
_NOT_OVER = ("COMPLETING", "STAGE_OUT")
# All that is read of a job below, and what tells one from the other parts of an answer.
_OF_A_JOB = frozenset(
    {
        "admin_comment",
        "allocation_nodes",
        "array",
        "array_job_id",
        "array_task_id",
        "association",
        "burst_buffer",
        "comment",
        "end_time",
        "het",
        "het_job_id",
        "job_id",
        "job_state",
        "licenses",
        "licenses_allocated",
        "name",
        "node_count",
        "partition",
        "priority",
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
_EVERY_JOB_HAS = "partition"


def without_unread(told: dict[str, Any]) -> dict[str, Any]:
    """Drop what is not read of a job, while JSON is decoded.

    A job has up to 150 fields; keeping them all takes eight times the memory and twice the time.
    """
    if _EVERY_JOB_HAS not in told:
        return told
    return {field: value for field, value in told.items() if field in _OF_A_JOB}


@dataclass(frozen=True)
class Version38:
    """0.0.38: numbers and states as they are."""

    name: str
    can_change_admin_comment: ClassVar[bool] = False

    def job(self, told: Mapping[str, Any]) -> Job:
        """A job that slurmctld tells of."""
        state = self.state(told["job_state"])
        priority = self.number(told.get("priority"))
        return Job(
            id=int(told["job_id"]),
            user=told.get("user_name") or str(told.get("user_id", "")),
            name=told.get("name") or "",
            partition=told.get("partition") or "",
            state=state,
            reason=told.get("state_reason") or "None",
            is_held=state == "PENDING" and priority == 0,
            priority=priority,
            submitted_s=self.number(told.get("submit_time")) or None,
            started_s=_unless(state == "PENDING", self.number(told.get("start_time"))),
            ended_s=_unless(state not in ENDED, self.number(told.get("end_time"))),
            nodes=self.number(told.get("node_count")),
            tasks=self.number(told.get("tasks")),
            licenses=self.licenses(told),
            admin_comment=told.get("admin_comment") or "",
            array_job_id=self.number(told.get("array_job_id")) or None,
            array_task_id=self.number(told.get("array_task_id")),
            het_job_id=self.number(told.get("het_job_id")) or None,
            burst_buffer=told.get("burst_buffer") or "",
        )

    def accounted_job(self, told: Mapping[str, Any]) -> Job:
        """A job that slurmdbd tells of."""
        state = self.state(told["state"]["current"])
        times, array = told["time"], told.get("array") or {}
        return Job(
            id=int(told["job_id"]),
            user=told.get("user") or (told.get("association") or {}).get("user") or "",
            name=told.get("name") or "",
            partition=told.get("partition") or "",
            state=state,
            reason=told["state"].get("reason") or "None",
            is_held=False,
            priority=self.number(told.get("priority")),
            submitted_s=self.number(times["submission"]) or None,
            started_s=_unless(state == "PENDING", self.number(times["start"])),
            ended_s=_unless(state not in ENDED, self.number(times["end"])),
            nodes=self.number(told.get("allocation_nodes")),
            tasks=None,
            licenses=self.accounted_licenses(told),
            admin_comment=(told.get("comment") or {}).get("administrator") or "",
            array_job_id=self.number(array.get("job_id")) or None,
            array_task_id=self.number(array.get("task_id")),
            het_job_id=self.number((told.get("het") or {}).get("job_id")) or None,
        )

    def licence(self, told: Mapping[str, Any]) -> Licence:
        """A licence of the cluster."""
        return Licence(told["LicenseName"], int(told["Total"]), int(told["Used"]))

    def number(self, told: Any) -> int | None:
        """A number; None where there is none, or one of Slurm's NO_VAL and INFINITE."""
        return None if told is None or int(told) >= _NO_VALUE else int(told)

    def state(self, told: Any) -> str:
        """One state for each job."""
        return _BASE_STATES.get(str(told), str(told))

    def licenses(self, told: Mapping[str, Any]) -> str:
        """A job's licences: those it has, or asks for while it waits."""
        return told.get("licenses") or ""

    def accounted_licenses(self, told: Mapping[str, Any]) -> str:
        """Those of a job that slurmdbd tells of.

        0.0.38 has them only among what AccountingStorageTRES counts.
        """
        resources = (told.get("tres") or {}).get("allocated") or []
        return ",".join(
            f"{resource['name']}:{resource['count']}"
            for resource in resources
            if resource["type"] == "license"
        )


class Version39(Version38):
    """0.0.39: a number says whether it is set and finite; administrators' comments change."""

    can_change_admin_comment = True

    def number(self, told: Any) -> int | None:
        """Read ``{"set": …, "infinite": …, "number": …}`` or, of a few fields, a plain number."""
        if not isinstance(told, Mapping):
            return super().number(told)
        return super().number(told["number"]) if told["set"] and not told["infinite"] else None

    def accounted_licenses(self, told: Mapping[str, Any]) -> str:
        """Slurmdbd has the text now."""
        return told.get("licenses") or ""


class Version40(Version39):
    """0.0.40: a job's base state and its flags are a list."""

    def state(self, told: Any) -> str:
        """Take the base state, but of a job that still completes that it does."""
        if not isinstance(told, list):
            raise TypeError("a list of states expected")
        unfinished = [state for state in told if state in _NOT_OVER]
        return super().state((unfinished or told)[0])


class Version43(Version40):
    """0.0.43: a job may ask for one licence or another; what it got stands elsewhere."""

    def licenses(self, told: Mapping[str, Any]) -> str:
        """What it got, and what it asks for before that."""
        return str(told.get("licenses_allocated") or super().licenses(told))


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
    """Drop times that are only expected, and 0, which stands for none."""
    return None if expected else time_s or None
