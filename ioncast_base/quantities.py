"""Types of numbers in files and over HTTP, with the limits of `ioncast_base.limits`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from ioncast_base.limits import (
    FASTEST_MIB_S,
    LARGEST_BYTES,
    LARGEST_COUNT,
    LARGEST_ID,
    MOST_PREDICTED_IO_NODES,
    SLOWEST_MIB_S,
)
from ioncast_base.sizes import integral

# JSON has one kind of number, and some programs write 8 as 8.0.
Whole = Annotated[int, BeforeValidator(integral)]
Count = Annotated[Whole, Field(ge=1, le=LARGEST_COUNT)]
Id = Annotated[Whole, Field(ge=0, le=LARGEST_ID)]
Bytes = Annotated[Whole, Field(ge=0, le=LARGEST_BYTES)]
Bandwidth = Annotated[float, Field(ge=SLOWEST_MIB_S, le=FASTEST_MIB_S)]
# I/O nodes that a run had, that a platform offers, or that a job holds.
IoNodes = Annotated[Whole, Field(ge=0, le=LARGEST_COUNT)]
# I/O nodes to predict a bandwidth for or to give to a job.
PredictedIoNodes = Annotated[Whole, Field(ge=0, le=MOST_PREDICTED_IO_NODES)]
