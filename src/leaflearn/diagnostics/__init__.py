"""Checks of data and of fits: what can be seen without the truth."""
