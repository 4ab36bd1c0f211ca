from __future__ import annotations

from tests.support.workloads import a_workload

__all__ = ["a_workload"]
