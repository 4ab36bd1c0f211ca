"""Further traits of phases, by the calls of their files: fsync, the order below MPI-IO."""
