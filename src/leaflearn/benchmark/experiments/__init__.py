"""Experiments with known truth: what is run, what was recorded, and the tables made from it."""
