"""Tasks with known contexts, made from real tables.

A random third of the groups is altered: two columns are swapped, an input or the target is in
another unit, answers are reversed, or a yes means a higher value. Or a column that is constant
within groups is hidden, and its values are the contexts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.benchmark.altered.settings import ALTERED
from leaflearn.benchmark.real.contract import Floats, Ints, Rows
from leaflearn.benchmark.real.tables import TABLES, RealData, RealTable

Alteration = Callable[[RealData, NDArray[np.bool_]], Rows]  # of the table and its altered rows


@dataclass(frozen=True)
class AlteredTask:
    """A table and what is done to it.

    Parameters
    ----------
    name
        The name on the command line.
    table
        The table.
    alter
        Alters a part of the rows; None if a column is hidden.
    hidden
        The column whose values are the contexts.

    Examples
    --------
    >>> TASKS["hsb82-reversed"].table.name, TASKS["hsb82-sector"].hidden
    ('hsb82', 'sector=Public')
    """

    name: str
    table: RealTable
    alter: Alteration | None = None
    hidden: str | None = None

    def make(self, seed: int) -> tuple[Rows, Ints]:
        """The rows, and the true context of each group, (m,)."""
        data = self.table.load()
        m = int(data.group.max()) + 1
        if self.hidden is not None:
            return _hide(data, self.hidden, m)
        assert self.alter is not None
        is_altered = np.zeros(m, dtype=bool)
        chosen = np.random.default_rng(seed).permutation(m)[: round(ALTERED.share * m)]
        is_altered[chosen] = True
        return self.alter(data, is_altered[data.group]), is_altered.astype(np.intp)


def swap_columns(first: str, second: str) -> Alteration:
    """Swap two columns in standard units, so that neither has values that it never had.

    Examples
    --------
    >>> X, y, group = np.array([[0.0, 30.0], [2.0, 10.0]]), np.zeros(2), np.array([0, 1])
    >>> data = RealData("pets", X, y, group, ("age", "weight"))
    >>> swap_columns("age", "weight")(data, np.array([False, True])).X
    array([[ 0., 30.],
           [ 0., 30.]])
    """

    def alter(data: RealData, is_altered: NDArray[np.bool_]) -> Rows:
        pair = [data.columns.index(first), data.columns.index(second)]
        mean, std = data.X[:, pair].mean(0), data.X[:, pair].std(0)
        swapped = ((data.X[:, pair] - mean) / std)[:, ::-1] * std + mean
        X = data.X.copy()
        X[:, pair] = np.where(is_altered[:, None], swapped, X[:, pair])
        return _rows(data, X=X)

    return alter


def change_unit(column: str | None = None) -> Alteration:
    """Give a column, or the target, in another unit.

    Examples
    --------
    >>> data = RealData("pets", np.zeros((2, 1)), np.array([-1.0, 1.0]), np.arange(2), ("age",))
    >>> change_unit()(data, np.array([False, True])).y
    array([-1. ,  3.8])
    """

    def convert(values: Floats, is_altered: NDArray[np.bool_]) -> Floats:
        mean, std = values.mean(), values.std()
        other = mean + std * (ALTERED.factor * (values - mean) / std + ALTERED.shift)
        return np.where(is_altered, other, values)

    def alter(data: RealData, is_altered: NDArray[np.bool_]) -> Rows:
        if column is None:
            return _rows(data, y=convert(data.y, is_altered))
        X, place = data.X.copy(), data.columns.index(column)
        X[:, place] = convert(X[:, place], is_altered)
        return _rows(data, X=X)

    return alter


def reverse(data: RealData, is_altered: NDArray[np.bool_]) -> Rows:
    """Reverse answers: values around the middle of their range, classes in their order.

    Examples
    --------
    >>> data = RealData("pets", np.zeros((3, 1)), np.array([1.0, 5.0, 4.0]), np.arange(3), ("age",))
    >>> reverse(data, np.array([False, False, True])).y
    array([1., 5., 2.])
    """
    return _rows(data, y=np.where(is_altered, data.y.max() + data.y.min() - data.y, data.y))


def shift_threshold(data: RealData, is_altered: NDArray[np.bool_]) -> Rows:
    """Turn values into yes or no, with a higher threshold in altered groups.

    Examples
    --------
    >>> y = np.tile(np.arange(10.0), 2)
    >>> data = RealData("pets", np.zeros((20, 1)), y, np.repeat([0, 1], 10), ("age",))
    >>> rows = shift_threshold(data, data.group == 1)
    >>> rows.n_classes, rows.y[:10].sum(), rows.y[10:].sum()
    (2, np.int64(6), np.int64(2))
    """
    low, high = np.quantile(data.y, ALTERED.thresholds)
    return _rows(data, y=(data.y > np.where(is_altered, high, low)).astype(np.intp), n_classes=2)


def _rows(
    data: RealData,
    X: Floats | None = None,
    y: NDArray[Any] | None = None,
    n_classes: int | None = None,
) -> Rows:
    return Rows(
        data.X if X is None else X,
        data.y if y is None else y,
        data.group,
        data.n_classes if n_classes is None else n_classes,
    )


def _hide(data: RealData, column: str, m: int) -> tuple[Rows, Ints]:
    place = data.columns.index(column)
    truth = np.zeros(m, dtype=np.intp)
    truth[data.group] = data.X[:, place] > 0
    kept = replace(data, X=np.delete(data.X, place, 1))
    return _rows(kept), truth


def _list_tasks() -> list[AlteredTask]:
    def task(kind: str, table: str, alter: Alteration) -> AlteredTask:
        return AlteredTask(f"{table}-{kind}", TABLES[table], alter)

    unit_of = {"bdf": "langPRET", "growth-school": "year", "cigar": "price"}
    swapped = {
        "bdf": ("langPRET", "ses"),
        "cigar": ("price", "ndi"),
        "growth-school": ("year", "retained"),
        "catsup": ("price.heinz32", "price.hunts32"),
        "yogurt": ("price.yoplait", "price.dannon"),
    }
    hidden = {
        "hsb82-sector": ("hsb82", "sector=Public"),
        "orthodont-sex": ("orthodont", "Sex=Male"),
        "toenail-treatment": ("toenail", "treatment=terbinafine"),
    }
    units = ("parkinsons", "school", "hsb82", "males", "cigar", "bdf", "sleepstudy")
    reversed_tables = ("school", "hsb82", "growth-school", "bdf", "cigar", "verbagg", "toenail")
    thresholds = ("parkinsons", "school", "hsb82", "growth-school", "bdf")
    return [
        *(task("swapped", table, swap_columns(*pair)) for table, pair in swapped.items()),
        *(task("unit", table, change_unit()) for table in units),
        *(task("input-unit", table, change_unit(column)) for table, column in unit_of.items()),
        *(task("reversed", table, reverse) for table in reversed_tables),
        *(task("threshold", table, shift_threshold) for table in thresholds),
        *(
            AlteredTask(name, TABLES[table], None, column)
            for name, (table, column) in hidden.items()
        ),
    ]


TASKS: dict[str, AlteredTask] = {task.name: task for task in _list_tasks()}
