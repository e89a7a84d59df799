"""Kernels written in C, each with a NumPy fallback."""
