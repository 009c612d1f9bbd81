"""Benchmarks with known domains, and the table of their names.

Examples
--------
>>> DATASETS["functions"]().names
('absolute', 'sine', 'logarithm')
"""

from leaflearn.benchmark.datasets.cifar100_hierarchy import cifar100_hierarchy
from leaflearn.benchmark.datasets.colored_digits import (
    colored_digits,
    digits_hierarchy,
    digits_opposite,
    digits_parallel,
)
from leaflearn.benchmark.datasets.colored_mnist import colored_mnist
from leaflearn.benchmark.datasets.fashion import fashion_opposite, fashion_parallel
from leaflearn.benchmark.datasets.functions import functions
from leaflearn.benchmark.datasets.gas_mixtures import gas_mixtures
from leaflearn.benchmark.datasets.gas_simulator import gas_simulated
from leaflearn.benchmark.datasets.registry import DATASETS, DataSet, register
from leaflearn.benchmark.datasets.store import DataError, MissingDataError, data_folder
from leaflearn.benchmark.datasets.two_lines import two_lines

__all__ = [
    "DATASETS",
    "DataError",
    "DataSet",
    "MissingDataError",
    "cifar100_hierarchy",
    "colored_digits",
    "colored_mnist",
    "data_folder",
    "digits_hierarchy",
    "digits_opposite",
    "digits_parallel",
    "fashion_opposite",
    "fashion_parallel",
    "functions",
    "gas_mixtures",
    "gas_simulated",
    "register",
    "two_lines",
]
