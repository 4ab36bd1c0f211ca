"""Notes of an adaptive campaign in its folder: how far it is, and the runs that were begun."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from benchdb.campaigns.folder import CampaignFolder
from ioncast_base.errors import InputError
from ioncast_base.files import write_file

_FILE = "adaptive.json"


@dataclass(frozen=True)
class AdaptiveNotes:
    """The state of an adaptive campaign.

    Attributes
    ----------
    regret : float or None
        The share of bandwidth that choices of I/O nodes are expected to lose, 0 to 1; None as long
        as too few runs tell.
    elapsed_s : float
        Seconds of all starts of the campaign together.
    begun : tuple of str
        Names of the runs that were begun; they run first after a crash.
    ended : str or None
        The reason why the campaign ended, as a clause; None while it has not.
    """

    regret: float | None = None
    elapsed_s: float = 0.0
    begun: tuple[str, ...] = ()
    ended: str | None = None


def read_notes(folder: CampaignFolder) -> AdaptiveNotes:
    """Read the notes of a campaign; damaged ones are an InputError."""
    file = folder.path / _FILE
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        notes = AdaptiveNotes(**(record | {"begun": tuple(map(str, record["begun"]))}))
        float(notes.elapsed_s)
    except FileNotFoundError:
        return AdaptiveNotes()
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"cannot be read: {error}", where=str(file)) from error
    return notes


def write_notes(folder: CampaignFolder, notes: AdaptiveNotes) -> None:
    """Replace the notes of a campaign."""
    write_file(folder.path / _FILE, json.dumps(asdict(notes)))
