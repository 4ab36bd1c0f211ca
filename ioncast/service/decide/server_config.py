"""The orders of a process for decisions, which `ioncast serve` makes without its libraries."""

from __future__ import annotations

from pydantic import BaseModel

from ioncast.service.settings import Settings


class ServerConfig(BaseModel):
    """The orders of the process, from the one that starts it.

    `counts` is the descriptor of the file for counts. The site's settings come without a database.
    """

    sockets: list[int]
    counts: int
    settings: Settings
