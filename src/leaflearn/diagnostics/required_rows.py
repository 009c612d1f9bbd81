"""How many more labelled rows would identify the context of a source?

Further rows are simulated: a context is drawn from the posterior, rows like the stored ones of that
context are drawn, and the posterior is followed until one context is identified. The number
reported is the median over many such paths. Without group effects, the stored rows count with their
own losses. With effects, the targets are drawn from the marginal model, with effects that are known
as well as the rows so far determine them. Each further row then says less than the one before,
since it is explained by the effects too; where most paths never end, more rows do not help.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.diagnostics import settings
from leaflearn.effects.group_effects import GroupEffects, LogisticEffects
from leaflearn.engines.closed_form import ClosedFormModels
from leaflearn.engines.fitted_state import FittedState

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Sources:
    """What is known of the sources; m sources, K contexts.

    Parameters
    ----------
    probability
        Probability of each context, shape (m, K).
    is_new
        Whether no known context explains the source, shape (m,).
    effects, products
        With group effects: see `GroupEffects`; shapes (m, K, D, q) and (m, q, q), or with classes
        (m, K, D, q, q).
    """

    probability: Floats
    is_new: NDArray[np.bool_]
    effects: Floats | None = None
    products: Floats | None = None


def count_required_rows(
    state: FittedState, sources: Sources, X: Any, is_classifier: bool, seed: int = 0
) -> Floats:
    """How many more labelled rows each source needs, NaN where more would not help, shape (m,).

    Parameters
    ----------
    state
        The fitted state. Further rows are taken to be like those of its replay buffer.
    sources
        What is known of the sources so far.
    X
        Rows that further rows resemble where none are stored, (N, ...).
    is_classifier
        Whether the local models predict classes.
    seed
        Seed of the simulation.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, group = rng.normal(size=(400, 1)), np.repeat(np.arange(40), 10)
    >>> y = np.where(group % 2, 1.0, -1.0) * X[:, 0] + rng.normal(size=400)
    >>> leaf = LeafRegressor(2, local_model="linear", random_state=0).fit(X, y, groups=group)
    >>> found = leaf.identify([[0.0]], [0.1])  # both contexts are 0 there
    >>> unsure = Sources(found.probability, found.is_new, found.effects, found.products)
    >>> more = count_required_rows(leaf.fitted_state_, unsure, X, is_classifier=False)
    >>> bool(1 < more[0] < 9)
    True
    """
    m, K = sources.probability.shape
    required = np.zeros(m)
    required[sources.is_new] = np.nan
    if K == 1:
        return required
    ordered = np.sort(np.log(np.maximum(sources.probability, 1e-300)), 1)
    is_open = ordered[:, -1] - ordered[:, -2] < settings.DIAGNOSTICS.identified_margin
    unsure = np.flatnonzero(is_open & ~sources.is_new)
    if not len(unsure):
        return required
    pool: _LossPool | _EffectPool | _AnswerPool
    if state.effects is None:
        pool = _LossPool.of(state, X, is_classifier, seed)
    elif isinstance(state.effects, LogisticEffects):
        pool = _AnswerPool.of(state, X)
    else:
        pool = _EffectPool.of(state, X)
    for source in unsure.tolist():
        rng = np.random.default_rng([seed, source])
        required[source] = _simulate(pool, sources, source, rng)
    return required


def _simulate(
    pool: _LossPool | _EffectPool | _AnswerPool,
    sources: Sources,
    source: int,
    rng: np.random.Generator,
) -> float:
    """The median number of rows over simulated paths, NaN where it is too large."""
    limits, probability = settings.DIAGNOSTICS, sources.probability[source]
    is_slow = isinstance(pool, _AnswerPool)  # no sums of answers add up, so it takes fewer steps
    n_paths = limits.n_answer_paths if is_slow else limits.n_paths
    rows_per_step = limits.answers_per_step if is_slow else limits.rows_per_step
    truth = rng.choice(len(probability), n_paths, p=probability / probability.sum())
    start = np.log(np.maximum(probability, 1e-300))
    paths = pool.start(sources, source, truth, rng)
    n_rows, ends = 0, np.full(n_paths, np.inf)
    while n_rows < limits.max_required_rows and np.isinf(ends).sum() > n_paths / 2:
        # Single rows at first, then more at a time: the number is reported roughly anyway.
        n_next = min(n_rows + 1 + n_rows // rows_per_step, limits.max_required_rows)
        log_posterior = np.sort(start + paths.extend(n_next - n_rows), 1)  #        (P, K)
        is_identified = log_posterior[:, -1] - log_posterior[:, -2] >= limits.identified_margin
        n_rows = n_next
        ends[is_identified & np.isinf(ends)] = n_rows
    median = float(np.sort(ends)[(n_paths - 1) // 2])
    return median if np.isfinite(median) else float("nan")


# ---- without group effects: losses of rows add up ------------------------------------------------


@dataclass(frozen=True, eq=False)
class _LossPool:
    evidence: Floats  # minus losses of the rows, in units of the evidence          (R, K)
    rows: list[Ints]  # rows of each context                                        K arrays

    @classmethod
    def of(cls, state: FittedState, X: Any, is_classifier: bool, seed: int) -> _LossPool:
        models, buffer, K = state.local_models, state.replay_buffer, state.n_contexts
        if buffer is not None:
            losses, context = models.losses(buffer.X, buffer.y), state.contexts[buffer.group]
            rows = [np.flatnonzero(context == k) for k in range(K)]
            if min(map(len, rows)):
                return cls(-losses / state.evidence_unit, rows)
        # Without stored rows, targets are those that each context predicts.
        outputs, parts = models.outputs(X), []
        rng = np.random.default_rng(seed)
        for k in range(K):
            target: Any = outputs[:, k]
            if is_classifier:
                chance = np.cumsum(target, 1) / target.sum(1, keepdims=True)
                target = (rng.random((len(chance), 1)) > chance[:, :-1]).sum(1)
            parts.append(models.losses(X, target))
        n = len(outputs)
        rows = [np.arange(k * n, (k + 1) * n) for k in range(K)]
        return cls(-np.concatenate(parts) / state.evidence_unit, rows)

    def start(
        self, sources: Sources, source: int, truth: Ints, rng: np.random.Generator
    ) -> _LossPaths:
        return _LossPaths(self, truth, rng, np.zeros((len(truth), self.evidence.shape[1])))


@dataclass(eq=False)
class _LossPaths:
    pool: _LossPool
    truth: Ints
    rng: np.random.Generator
    total: Floats  #                                                                (P, K)

    def extend(self, n_rows: int) -> Floats:
        """Log-likelihoods of all simulated rows in each context, after so many further rows."""
        for path, context in enumerate(self.truth):
            drawn = self.rng.choice(self.pool.rows[context], n_rows)
            self.total[path] += self.pool.evidence[drawn].sum(0)
        return self.total


# ---- with group effects: sums of rows add up -----------------------------------------------------


@dataclass(frozen=True, eq=False)
class _EffectPool:
    models: ClosedFormModels
    effects: GroupEffects
    means: Floats  # of the rows, in every context                                  (R, K, D)
    design: Floats  # columns that have effects                                     (R, q)

    @classmethod
    def of(cls, state: FittedState, X: Any) -> _EffectPool:
        models, effects, buffer = state.local_models, state.effects, state.replay_buffer
        assert isinstance(models, ClosedFormModels)
        assert effects is not None
        X = np.asarray(X if buffer is None else buffer.X, dtype=np.float64)
        return cls(models, effects, models.means(X), effects.design(X))

    def start(
        self, sources: Sources, source: int, truth: Ints, rng: np.random.Generator
    ) -> _EffectPaths:
        assert sources.effects is not None
        assert sources.products is not None
        known, q = sources.effects[source], self.design.shape[1]  #                 (K, D, q)
        # What the rows so far leave open of the effects is their distribution from here on.
        roots = self.effects.roots
        inner = np.eye(q) + np.swapaxes(roots, -1, -2) @ sources.products[source] @ roots
        left = roots @ np.linalg.cholesky(np.linalg.inv(inner))  #                  (K, D, q, q)
        deviation = np.sqrt(self.effects.noise)[..., None, None] * left
        P, (K, D) = len(truth), known.shape[:2]
        drawn = np.einsum("pdqr,pdr->pdq", deviation[truth], rng.normal(size=(P, D, q)))
        ahead = replace(self.effects, roots=left, priors=np.ones(K))
        sums = np.zeros((P, K, D, q + 1))
        return _EffectPaths(
            self, truth, rng, known, known[truth] + drawn, ahead, np.zeros((P, q, q)), sums
        )


@dataclass(eq=False)
class _EffectPaths:
    pool: _EffectPool
    truth: Ints
    rng: np.random.Generator
    known: Floats  # expected effects in each context                               (K, D, q)
    drawn: Floats  # true effects of each path                                      (P, D, q)
    ahead: GroupEffects  # with the distribution of effects after the rows so far
    products: Floats  #                                                             (P, q, q)
    sums: Floats  #                                                                 (P, K, D, q+1)
    n_rows: int = 0

    def extend(self, n_rows: int) -> Floats:
        """Log-likelihoods of all simulated rows in each context, after so many further rows."""
        pool, P = self.pool, len(self.truth)
        rows = self.rng.integers(len(pool.design), size=(P, n_rows))
        z, means = pool.design[rows], pool.means[rows]  #                  (P, n, q), (P, n, K, D)
        own = means[np.arange(P), :, self.truth] + np.einsum("pnq,pdq->pnd", z, self.drawn)
        noise = np.sqrt(pool.effects.noise[self.truth])[:, None]  #                 (P, 1, D)
        target = own + noise * self.rng.normal(size=own.shape)
        residual = target[:, :, None] - means
        residual = residual - np.einsum("pnq,kdq->pnkd", z, self.known)
        self.products += np.einsum("pnq,pnr->pqr", z, z)
        self.sums[..., :-1] += np.einsum("pnq,pnkd->pkdq", z, residual)
        self.sums[..., -1] += np.square(residual).sum(1)
        self.n_rows += n_rows
        sizes = np.full(P, float(self.n_rows))
        return -self.ahead.from_sums(self.products, self.sums, sizes)[1]


# ---- with group effects on log-odds: every further row narrows the effects -----------------------


@dataclass(frozen=True, eq=False)
class _AnswerPool:
    models: ClosedFormModels
    effects: LogisticEffects
    X: Floats  #                                                                    (R, d)
    means: Floats  # log-odds of the rows, in every context                         (R, K, D)

    @classmethod
    def of(cls, state: FittedState, X: Any) -> _AnswerPool:
        models, effects, buffer = state.local_models, state.effects, state.replay_buffer
        assert isinstance(models, ClosedFormModels)
        assert isinstance(effects, LogisticEffects)
        X = np.asarray(X if buffer is None else buffer.X, dtype=np.float64)
        return cls(models, effects, X, models.means(X))

    def start(
        self, sources: Sources, source: int, truth: Ints, rng: np.random.Generator
    ) -> _AnswerPaths:
        assert sources.effects is not None
        assert sources.products is not None
        known = replace(
            self.effects, effects=sources.effects[[source]], products=sources.products[[source]]
        )
        left = known.left_open(known.products)[0]  #                                (K, D, q, q)
        P, (K, D, q) = len(truth), left.shape[:3]
        drawn = np.einsum("pdqr,pdr->pdq", left[truth], rng.normal(size=(P, D, q)))
        ahead = replace(
            known,
            effects=np.repeat(known.effects, P, 0),
            products=np.repeat(known.products, P, 0),
        )
        effects = known.effects[0, truth] + drawn
        return _AnswerPaths(self, truth, rng, effects, ahead, np.zeros((P, K)))


@dataclass(eq=False)
class _AnswerPaths:
    pool: _AnswerPool
    truth: Ints
    rng: np.random.Generator
    drawn: Floats  # true effects of each path                                      (P, D, q)
    ahead: LogisticEffects  # with what the rows so far say about the effects of each path
    total: Floats  #                                                                (P, K)

    def extend(self, n_rows: int) -> Floats:
        """Log-likelihoods of all simulated rows in each context, after so many further rows."""
        pool, P = self.pool, len(self.truth)
        path = np.repeat(np.arange(P), n_rows)
        rows = self.rng.integers(len(pool.X), size=P * n_rows)
        X, means = pool.X[rows], pool.means[rows]
        added = np.einsum("nq,ndq->nd", pool.effects.design(X), self.drawn[path])
        chance = pool.models.finish(means[np.arange(len(rows)), self.truth[path]] + added)
        label = (self.rng.random((len(rows), 1)) > np.cumsum(chance, 1)[:, :-1]).sum(1)
        targets = pool.models.targets(label)
        self.ahead, scores = self.ahead.with_further_rows(X, means, targets, path)
        self.total -= scores
        return self.total
