"""The refit engine: Algorithm 1 for local models that only know `fit` and `predict`, such as those of scikit-learn.

    from a random allocation: refit each model on its groups; score every group under every model; allocate; until nothing moves

A model that can learn its rows by heart (boosted trees, forests, nearest neighbours) likes its own groups best whatever they are, and the
first allocation freezes. Such models are scored out of fold: a group is judged only by models that have not seen it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leaflearn.core.allocation import Rule
from leaflearn.engines.refit_run import Listener, RefitRun
from leaflearn.engines.refit_task import Ints, RefitTask, Take
from leaflearn.engines.row_losses import Floats, RowLosses

# In sample, and out of fold, where a start costs as many times more as there are folds, and fails less often.
STARTS, STARTS_OUT_OF_FOLD = 4, 1
MAX_ITER, MAX_ITER_OUT_OF_FOLD = 30, 20


@dataclass(frozen=True)
class Refitted:
    """The best of the starts, as `refit` found it.

    Examples
    --------
    >>> import numpy as np
    >>> from leaflearn.core.allocation import Hard
    >>> from leaflearn.engines.row_losses import ClassRowLoss, ConstantModel
    >>> x, y, group = np.zeros((2, 1)), np.array([0, 1]), np.array([0, 1])
    >>> found = refit(ConstantModel, x, y, group, ClassRowLoss(2), Hard(), 2, rng=np.random.default_rng(0))
    >>> sorted(found.history)
    ['changed', 'epoch', 'loss', 'seconds', 'temperature', 'usage']
    """

    models: list[Any]  # fitted on all groups of their context                      K
    n_rows: Floats  # how many rows that was, for `Fitted(model, n_rows)`           (K,)
    scores: Floats  # summed losses that led to the last allocation                 (m, K)
    contexts: Ints  #                                                               (m,)
    history: dict[str, NDArray[Any]]  # of equal length; usage is (T, K)
    converged: bool  # the allocation stood still
    out_of_fold: bool  # what was done, where "auto" was asked for
    restarts: list[dict[str, Any]]  # error, kept, n_iter and converged of every start


def refit(
    make_model: Callable[[int], Any],
    x: Any,
    y: NDArray[Any],
    group: Ints,
    row_losses: RowLosses,
    rule: Rule,
    n_contexts: int,
    *,
    n_init: int | Literal["auto"] = "auto",
    max_iter: int | Literal["auto"] = "auto",
    out_of_fold: bool | Literal["auto"] = "auto",
    n_folds: int = 5,
    sample_weight: Floats | None = None,
    trim: float = 0.0,
    start: Ints | None = None,
    take: Take = operator.getitem,
    rng: np.random.Generator,
    on_iteration: Listener | None = None,
) -> Refitted:
    """LEAF by refitting; the best of `n_init` starts by the loss after the last allocation.

    Parameters
    ----------
    make_model
        Makes a fresh, unfitted local model from a seed; the same seed comes again at every refit of a context, so that only the
        allocation moves its scores.
    x, y, group
        Inputs in any container that `take(x, rows)` can index; targets (N,) or (N, D), whole numbers 0..C-1 for classes; group of each
        row, 0..m-1, in any order.
    row_losses, rule
        The measure (`SquaredRowLoss`, `ClassRowLoss`) and the allocation rule.
    n_init
        Starts; "auto" makes four, or one where scores are taken out of fold.
    max_iter
        Refits of a start at most, 30 or 20 for "auto"; an annealed temperature falls over them.
    out_of_fold
        Judge a group only by models that have not seen it; "auto" tries whether the model learns its rows by heart.
    n_folds
        Parts of the out-of-fold scores. Two are too few: their models share no group and need not agree which context is which.
    sample_weight
        Weighs the rows inside their group; every group has mass 1. A model whose `fit` takes no weights gets plain rows.
    trim
        Share of each group's rows, those with the largest loss, that its score leaves out.
    start
        Contexts (m,) from which the first start goes; the others begin with a random partition of the groups.
    on_iteration
        Called with the number of the start and a row of its history, with `max_iter` beside it; a true answer ends the search.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from leaflearn.core.allocation import Annealed
    >>> from leaflearn.engines.row_losses import SquaredRowLoss
    >>> rng = np.random.default_rng(0)
    >>> x, group = rng.normal(size=(120, 1)), np.repeat(np.arange(30), 4)
    >>> y = np.where(group % 2, 2.0, -2.0) * x[:, 0]  # the odd groups rise, the even ones fall
    >>> rule = Annealed(start=0.5 * y.var())
    >>> found = refit(lambda seed: LinearRegression(), x, y, group, SquaredRowLoss(), rule, 2, rng=rng)
    >>> sorted(round(float(model.coef_[0]), 3) for model in found.models)
    [-2.0, 2.0]
    """
    task = RefitTask(
        make_model,
        x,
        np.asarray(y),
        np.asarray(group),
        _balance(sample_weight, group),
        row_losses,
        take,
        trim,
    )
    judge = n_contexts > 1 and (
        task.memorizes_rows(n_contexts, rng) if out_of_fold == "auto" else bool(out_of_fold)
    )
    n_starts = (STARTS_OUT_OF_FOLD if judge else STARTS) if n_init == "auto" else n_init
    n_refits = (MAX_ITER_OUT_OF_FOLD if judge else MAX_ITER) if max_iter == "auto" else max_iter
    best: RefitRun | None = None
    restarts = []
    for i, stream in enumerate(
        rng.spawn(n_starts if n_contexts > 1 else 1)
    ):  # a stream each: a start does not depend on the others
        given = start if i == 0 else None
        first = (
            stream.permutation(np.arange(task.n_groups) % n_contexts) if given is None else given
        )
        splits = task.splits(n_folds if judge else 1, stream, given)
        run = RefitRun(
            task, rule, np.eye(n_contexts)[first], splits, stream, is_given=given is not None
        )
        stop = run.run(n_refits if n_contexts > 1 else 1, i, on_iteration)
        restarts.append(run.tell())
        if best is None or run.loss < best.loss:  # only the best so far is kept in memory
            best, kept = run, i
        if stop:
            break
    assert best is not None
    restarts[kept]["kept"] = True
    final = best.fit_on_all()
    return Refitted(
        models=[fitted.model for fitted in final],
        n_rows=np.array([fitted.n_rows for fitted in final]),
        scores=best.scores,
        contexts=best.contexts,
        history={name: np.array([row[name] for row in best.history]) for name in best.history[0]},
        converged=bool(restarts[kept]["converged"]),
        out_of_fold=judge,
        restarts=restarts,
    )


def _balance(sample_weight: Floats | None, group: Ints) -> Floats:
    """Weights that sum to the size of the group in every group, as `balance` in batches.py makes them."""
    if sample_weight is None:
        return np.ones(len(group))
    return np.asarray(
        sample_weight * (np.bincount(group) / np.bincount(group, sample_weight))[group]
    )
