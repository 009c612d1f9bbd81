"""Figures of fitted estimators, and their style."""
