"""Which engine fits when no local model is given.

Tables whose groups have several rows are fitted in closed form, with group effects. Networks are
trained where that does not apply, where a parameter of their training was set, and where groups of
a few rows follow contexts so exactly that the surrogate search predicts held-out rows better.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.core.grouped_data import GroupedData
from leaflearn.engines import settings
from leaflearn.engines.closed_form import average_errors
from leaflearn.engines.fitted_state import FittedState
from leaflearn.engines.parameters import Parameters
from leaflearn.initialization.items import find_items
from leaflearn.initialization.n_contexts import mean_of_rows
from leaflearn.initialization.settings import STRUCTURE
from leaflearn.initialization.surrogate import Start

# Parameters that only networks have, and those of the search that precedes their training. Not
# `callbacks`: who watches a fit must not change it.
OF_NETWORKS = (
    *("allocation", "temperature", "init", "n_init", "loss", "optimizer", "learning_rate"),
    *("schedule", "max_epochs", "groups_per_step", "rows_per_group", "max_grad_norm", "trim"),
    *("tol", "n_iter_no_change", "refresh", "device"),
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
    if np.bincount(data.group).max() == 1:
        return False
    if parameters.group_effects in ("intercept", "slopes"):
        return True
    if set_for_networks(parameters):
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


def is_better_start(start: Start | None, closed_form: FittedState, is_classifier: bool) -> bool:
    """Whether networks are trained on the contexts of the surrogate search instead.

    The contexts have to predict held-out rows clearly better than the models in closed form with
    effects do. If values differ in kind, a clearly smaller geometric mean of the groups' errors is
    enough: contexts may be nearly free of noise for most groups, while a noisy context or outlier
    rows dominate the arithmetic mean.

    Examples
    --------
    >>> is_better_start(None, None, is_classifier=False)
    False
    """
    if start is None or not start.is_trusted or not start.counts:
        return False
    n_contexts = int(start.contexts.max()) + 1
    count = next((each for each in start.counts if each.n_contexts == n_contexts), None)
    if count is None:
        return False
    limits, selection = settings.CHOICE, closed_form.selection
    mean, geometric_mean = selection["row_error"]
    if count.mean < limits.clear_share * mean:
        return True
    if is_classifier or not _is_kind(selection):
        return False
    return average_errors(mean_of_rows(count.held_out))[1] < limits.kind_share * geometric_mean


def _is_kind(selection: dict[str, NDArray[Any]]) -> bool:
    """Whether several contexts explain the groups better than one with effects."""
    if "bic" not in selection or not (selection["n_contexts"] > 1).any():
        return False
    is_one = selection["n_contexts"] == 1
    lowest = [selection["bic"][chosen].min() for chosen in (is_one, ~is_one)]
    return bool(lowest[1] < lowest[0] - STRUCTURE.min_margin)
