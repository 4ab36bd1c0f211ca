"""`ioncast platform`: an I/O-forwarding platform on one machine."""

from __future__ import annotations

import click


@click.group(
    epilog="""\b
Examples:
  ioncast platform up
  ioncast platform exec --io-nodes 4 --tasks 16 -- dd if=/dev/zero of=f bs=1M count=4
  ioncast platform down
"""
)
def platform() -> None:
    """Emulate I/O nodes on one machine: real daemons, shaped links."""
