"""Experiments that anyone can rerun, on measured data that are shipped with them."""
