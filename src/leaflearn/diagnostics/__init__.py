"""Diagnostics: checks of a fit without the truth, how many rows identify a context, bounds."""
