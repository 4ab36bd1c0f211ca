"""Results of uploads, as plain documents."""
