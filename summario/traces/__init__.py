"""Phases of the requests that Darshan traced, their slowest ranks and their stragglers."""
