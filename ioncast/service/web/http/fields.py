"""Fields that several operations share."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from ioncast_base import quantities
from ioncast_base.io_node_names import LONGEST_TEXT, names_in
from ioncast_base.quantities import Count, IoNodes
from ioncast_base.toml_files import refusing

# Programs, users and databases have no NUL in their names.
TEXT = r"^[^\x00]*$"

Bandwidth = Annotated[quantities.Bandwidth, Field(description="In MiB/s.")]
SystemName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        pattern=TEXT,
        description="The name of the system.",
        examples=["mn4"],
    ),
]
UserName = Annotated[
    str,
    Field(max_length=100, pattern=TEXT, description="The job's user.", examples=["alice"]),
]
JobName = Annotated[
    str, Field(max_length=200, pattern=TEXT, description="The job's name.", examples=["restart"])
]
JobId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=100,
        pattern=TEXT,
        description="The scheduler's id of the job.",
        examples=["4711"],
    ),
]
DecisionId = Annotated[str, Field(max_length=32, pattern=TEXT)]
Nodes = Annotated[Count, Field(description="Compute nodes of the job.", examples=[16])]
NodesOfLog = Annotated[
    Count,
    Field(
        description="Compute nodes of the job; by default those that its log names.",
        examples=[16],
    ),
]
Tasks = Annotated[
    Count,
    Field(
        description="Processes as the scheduler counts them; by default all processes of the logs."
    ),
]
RanWith = Annotated[
    IoNodes,
    Field(description="I/O nodes of the run; 0 is direct access."),
]
IoNodeNames = Annotated[
    str,
    Field(
        max_length=LONGEST_TEXT,
        description="The names of the run's I/O nodes, with commas between, as hooks set them in"
        " ION_NODES. By them slow I/O nodes are found.",
        examples=["io3,io5"],
    ),
    AfterValidator(refusing(lambda text: ",".join(names_in(text)))),
]
