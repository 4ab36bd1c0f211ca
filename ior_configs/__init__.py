"""Runs of IOR and mdtest: their configuration, command line and outputs."""

from ioncast_base.sizes import format_size, parse_size
from ior_configs import read_csv, read_json, read_text  # noqa: F401  each module registers its readers
from ior_configs.config import IorConfig
from ior_configs.mdtest import MdtestConfig
from ior_configs.outputs import read_outputs, reader, sniff
from ior_configs.results import IorResult

__all__ = [
    "IorConfig",
    "IorResult",
    "MdtestConfig",
    "format_size",
    "parse_size",
    "read_outputs",
    "reader",
    "sniff",
]
