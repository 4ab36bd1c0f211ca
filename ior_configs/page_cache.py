"""Tells which reads the page cache of the nodes that wrote the data may have answered."""

from __future__ import annotations

from ior_configs.config import IorConfig

# Interfaces to a file system of the kernel, which keeps data in its page cache.
_APIS = frozenset({"POSIX", "MPIIO", "HDF5", "NCMPI", "MMAP"})
# Processes read data of other nodes (-Z), or the memory of the nodes is filled.
_REMEDIES = ("-Z", "-M ", "-O memoryPerTask")


class WrittenFiles:
    """The files that the runs of an output have written, in the order of the runs."""

    def __init__(self) -> None:
        self._names: set[str | None] = set()

    def add(self, config: IorConfig) -> None:
        """Note the files of a run that writes."""
        if config.write:
            self._names.add(config.test_file)

    def may_be_cached(self, config: IorConfig) -> bool:
        """Whether a run may have read data from the memory of the nodes that wrote them."""
        return (
            config.read
            and config.test_file in self._names
            and config.api in _APIS
            and not (config.reorder_tasks or config.odirect or config.inter_test_delay)
            and not any(condition.startswith(_REMEDIES) for condition in config.conditions)
        )
