"""The names of methods in tables and figures."""

from __future__ import annotations

NAMES = {
    "erm": "ERM",
    "erm-top-k": "ERM-top k",
    "maml": "MAML",
    "modular": "Modular",
    "pseudo-label": "PseudoLabel",
    "label-prop": "LabelProp",
    "sparse-moe": "Sparse MoE",
    "sparse-moe-switch": "Sparse MoE, gate that learns",
    "learned-allocation": "Learned allocation",
    "em-single": "EM (n=1)",
    "leaf-em": "LEAF-EM",
    "leaf": "LEAF",
    "leaf-batch": "LEAF, a batch is a group",
    "leaf-batch-extra": "LEAF, a batch is a group, one model more",
    "leaf-extra": "LEAF, one model more",
    "leaf-annealed": "leaflearn",
    "leaf-robust": "leaflearn, robust loss",
    "annealed-extra": "leaflearn, one model more",
    "mll-oracle": "MLL oracle",
    "mtl-oracle": "MTL oracle",
}


def display_name(method: str) -> str:
    """The name of a method for readers; the registered name if there is no other.

    Examples
    --------
    >>> display_name("leaf-em"), display_name("my-method")
    ('LEAF-EM', 'my-method')
    """
    return NAMES.get(method, method)
