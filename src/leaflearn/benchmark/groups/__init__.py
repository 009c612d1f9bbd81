"""Simulated groups that differ by degree or in kind: what is found, how sure, at what cost."""
