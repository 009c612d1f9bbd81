"""What methods are called in tables and figures."""

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


def call(method: str) -> str:
    """The name of a method for readers; its own where none is given.

    Examples
    --------
    >>> call("leaf-em"), call("my-method")
    ('LEAF-EM', 'my-method')
    """
    return NAMES.get(method, method)
