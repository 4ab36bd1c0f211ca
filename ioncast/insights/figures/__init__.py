"""Figures of a run's insights, made from the plain documents that are stored."""
