"""Phases and measured curves to a prediction (Inria RR-9366, §6)."""
