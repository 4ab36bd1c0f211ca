"""Runs of an application, which may have several logs."""
