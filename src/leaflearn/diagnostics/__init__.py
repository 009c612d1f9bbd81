"""Diagnostics: checks of a fit, of new sources and of single probabilities, without the truth."""
