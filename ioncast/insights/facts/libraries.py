"""The I/O libraries that a run used, by its modules and by the names of its files."""

from __future__ import annotations

import re

from ioncast.insights.facts.values import Facts

# The libraries that advice has snippets for, the highest layer first.
LIBRARIES = ("adios", "netcdf", "pnetcdf", "hdf5", "mpiio", "lustre", "posix")
_LIBRARY_OF_SUFFIX = {"bp": "adios", "nc": "netcdf", "nc4": "netcdf", "h5": "hdf5", "hdf5": "hdf5"}
_SUFFIX = re.compile(rf"\.({'|'.join(_LIBRARY_OF_SUFFIX)})(?=[/\n])")


def libraries_of(facts: Facts) -> tuple[str, ...]:
    """List the libraries of a run, in the order of `LIBRARIES`."""
    # One search in one text is much faster than a search in each of 64,000 paths.
    paths = "\n".join([*facts.files.path, ""])
    found = {_LIBRARY_OF_SUFFIX[suffix] for suffix in set(_SUFFIX.findall(paths))}
    run = facts.run
    if run.has("PNETCDF_FILE") and not run.has("H5F"):
        # PnetCDF wrote these files: netCDF-4 would need HDF5.
        found.discard("netcdf")
    for library, is_used in (
        ("hdf5", run.has("H5F", "H5D")),
        ("pnetcdf", run.has("PNETCDF_FILE", "PNETCDF_VAR")),
        ("mpiio", "MPIIO" in facts.layers),
        ("posix", "MPIIO" not in facts.layers),
        ("lustre", run.has("LUSTRE")),
    ):
        if is_used:
            found.add(library)
    return tuple(library for library in LIBRARIES if library in found)
