"""Predict bandwidth from phases and measured curves (Inria RR-9366, §6)."""
