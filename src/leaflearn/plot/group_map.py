"""A map of the groups of a fitted estimator: contexts are clouds, and groups are points in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leaflearn.diagnostics.group_map import map_groups
from leaflearn.plot.style import color_of, styled


@styled
def plot_groups(
    estimator: Any,
    X: Any = None,
    feature_names: Sequence[str] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw how groups differ in kind and by degree.

    All groups predict the same rows. A group is drawn at its mean prediction and at the slope of
    its predictions along the input in which groups differ most. If slopes do not differ, groups
    stand in order of their mean prediction. Clouds and bands reach two standard deviations of the
    group effects.

    Parameters
    ----------
    estimator : LeafRegressor or LeafClassifier
        Fitted with group effects.
    X : array-like of shape (n_rows, n_features), default=None
        The rows that groups predict; by default those in the estimator's replay buffer.
    feature_names : list of str, default=None
        Names of the inputs, for the label of the axis.
    axes : matplotlib Axes, default=None
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib Axes
        With the drawing; its figure is `axes.figure`.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, group = rng.normal(size=(800, 1)), np.repeat(np.arange(40), 20)
    >>> slope = np.where(np.arange(40) % 2 == 0, 2.0, -2.0) + 0.3 * rng.normal(size=40)
    >>> y = slope[group] * X[:, 0] + 0.1 * rng.normal(size=800)
    >>> leaf = LeafRegressor(2, local_model="linear", random_state=0).fit(X, y, groups=group)
    >>> axes = plot_groups(leaf, feature_names=["dose"])
    >>> axes.get_ylabel(), len(axes.lines)
    ('slope along dose', 2)
    """
    stored = estimator.replay_buffer_
    rows = np.asarray(X if X is not None or stored is None else stored.X)
    drawn = map_groups(estimator.fitted_state_, rows) if rows.ndim == 2 else None
    if drawn is None:
        raise ValueError(
            "The estimator has no group effects to draw; fit it with local_model='linear' or "
            "'smooth'."
        )
    if axes is None:
        axes = Figure(figsize=(7.0, 5.5), layout="constrained").subplots()
    order = np.empty(len(drawn.points))
    order[np.argsort(drawn.points[:, 0], kind="stable")] = np.arange(1, len(order) + 1)
    height = drawn.points[:, 1] if drawn.has_slopes else order
    for k in np.unique(drawn.contexts):
        color, mine = color_of(int(k)), drawn.contexts == k
        if drawn.has_slopes:
            axes.fill(*drawn.ellipse(int(k)).T, color=color, alpha=0.15, linewidth=0)
        else:
            center, spread = drawn.centers[k, 0], 2 * np.sqrt(drawn.covariances[k, 0, 0])
            axes.axvspan(center - spread, center + spread, color=color, alpha=0.15, linewidth=0)
        axes.plot(
            drawn.points[mine, 0],
            height[mine],
            "o",
            color=color,
            alpha=0.8,
            label=f"context {k}",
        )
    names = feature_names
    name = f"input {drawn.input}" if names is None else str(names[max(drawn.input, 0)])
    axes.set(
        xlabel="mean prediction",
        ylabel=f"slope along {name}" if drawn.has_slopes else "groups, in order",
    )
    if len(np.unique(drawn.contexts)) > 1:
        axes.legend()
    return axes
