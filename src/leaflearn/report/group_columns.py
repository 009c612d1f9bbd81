"""The section on columns that are constant within groups, such as the age of a rater.

Such a column cannot show how predictions change within a group, so that a curve along it compares
different groups. It may say what the groups of a context have in common, though. It is therefore
cross-tabulated with the contexts and compared with the group effects, and each association is
tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from leaflearn.diagnostics import settings as diagnostic_settings
from leaflearn.diagnostics.association import correct_p_values, find_p_value
from leaflearn.diagnostics.group_map import map_groups
from leaflearn.diagnostics.variance_shares import find_variance_shares
from leaflearn.report import settings
from leaflearn.report.column_curves import MISSING, find_drawn
from leaflearn.report.formatting import count, enumerate_names, show_day, show_number, show_share
from leaflearn.report.rendering import isolate
from leaflearn.report.training_rows import TrainingRows
from leaflearn.tabular.column_kinds import find_kind, read_column, read_texts
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.table_model import TableModel

MAX_LISTED = 30
CONTEXTS, OFFSET, SLOPE = "contexts", "offset", "slope"

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroupColumn:
    """A column that is constant within groups.

    Parameters
    ----------
    name, kind
        Of the column; the kind is `"number"`, `"date"` or `"category"`.
    values
        The value of each group, in the order of the model's groups: floats, or texts, (m,).
    """

    name: str
    kind: str
    values: NDArray[Any]


@dataclass(frozen=True)
class Association:
    """A column, what it was compared with, and the p-value after Holm's correction."""

    column: GroupColumn
    subject: str
    p_value: float

    @property
    def is_significant(self) -> bool:
        """Whether the association is unlikely to be chance."""
        return self.p_value < diagnostic_settings.DIAGNOSTICS.significance


def find_constant_features(X: NDArray[Any], group: NDArray[Any]) -> NDArray[np.bool_]:
    """Which columns of X (N, F) are constant within groups; none if most groups are single rows.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0], [2.0, 0.0], [2.0, 1.0]])
    >>> find_constant_features(X, np.array(["a", "a", "b", "b"]))
    array([ True, False])
    """
    _, number, sizes = np.unique(group, return_inverse=True, return_counts=True)
    if (sizes > 1).mean() < settings.REPORT.min_share_of_large_groups:
        return np.zeros(X.shape[1], dtype=bool)
    first = np.empty(len(sizes), dtype=np.intp)
    first[number[::-1]] = np.arange(len(number))[::-1]
    return np.asarray((X[first[number]] == X).all(0))


def find_constant_columns(
    model: TableModel, X: NDArray[Any] | None, group: NDArray[Any] | None
) -> frozenset[str]:
    """Names of the model's columns all of whose features are constant within groups.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> find_constant_columns(SimpleNamespace(group=None, preparation_=None), None, None)
    frozenset()
    """
    if model.group is None or X is None or group is None:
        return frozenset()
    columns = np.array(cast(Preparation, model.preparation_).feature_columns)
    is_constant = find_constant_features(X, group)
    return frozenset(
        name for name in dict.fromkeys(columns.tolist()) if is_constant[columns == name].all()
    )


def find_group_columns(model: TableModel, rows: TrainingRows) -> list[GroupColumn]:
    """The columns of the table that are constant within groups and differ between them.

    Free text and names that differ for every group are left out.

    Examples
    --------
    >>> import pandas
    >>> from leaflearn.report.training_rows import read_training_rows
    >>> rng = np.random.default_rng(0)
    >>> site = np.repeat(np.arange(20), 10)
    >>> table = pandas.DataFrame({"site": site, "dose": rng.normal(size=200)})
    >>> table["region"] = np.where(site % 2 == 0, "north", "south")
    >>> table["effect"] = table.dose + rng.normal(size=20)[site] + rng.normal(size=200)
    >>> model = TableModel("effect", group="site", contexts=1, local_model="linear").fit(table)
    >>> [column.name for column in find_group_columns(model, read_training_rows(model, table))]
    ['region']
    """
    estimator, frame = model.estimator_, rows.frame
    if model.group is None or not np.isin(estimator.groups_, rows.groups).all():
        return []
    order = np.argsort(rows.groups, kind="stable")
    first = order[np.searchsorted(rows.groups[order], estimator.groups_)]  #        (m,)
    names = [name for name in frame.columns if name not in (model.target, model.group)]
    if not names:
        return []
    codes = np.stack([np.unique(read_texts(frame[name]), return_inverse=True)[1] for name in names])
    is_constant = find_constant_features(codes.T, rows.groups)
    found = []
    for name in np.array(names, dtype=object)[is_constant]:
        column = find_kind(frame[name], str(name))
        n_values = len(set(read_texts(frame[name].iloc[first])))
        if n_values < 2 or column.kind not in ("number", "date", "category"):
            continue
        if column.kind == "category":
            if n_values > settings.REPORT.max_values_per_group * len(first):
                continue
            texts = [text or MISSING for text in read_texts(frame[name].iloc[first])]
            values: NDArray[Any] = np.array(texts)
        else:
            values = np.asarray(read_column(frame.iloc[first], column), dtype=np.float64)
        found.append(GroupColumn(str(name), column.kind, values))
    return found


