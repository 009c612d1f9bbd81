"""Which engine fits when no local model is given.

Tables whose groups have several rows are fitted in closed form, with group effects. Networks are
trained where that does not apply, where a parameter of their training was set, and where groups of
a few rows follow contexts so exactly that the surrogate search predicts held-out rows better.
"""

from __future__ import annotations

import inspect

import numpy as np

from leaflearn.core.grouped_data import GroupedData
from leaflearn.engines import settings
from leaflearn.engines.parameters import Parameters
from leaflearn.initialization.items import find_items
from leaflearn.initialization.surrogate import Start

# Parameters that only networks have, and those of the search that precedes their training. Not
# `callbacks`: who watches a fit must not change it.
OF_NETWORKS = (
    *("allocation", "temperature", "init", "n_init", "loss", "optimizer", "learning_rate"),
    *("schedule", "max_epochs", "groups_per_step", "rows_per_group", "max_grad_norm", "trim"),
    *("tol", "n_iter_no_change", "refresh"),
)


def uses_closed_form(parameters: Parameters, data: GroupedData) -> bool:
    """Whether these rows are fitted in closed form if no local model is given.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> X, group = np.arange(12.0)[:, None], np.repeat(np.arange(4), 3)
    >>> rows = GroupedData(X, X, group, np.arange(12), None, 1, False)
    >>> uses_closed_form(LeafRegressor(), rows), uses_closed_form(LeafRegressor(n_init=3), rows)
    (True, False)
    """
    is_table = isinstance(data.X, np.ndarray) and data.X.ndim == 2
    if not is_table or data.X.shape[1] > settings.CHOICE.max_features:
        return False
    if np.bincount(data.group).max() == 1 or set_for_networks(parameters):
        return False
    return find_items(data.X, data.group) is None


def set_for_networks(parameters: Parameters) -> list[str]:
    """Parameters of the training of networks that differ from their defaults.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> set_for_networks(LeafRegressor(max_epochs=10))
    ['max_epochs']
    """
    defaults = inspect.signature(type(parameters)).parameters
    return [
        name
        for name in OF_NETWORKS
        if not _is_equal(getattr(parameters, name), defaults[name].default)
    ]


def _is_equal(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and value == default)


def is_better_start(start: Start | None, row_error: float) -> bool:
    """Whether contexts of the surrogate search predict held-out rows clearly better.

    `row_error` is the error of the models in closed form on held-out rows, in units of the variance
    of the targets.

    Examples
    --------
    >>> is_better_start(None, 0.5)
    False
    """
    if start is None or not start.is_trusted or not start.counts:
        return False
    n_contexts = int(start.contexts.max()) + 1
    errors = [count.mean for count in start.counts if count.n_contexts == n_contexts]
    return bool(errors) and errors[0] < settings.CHOICE.clear_share * row_error
