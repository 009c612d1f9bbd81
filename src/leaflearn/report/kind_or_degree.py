"""The section on how groups differ: in kind, by degree, or not at all, with a map of the groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.diagnostics.group_map import GroupMap, map_groups
from leaflearn.diagnostics.variance_shares import VarianceShares, find_variance_shares
from leaflearn.report.charts import MAX_MAPPED, draw_groups, to_inline_svg
from leaflearn.report.column_curves import MAX_DRAWN
from leaflearn.report.formatting import count, show_number, show_share
from leaflearn.report.rendering import isolate
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.table_model import TableModel

MAP_HEADING = "Map of the groups"


def find_shares(model: TableModel, X: NDArray[Any] | None = None) -> VarianceShares | None:
    """How groups of a model differ; None without group effects, or without rows to compare them on.

    Parameters
    ----------
    model
        A fitted `TableModel`.
    X
        Features of rows, (N, F); None takes those in the model's replay buffer.

    Examples
    --------
    >>> import pandas
    >>> rng = np.random.default_rng(0)
    >>> site, dose = np.repeat(np.arange(30), 10), rng.normal(size=300)
    >>> table = pandas.DataFrame({"site": site, "dose": dose})
    >>> table["effect"] = dose + rng.normal(size=30)[site] + 0.1 * rng.normal(size=300)
    >>> model = TableModel("effect", group="site", local_model="linear").fit(table)
    >>> find_shares(model).between_share > 0.9
    True
    """
    return find_variance_shares(model.estimator_.fitted_state_, _find_rows(model, X))


def describe_shares(shares: VarianceShares, n_contexts: int) -> str:
    """In a sentence, how groups differ.

    Parameters
    ----------
    shares
        The variances.
    n_contexts
        Contexts that have groups.

    Examples
    --------
    >>> def describe(kind, degree, n_contexts):
    ...     shares = VarianceShares(*(np.array([float(v)]) for v in (kind, degree, 100)))
    ...     return describe_shares(shares, n_contexts).replace("\\u00a0", " ")
    >>> print(describe(82, 18, 2))
    Of the differences between groups, 82 % are of kind (2 contexts) and 18 % of degree.
    >>> print(describe(0, 50, 1))
    Groups differ by degree only: each deviates in its own way from one common context.
    >>> print(describe(50, 0, 3))
    Groups differ in kind only (3 contexts): groups of a context do not differ.
    >>> print(describe(0, 0, 1))
    Groups do not differ at all: what remains is noise within groups.
    """
    in_kind, by_degree = shares.differs_in_kind and n_contexts > 1, shares.differs_by_degree
    contexts = count(n_contexts, "context")
    if in_kind and by_degree:
        return (
            f"Of the differences between groups, {show_share(shares.kind_share)} are of kind "
            f"({contexts}) and {show_share(shares.degree_share)} of degree."
        )
    if in_kind:
        return f"Groups differ in kind only ({contexts}): groups of a context do not differ."
    if by_degree:
        return (
            "Groups differ by degree only: each deviates in its own way from "
            f"{'one common context' if n_contexts == 1 else 'contexts that hardly differ'}."
        )
    return "Groups do not differ at all: what remains is noise within groups."


def describe_shares_as_data(shares: VarianceShares | None) -> dict[str, Any] | None:
    """The variances as plain data for programs.

    Examples
    --------
    >>> shares = VarianceShares(np.array([3.0]), np.array([1.0]), np.array([4.0]))
    >>> describe_shares_as_data(shares)["share_of_kind"], describe_shares_as_data(None)
    (0.75, None)
    """
    if shares is None:
        return None
    return {
        "share_of_kind": shares.kind_share,
        "share_of_degree": shares.degree_share,
        "share_of_groups_in_variance": shares.between_share,
        "variance_of_kind": shares.kind.tolist(),
        "variance_of_degree": shares.degree.tolist(),
        "variance_of_noise": shares.noise.tolist(),
    }


def describe_kind_or_degree(model: TableModel, X: NDArray[Any] | None) -> dict[str, Any] | None:
    """The values of `kind_or_degree.html`; None for models without group effects.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> state = SimpleNamespace(effects=None, local_models=None)
    >>> estimator = SimpleNamespace(fitted_state_=state, replay_buffer_=None)
    >>> model = SimpleNamespace(estimator_=estimator)
    >>> describe_kind_or_degree(model, None)
    """
    rows = _find_rows(model, X)
    state = model.estimator_.fitted_state_
    shares, drawn = find_variance_shares(state, rows), map_groups(state, rows)
    if shares is None or drawn is None:
        return None
    used = np.flatnonzero(model.estimator_.usage_ > 0)
    return {
        "sentence": describe_shares(shares, len(used)),
        "of_rows": _describe_noise(model, shares, drawn.output),
        "choice": model.estimator_.init_,
        "parts": _list_parts(shares, drawn.output, len(used)),
        "n_in_key": min(len(used), MAX_DRAWN) if len(used) > 1 else 0,
        "map": _describe_map(model, drawn),
    }


def _find_rows(model: TableModel, X: NDArray[Any] | None) -> NDArray[Any] | None:
    stored = model.estimator_.replay_buffer_
    rows = X if X is not None or stored is None else np.asarray(stored.X)
    return rows if rows is None or rows.ndim == 2 else None


def _describe_noise(model: TableModel, shares: VarianceShares, output: int) -> str:
    deviation = show_number(float(np.sqrt(shares.degree[output])))
    by_degree = (
        f" A typical group deviates from its context by {deviation}, in the unit of "
        f"{isolate(model.target)}."
        if shares.differs_by_degree and not model.target_.is_label
        else ""
    )
    return (
        f"Rows with the same inputs vary: {show_share(shares.between_share)} of that variance is "
        f"between groups, the rest is noise within groups.{by_degree}"
    )


def _list_parts(shares: VarianceShares, output: int, n_contexts: int) -> list[dict[str, Any]]:
    """Kind, degree and noise: names, shares of the variance of rows, standard deviations."""
    parts = [
        (f"kind ({count(n_contexts, 'context')})", shares.kind[output]),
        ("degree (groups of a context)", shares.degree[output]),
        ("noise (rows of a group)", shares.noise[output]),
    ]
    parts = parts if n_contexts > 1 else parts[1:]
    total = max(float(sum(part[1] for part in parts)), 1e-300)
    return [
        {
            "name": name,
            "share": float(variance) / total,
            "percent": show_share(float(variance) / total),
            "deviation": show_number(float(np.sqrt(variance))),
        }
        for name, variance in parts
    ]


def _describe_map(model: TableModel, drawn: GroupMap) -> dict[str, Any]:
    target = isolate(model.target, 30)
    if model.target_.is_label:
        target = "prediction"
    column = ""
    if drawn.has_slopes:
        prepare = model.preparation_
        names = prepare.feature_names if isinstance(prepare, Preparation) else []
        column = isolate(names[drawn.input] if drawn.input < len(names) else "input", 22)
    x_label = f"mean {target}"
    y_label = f"slope along {column}" if column else "groups, in order"
    cloud = "Clouds hold 86" if drawn.has_slopes else "Bands hold 95"
    second = (
        f"Up and down: how much {target} rises per standard deviation of {column}."
        if column
        else "Up and down: the groups in order; their slopes do not differ."
    )
    m = len(drawn.points)
    some = f" {MAX_MAPPED:,} of {m:,} groups are drawn." if m > MAX_MAPPED else ""
    caption = (
        f"A point is a group, predicted on the same rows as all others. Left to right: its mean "
        f"{target}. {second} {cloud}\u00a0% of the groups of a context.{some}"
    )
    figure = draw_groups(drawn, x_label, y_label)
    return {
        "heading": MAP_HEADING,
        "svg": to_inline_svg(figure, "group-map", MAP_HEADING, caption),
        "caption": caption,
    }
