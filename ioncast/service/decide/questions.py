"""The scheduler's question and its answer, as values."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from ioncast.service.web.http.fields import TEXT, JobId, JobName, Nodes, SystemName, UserName
from ioncast.service.web.http.given import RequestModel
from ioncast_base.quantities import Count, IoNodes

_LONGEST_SCRIPT = 1 << 20


class Question(RequestModel):
    """A job at its submission."""

    system: SystemName
    user: UserName | None = None
    executable: str | None = Field(
        None,
        max_length=1000,
        pattern=TEXT,
        description="The program, with its folder if that is known.",
        examples=["/apps/hacc_io"],
    )
    name: JobName | None = None
    nodes: Nodes | None = None
    tasks: Count | None = Field(None, description="Processes.", examples=[128])
    available: IoNodes | None = Field(
        None, description="The largest number of I/O nodes that the job may get.", examples=[8]
    )
    job_id: JobId | None = None
    explore: bool = Field(
        False,
        description="Whether another number may be tried, because the job will get the answer.",
    )


class QuestionWithScript(Question):
    """A job at its submission, with its job script."""

    script: str | None = Field(
        None,
        max_length=_LONGEST_SCRIPT,
        description="The job script. The programs that it starts are looked up in the history if"
        " no executable is given or the executable is unknown.",
        examples=["#!/bin/sh\nsrun ./hacc_io 100000 out\n"],
    )


class Alternative(BaseModel):
    """Another number of I/O nodes with its expected bandwidth."""

    io_nodes: int
    expected_mib_s: float
    p10_mib_s: float
    p90_mib_s: float


class DecisionAnswer(BaseModel):
    """The number of I/O nodes of a job, with the reason."""

    decision_id: str = Field(description="Send it with the job's outcome.")
    io_nodes: int | None = Field(
        description="The number of I/O nodes; 0 is direct access. Null is no answer: the"
        " scheduler uses its own default."
    )
    source: Literal["history", "model", "default"] = Field(
        description="history: earlier runs of this size. model: runs of very different sizes,"
        " scaled by the model. default: the site's default."
    )
    expected_mib_s: float | None = Field(description="The expected bandwidth in MiB/s.")
    p10_mib_s: float | None = Field(description="One run in ten is slower.")
    p90_mib_s: float | None = Field(description="One run in ten is faster.")
    alternatives: list[Alternative] = Field(description="The other numbers of I/O nodes.")
    confidence: float | None = Field(
        description="The probability that the job gets at least 0.9 of the best bandwidth, times"
        " the share of the application's runs that do this I/O. Null if only runs of very"
        " different sizes are known and the model has not scaled them yet."
    )
    explored: bool = Field(
        description="Whether the number is tried, to learn whether it is better than the best"
        " known one."
    )
    why: str = Field(description="The reason in a sentence.")
    application_id: int | None = Field(description="The id of the application in the history.")
