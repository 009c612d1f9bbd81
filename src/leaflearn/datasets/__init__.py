"""Benchmarks with known domains: one file each, and one table of their names.

Examples
--------
>>> sorted(DATASETS)
['colored-digits', 'functions']
>>> DATASETS["functions"]().names
('absolute', 'sine', 'logarithm')
"""

from leaflearn.datasets.colored_digits import colored_digits
from leaflearn.datasets.functions import functions
from leaflearn.datasets.registry import DATASETS, register

__all__ = ["DATASETS", "colored_digits", "functions", "register"]
