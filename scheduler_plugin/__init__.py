"""Programs that run beside Slurm: the plugin, the hooks, the watch and the arbiter."""
