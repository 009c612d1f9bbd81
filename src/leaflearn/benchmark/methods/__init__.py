"""Every method of the paper, behind one contract; each file registers its own."""

from leaflearn.benchmark.methods import (  # noqa: F401  # importing a file is what registers its methods
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
