"""All methods of the paper with one interface; each file registers its methods."""

from leaflearn.benchmark.methods import (  # noqa: F401  # importing a file registers its methods
    erm,
    label_prop,
    leaf,
    leaf_annealed,
    learned_allocation,
    maml,
    modular,
    oracles,
    pseudo_label,
    sparse_moe,
)
from leaflearn.benchmark.methods.contract import Method, OracleInfo, Problem
from leaflearn.benchmark.methods.registry import METHODS, make_method, register
from leaflearn.benchmark.methods.running import describe, train

__all__ = [
    "METHODS",
    "Method",
    "OracleInfo",
    "Problem",
    "describe",
    "make_method",
    "register",
    "train",
]