def find_associations(
    model: TableModel, columns: list[GroupColumn], X: NDArray[Any] | None
) -> list[Association]:
    """Associations of the columns with contexts and group effects, the clearest first.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> state = SimpleNamespace(effects=None, local_models=None)
    >>> contexts = np.repeat([0, 1], 10)
    >>> estimator = SimpleNamespace(contexts_=contexts, usage_=np.ones(2), fitted_state_=state)
    >>> model = SimpleNamespace(estimator_=estimator)
    >>> region = GroupColumn("region", "category", np.repeat(["north", "south"], 10))
    >>> [found.is_significant for found in find_associations(model, [region], None)]
    [True]
    """
    subjects = _find_subjects(model, X)
    pairs = [(column, subject) for column in columns for subject in subjects]
    p_values = [find_p_value(column.values, subjects[subject]) for column, subject in pairs]
    corrected = correct_p_values(np.array(p_values))
    found = [
        Association(column, subject, float(p))
        for (column, subject), p in zip(pairs, corrected, strict=True)
    ]
    return sorted(found, key=lambda association: association.p_value)


def describe_group_columns(
    model: TableModel,
    columns: list[GroupColumn],
    associations: list[Association],
    X: NDArray[Any] | None,
) -> dict[str, Any] | None:
    """The values of `group_columns.html`; None if no column is constant within groups.

    Examples
    --------
    >>> describe_group_columns(None, [], [], None)
    """
    if not columns or not associations:
        return None
    subjects = _find_subjects(model, X)
    clear = [found for found in associations if found.is_significant]
    return {
        "introduction": (
            f"{count(len(columns), 'column')} of the table "
            f"{'has' if len(columns) == 1 else 'have'} one value per group. Such a column cannot "
            "show what happens within a group, but it may show what groups have in common."
        ),
        "sentences": [describe_association(model, found) for found in clear],
        "tables": [_tabulate(model, found, subjects) for found in clear[:MAX_LISTED]],
        "rows": [
            [isolate(found.column.name, 60), _name_subject(found.subject), _show_p(found)]
            for found in associations[:MAX_LISTED]
        ],
        "n_tests": count(len(associations), "test"),
        "level": show_share(diagnostic_settings.DIAGNOSTICS.significance),
    }


def describe_association(model: TableModel, found: Association) -> str:
    """A sentence on an association.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> column = GroupColumn("region", "category", np.array(["north", "south"]))
    >>> model = SimpleNamespace(estimator_=SimpleNamespace(contexts_=np.array([0, 1])))
    >>> found = Association(column, "offset", 0.001)
    >>> describe_association(model, found).replace("\\u2068", "").replace("\\u2069", "")
    'The offsets of the groups within their context are associated with region (p = 0.001).'
    """
    name = isolate(found.column.name, 60)
    what = _name_subject(found.subject)
    clause = f"{what} are associated with {name} ({_show_p(found)})"
    if found.subject != CONTEXTS:
        return f"{clause}."
    contexts, values = model.estimator_.contexts_, found.column.values
    drawn = find_drawn(model)[:3]
    if found.column.kind == "category":
        shares = [[(values[contexts == k] == v).mean() for k in drawn] for v in np.unique(values)]
        best = int(np.ptp(np.array(shares), axis=1).argmax())
        value = isolate(np.unique(values)[best], 60)
        clauses = [
            f"{show_share(float(share))} of the groups in context {k}"
            for k, share in zip(drawn, shares[best], strict=True)
        ]
        return f"{clause}: it is {value} in {enumerate_names(clauses)}."
    clauses = [
        f"{_show_value(found.column, np.nanmean(values[contexts == k]))} in context {k}"
        for k in drawn
    ]
    return f"{clause}: on average {enumerate_names(clauses)}."


