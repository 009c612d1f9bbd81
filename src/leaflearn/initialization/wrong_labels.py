"""Labels that the rest of their context contradicts: found before anything is trained, so that no model learns them by heart.

Once the contexts are known, a smooth model of each says how plausible every label is for its input, without having seen that input. Where
some labels are ten times less plausible than another one, and these are more than a few, the context has wrong labels, and the rows whose
label is clearly behind another are set aside. Contexts whose classes merely overlap are left alone: there, another label is likelier, but
not ten times.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from leaflearn.initialization.features import Projection

MOST_ROWS = 3000  # that are looked at together
FEWER_ROWS = 1000  # on which the scale is chosen, which takes several models
SCALES = (0.5, 1.0, 2.0, 8.0)  # how quickly the smooth model may change: the larger, the quicker
SOME = 300  # distinct inputs among which the typical distance is found
RIDGE = 0.1  # how strongly it is held down; a row has the size 1
EXPLAINED = (
    0.5  # of the labels' variance: a smooth model that leaves more than this unexplained has no say
)
BEHIND = 0.3  # by how much another label must be more plausible
BETTER = 10.0  # and how many times, to be sure that there are wrong labels at all
MANY = 0.02  # share of such rows above which labels are set aside

Flags = NDArray[np.bool_]


def find_wrong_labels(
    x: NDArray[np.floating],
    y: NDArray[np.integer],
    group: NDArray[np.intp],
    contexts: NDArray[np.intp],
    seed: int,
) -> Flags:
    """Rows whose label the other rows of their context contradict, shape (N,); none where they are few.

    A group most of whose rows are contradicted is in the wrong context, and a class most of whose rows are is one that the smooth model
    cannot see: both keep all their rows. So do groups of a single row.

    Parameters
    ----------
    x
        Inputs (N, ...).
    y
        Class numbers (N,).
    group
        The group of each row, 0..m-1.
    contexts
        The context of each group (m,).
    seed
        Of the order in which rows are looked at, where there are more than fit together.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, group = rng.normal(size=(400, 1)), np.arange(400) // 4
    >>> y = (x[:, 0] > 0).astype(int)
    >>> wrong = (np.arange(400) % 20 == 0) & (np.abs(x[:, 0]) > 0.5)
    >>> found = find_wrong_labels(x, np.where(wrong, 1 - y, y), group, np.zeros(100, dtype=int), seed=0)
    >>> np.array_equal(found, wrong)
    True
    >>> find_wrong_labels(x, y, group, np.zeros(100, dtype=int), seed=0).any()
    np.False_
    """
    rng = np.random.default_rng(seed)
    project = Projection.of(x[np.sort(rng.permutation(len(y))[:MOST_ROWS])])
    found = np.zeros(len(y), dtype=bool)
    for context in np.unique(contexts):
        rows = np.flatnonzero(contexts[group] == context)
        found[rows] = _in_context(project, x, y, rows, group[rows], rng)
    return found


def _in_context(
    project: Projection,
    x: NDArray[np.floating],
    y: NDArray[np.integer],
    rows: NDArray[np.intp],
    group: NDArray[np.intp],
    rng: Any,
) -> Flags:
    is_behind, is_sure = np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
    order = rng.permutation(len(rows))
    few = rows[order[:FEWER_ROWS]]
    scale = _ask(project(x[few]), y[few], SCALES).scale
    for number, part in enumerate(np.array_split(order, -(-len(rows) // MOST_ROWS))):
        opinion = _ask(project(x[rows[part]]), y[rows[part]], (scale,))
        is_behind[part] = opinion.best - opinion.own > BEHIND
        is_sure[part] = is_behind[part] & (BETTER * opinion.own < opinion.best)
        if number == 0 and (opinion.unexplained > EXPLAINED or is_sure[part].mean() <= MANY):
            return np.zeros(
                len(rows), dtype=bool
            )  # the first part shows that there is nothing to find; so clean data cost little
    is_judged = ~_is_mostly(is_behind, group) & ~_is_mostly(is_behind, y[rows])
    return is_behind & is_judged & ((is_sure & is_judged).mean() > MANY)


def _is_mostly(flags: Flags, key: NDArray[np.integer]) -> Flags:
    """Rows whose key, a group or a class, has more than half of its rows flagged."""
    return np.asarray((2 * np.bincount(key, flags) > np.bincount(key))[key])


class _Opinion(NamedTuple):
    """What a smooth model thinks of labels that it has not seen."""

    own: NDArray[np.float64]  # plausibility of the given label, about 0 to 1           (n,)
    best: NDArray[np.float64]  # of the most plausible one                              (n,)
    unexplained: float  # 1 where inputs tell nothing about labels
    scale: float


def _ask(z: Tensor, y: NDArray[np.integer], scales: tuple[float, ...]) -> _Opinion:
    """The opinion at the scale that explains unseen labels best. All classes count the same, so that a rare one is no less plausible."""
    known, number = np.unique(y, return_inverse=True)
    labels = one_hot(torch.as_tensor(number), len(known)).to(z.dtype)  #                  (n, C)
    weight = (len(y) / len(known) / labels.sum(0))[number]  #                            (n,)
    centred = labels - 1 / len(known)
    answers = _leave_out(z, centred, weight, scales)  #                                  (S, n, C)
    unexplained = ((answers - centred).square().sum(-1) @ weight) / (
        centred.square().sum(-1) @ weight
    ).clamp(min=1e-12)
    best = int(unexplained.argmin())
    plausible = answers[best] + 1 / len(known)
    return _Opinion(
        (plausible * labels).sum(1).numpy(),
        plausible.amax(1).numpy(),
        float(unexplained[best]),
        scales[best],
    )


def _leave_out(z: Tensor, y: Tensor, weight: Tensor, scales: tuple[float, ...]) -> Tensor:
    """Answers (S, n, C) of kernel ridge regressions to each row, without that row and its copies.

    A wrong label that was copied with its input would vouch for itself; so equal inputs are one row with the weight of all of them.
    """
    _, first, which = np.unique(z.numpy().round(6), axis=0, return_index=True, return_inverse=True)
    distinct, at = z[first], torch.as_tensor(which.reshape(-1))
    total = weight.new_zeros(len(distinct)).index_add_(0, at, weight)  #                 (u,)
    mean = (
        y.new_zeros(len(distinct), y.shape[1]).index_add_(0, at, weight[:, None] * y)
        / total[:, None]
    )
    squared = torch.cdist(distinct, distinct).square()  #                                (u, u)
    some = squared[:SOME, :SOME]
    unit = some[some > 0].median() if len(distinct) > 1 else torch.ones_like(squared[0, 0])
    answers = []
    for scale in scales:
        inverse = torch.cholesky_inverse(
            torch.linalg.cholesky(torch.exp(-scale / unit * squared) + torch.diag(RIDGE / total))
        )
        answers.append((mean - inverse @ mean / inverse.diagonal()[:, None])[at])
    return torch.stack(answers)
