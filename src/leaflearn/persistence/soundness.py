"""Checks of loaded scikit-learn models, before their compiled code is used.

A tree stores for each node a feature and two child nodes. Compiled code uses these numbers without
a check, so a manipulated file could make it read other memory or run in a loop. The same is true
of support vectors, neighbors and sparse matrices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.neighbors._base import NeighborsBase
from sklearn.svm._base import BaseLibSVM
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

LEAF = -1


def check_sound(value: Any) -> None:
    """Raise a ValueError if a model, or one inside it, has indices out of range.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> model = DecisionTreeRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> check_sound([model])
    >>> model.tree_.feature[0] = 7
    >>> check_sound([model])
    Traceback (most recent call last):
    ...
    ValueError: a tree has nodes or features out of range
    """
    for item in _walk(value):
        for kind, check in CHECKS.items():
            if isinstance(item, kind):
                check(item)


def _walk(value: Any) -> Iterator[Any]:
    """The value and all objects in it."""
    waiting, seen = [value], {}
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen[id(item)] = item  # kept alive, so that no other object gets its id
        yield item
        if isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list | tuple | set | frozenset):
            waiting += item
        elif isinstance(item, np.ndarray):
            waiting += item.ravel().tolist() if item.dtype == object else []
        elif not isinstance(item, type):
            waiting += getattr(item, "__dict__", {}).values()


def _require(is_sound: Any, what: str, fault: str = "has nodes or features out of range") -> None:
    if not is_sound:
        raise ValueError(f"{what} {fault}")


def _check_nodes(left: Any, right: Any, feature: Any, is_leaf: Any, n_features: int) -> int:
    """Check the nodes of a tree, and return its depth.

    Each inner node must have an existing feature and two children, which come later and have no
    other parent.
    """
    inner = np.flatnonzero(~is_leaf)
    children = np.concatenate([left[inner], right[inner]]).astype(np.int64)
    _require(
        np.all((children > np.tile(inner, 2)) & (children < len(left)))
        and len(np.unique(children)) == len(children),
        "a tree",
    )
    _require(np.all((feature[inner] >= 0) & (feature[inner] < n_features)), "a tree")
    depth, level = 0, np.zeros(1, dtype=np.int64)
    while not is_leaf[level].all():
        level = level[~is_leaf[level]]
        depth, level = depth + 1, np.concatenate([left[level], right[level]]).astype(np.int64)
    return depth


def _check_tree(model: BaseDecisionTree) -> None:
    tree = getattr(model, "tree_", None)
    if tree is None:  # not fitted
        return
    _require(
        isinstance(tree, Tree)
        and 1 <= tree.node_count <= tree.capacity
        and tree.n_features == model.n_features_in_,
        "a tree",
    )
    depth = _check_nodes(
        tree.children_left,
        tree.children_right,
        tree.feature,
        tree.children_left == LEAF,
        tree.n_features,
    )
    _require(depth <= tree.max_depth, "a tree", "is deeper than it declares")


def _check_boosting(model: BaseGradientBoosting) -> None:
    for tree in np.ravel(getattr(model, "estimators_", [])):
        _require(
            isinstance(tree, BaseDecisionTree) and tree.n_features_in_ == model.n_features_in_,
            "a tree",
        )


def _check_histogram_boosting(model: BaseHistGradientBoosting) -> None:
    _require(
        getattr(model, "_preprocessor", None) is None and not getattr(model, "_in_fit", False),
        "a boosted tree",
        "has categorical features",
    )
    for tree in (tree for trees in getattr(model, "_predictors", []) for tree in trees):
        _require(isinstance(tree, TreePredictor) and len(tree.nodes) > 0, "a boosted tree")
        nodes = tree.nodes
        _require(not nodes["is_categorical"].any(), "a boosted tree", "has categorical features")
        _check_nodes(
            nodes["left"],
            nodes["right"],
            nodes["feature_idx"],
            nodes["is_leaf"] != 0,
            model.n_features_in_,
        )


def _check_support_vectors(model: BaseLibSVM) -> None:
    if not hasattr(model, "support_vectors_"):
        return
    n_vectors, n_classes = model.support_vectors_.shape[0], len(model._n_support)
    n_pairs = n_classes * (n_classes - 1) // 2
    coefficients = (
        model._dual_coef_.data if sparse.issparse(model._dual_coef_) else model._dual_coef_
    )
    is_sound = (
        int(model.n_support_.sum()) == n_vectors == len(model.support_)
        and min(model._n_support) >= 0
        and np.size(coefficients) == (n_classes - 1) * n_vectors
        and np.size(model._intercept_) == n_pairs
        and all(np.size(p) in (0, n_pairs) for p in (model._probA, model._probB))
        and np.all((model.support_ >= 0) & (model.support_ < model.shape_fit_[0]))
    )
    _require(is_sound, "a support vector machine", "has arrays of inconsistent sizes")


def _check_neighbors(model: NeighborsBase) -> None:
    if hasattr(model, "_fit_X"):
        _require(
            model._fit_X.ndim == 2 and model._fit_X.shape[1] == model.n_features_in_,
            "a model of neighbors",
        )


def _check_sparse(matrix: Any) -> None:
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)


CHECKS = {
    BaseDecisionTree: _check_tree,
    BaseGradientBoosting: _check_boosting,
    BaseHistGradientBoosting: _check_histogram_boosting,
    BaseLibSVM: _check_support_vectors,
    NeighborsBase: _check_neighbors,
    sparse.spmatrix: _check_sparse,
    sparse.sparray: _check_sparse,
}
