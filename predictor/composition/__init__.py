"""Estimates of phases to an application's curve, the decision, and their explanation."""
