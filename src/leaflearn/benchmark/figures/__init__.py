"""Figures of the benchmarks."""