def _find_subjects(model: TableModel, X: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
    """What columns are compared with: contexts (if several), deviations of the groups."""
    estimator = model.estimator_
    subjects: dict[str, NDArray[Any]] = {}
    if int((estimator.usage_ > 0).sum()) > 1:
        subjects[CONTEXTS] = estimator.contexts_
    state = estimator.fitted_state_
    drawn, shares = map_groups(state, X), find_variance_shares(state, X)
    if drawn is not None and shares is not None:
        total = (shares.kind + shares.degree + shares.noise)[drawn.output]
        least = diagnostic_settings.DIAGNOSTICS.min_variance_share * total
        for place, subject in enumerate((OFFSET, SLOPE)[: 1 + drawn.has_slopes]):
            # Effects that hardly vary are borrowed from others that they are correlated with.
            if drawn.covariances[:, place, place].max() >= least:
                subjects[subject] = drawn.deviations[:, place]
    return subjects


def _name_subject(subject: str) -> str:
    if subject == CONTEXTS:
        return "The contexts"
    return f"The {subject}s of the groups within their context"


def _tabulate(
    model: TableModel, found: Association, subjects: dict[str, NDArray[Any]]
) -> dict[str, Any]:
    """A cross-table, or means: by context, or of the effects by the values of the column."""
    column, values = found.column, found.column.values
    name = isolate(column.name, 60)
    if found.subject == CONTEXTS:
        contexts, used = model.estimator_.contexts_, find_drawn(model)
        head = [name, *(f"context {k}" for k in used)]
        if column.kind == "category":
            rows = []
            for value in _most_frequent(values):
                cells = [int((values[contexts == k] == value).sum()) for k in used]
                shares = [
                    cell / int((contexts == k).sum()) for cell, k in zip(cells, used, strict=True)
                ]
                rows.append(
                    [
                        isolate(value, 60),
                        *(f"{n:,} ({show_share(s)})" for n, s in zip(cells, shares, strict=True)),
                    ]
                )
            return {"caption": f"Groups by {name} and context", "head": head, "rows": rows}
        measures = (("mean", np.nanmean), ("lowest", np.nanmin), ("highest", np.nanmax))
        rows = [
            [word, *(_show_value(column, measure(values[contexts == k])) for k in used)]
            for word, measure in measures
        ]
        return {"caption": f"{name} of the groups, by context", "head": head, "rows": rows}
    effects, parts = subjects[found.subject], _split(column)
    rows = [
        [label, f"{int(mine.sum()):,}", show_number(float(effects[mine].mean()))]
        for label, mine in parts
    ]
    caption = f"Mean deviation from the context ({found.subject}), by {name}"
    return {"caption": caption, "head": [name, "groups", f"mean {found.subject}"], "rows": rows}


def _split(column: GroupColumn) -> list[tuple[str, NDArray[np.bool_]]]:
    """Groups by category, or in thirds of a number."""
    values = column.values
    if column.kind == "category":
        return [(isolate(value, 60), values == value) for value in _most_frequent(values)]
    low, high = np.nanquantile(values, [1 / 3, 2 / 3])
    parts = [
        (f"up to {_show_value(column, low)}", values <= low),
        ("between", (values > low) & (values <= high)),
        (f"above {_show_value(column, high)}", values > high),
    ]
    return [(label, mine) for label, mine in parts if mine.any()]


def _most_frequent(values: NDArray[Any]) -> list[str]:
    names, counts = np.unique(values, return_counts=True)
    return [str(name) for name in names[np.argsort(-counts, kind="stable")][:12]]


def _show_value(column: GroupColumn, value: float) -> str:
    return show_day(value) if column.kind == "date" else show_number(float(value))


def _show_p(found: Association) -> str:
    return f"p = {found.p_value:.2g}"
