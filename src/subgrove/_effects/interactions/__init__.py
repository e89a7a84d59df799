"""Interactions: subgroups in which effects differ."""
