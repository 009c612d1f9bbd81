"""Kind or degree: the number of contexts, and whether groups deviate from them.

Candidates are mixtures of contexts with group effects (`effects/mixture.py`). Contexts either share
one mean function and differ in the columns that have effects, which takes few parameters, or have
mean functions of their own. A candidate is judged by the log density of whole groups, effects
integrated out: a mixture's density has to pay for every context that a group does not belong to, so
that contexts do not win by being many. The candidate with the lowest Bayesian information criterion
is kept, where groups are what is counted; more contexts have to lower it by a margin, and to raise
the density of held-out groups as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from leaflearn.effects.mixture import Mixture, fit_mixture
from leaflearn.effects.restricted_likelihood import MixedModel
from leaflearn.initialization import settings
from leaflearn.initialization.noise_scales import scale_to_equal_noise, shrink_variances
from leaflearn.moments.group_moments import GroupMoments

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A number of contexts, with or without effects.

    Parameters
    ----------
    n_contexts
        Number of contexts.
    has_effects
        Whether groups deviate from their context.
    has_own_means
        Whether contexts have mean functions of their own, instead of one that they share.
    log_likelihood
        Sum over the groups of their log densities.
    n_parameters
        Number of parameters, shrunk ones counted in part.
    criterion
        Bayesian information criterion; lower is better.
    held_out
        Log density of each group under a fit without it, shape (m,).
    posterior
        Probability of each context for each group, shape (K, m); with several contexts, zero for
        groups that were not compared.
    """

    n_contexts: int
    has_effects: bool
    has_own_means: bool
    log_likelihood: float
    n_parameters: float
    criterion: float
    held_out: Floats
    posterior: Floats


@dataclass(frozen=True, eq=False)
class Structure:
    """The candidate that was chosen, and all that were compared."""

    chosen: Candidate
    candidates: list[Candidate] = field(default_factory=list)

    @property
    def contexts(self) -> Ints:
        """The most probable context of each group, (m,); 0 for groups that were not compared."""
        return self.chosen.posterior.argmax(0)

    def explain(self) -> str:
        """The choice in a sentence."""
        one = min((c for c in self.candidates if c.n_contexts == 1), key=lambda c: c.criterion)
        chosen = self.chosen
        if chosen.n_contexts == 1:
            how = "groups differ by degree" if chosen.has_effects else "groups do not differ"
            return f"{how}: more contexts do not explain them better"
        gain = (chosen.held_out - one.held_out).mean()
        return (
            f"{chosen.n_contexts} contexts raise the log density of a held-out group by "
            f"{gain:.2g} over one context with group effects"
        )


def choose_structure(
    moments: GroupMoments,
    means: Sequence[MixedModel],
    is_shrunk: NDArray[np.bool_],
    n_contexts: int | None,
    may_have_effects: bool,
    rng: np.random.Generator,
    has_equal_noise: bool = False,
) -> Structure:
    """Compare candidates and choose one.

    Parameters
    ----------
    moments
        Moments of the groups over all features, with targets in standard units.
    means
        Fitted models of one context, one per target: their means are the shared ones. All have
        effects of the same columns.
    is_shrunk
        Features whose coefficients are shrunk, shape (F,).
    n_contexts
        A given number; None compares 1, 2, ...
    may_have_effects
        Whether groups may deviate from their context.
    rng
        Generator of starts and folds.
    has_equal_noise
        Whether all groups are known to be equally noisy, as working responses of classes are.
    """
    m, max_groups = len(moments.sizes), settings.STRUCTURE.max_groups
    if m <= max_groups:
        how = is_shrunk, may_have_effects, rng, has_equal_noise
        return _Comparison(moments, means, *how).choose(n_contexts)
    compared = np.sort(rng.permutation(m)[:max_groups])
    part = moments.take(compared)
    how = is_shrunk, may_have_effects, rng, has_equal_noise
    found = _Comparison(part, means, *how).choose(n_contexts)

    def spread(candidate: Candidate) -> Candidate:
        # With one context, groups that were not compared belong to it as well.
        posterior = np.full((candidate.n_contexts, m), float(candidate.n_contexts == 1))
        posterior[:, compared] = candidate.posterior
        return replace(candidate, posterior=posterior)

    return Structure(spread(found.chosen), [spread(each) for each in found.candidates])


class _Comparison:
    """The groups as the candidates see them, and what was tried so far."""

    def __init__(
        self,
        moments: GroupMoments,
        means: Sequence[MixedModel],
        is_shrunk: NDArray[np.bool_],
        may_have_effects: bool,
        rng: np.random.Generator,
        has_equal_noise: bool = False,
    ) -> None:
        limits = settings.STRUCTURE
        self.rng, self.may_have_effects, self.m = rng, may_have_effects, len(moments.sizes)
        columns = means[0].columns if len(means[0].columns) else np.array([0])
        noise = np.ones(self.m) if has_equal_noise else _relative_noise(moments, means, columns)
        self.own = scale_to_equal_noise(moments, noise)
        self.shared = scale_to_equal_noise(moments.reduced(columns, _stack(means)), noise)
        smoothness = min(mean.smoothness for mean in means)
        self.columns, self.shared_columns = columns, np.arange(len(columns))
        self.own_penalty = np.where(is_shrunk, 1.0 / smoothness, limits.fixed_ridge)
        # Means that are linear in the columns with effects differ in these columns only.
        self.has_own = len(is_shrunk) > len(columns)
        self.shared_penalty = np.full(len(columns), limits.fixed_ridge)
        self.fold = rng.permutation(self.m) % min(limits.n_folds, self.m)
        self.candidates: list[Candidate] = []
        start = np.ones((1, 1, self.m))
        self.one = fit_mixture(self.shared, self.shared_columns, self.shared_penalty, start)

    def choose(self, n_contexts: int | None) -> Structure:
        limits = settings.STRUCTURE
        numbers = range(1, limits.max_contexts + 1) if n_contexts is None else [1, n_contexts]
        best, n_worse = np.inf, 0
        for n in sorted(set(numbers)):
            if n_contexts is None and n > max(1, self.m // 2):
                break
            found = self._try(n)
            self.candidates += found
            lowest = min(candidate.criterion for candidate in found)
            n_worse = 0 if lowest < best else n_worse + 1
            best = min(best, lowest)
            if n_contexts is None and n_worse >= limits.patience:
                break
        if n_contexts is not None:
            asked = [c for c in self.candidates if c.n_contexts == n_contexts]
            return Structure(min(asked, key=lambda c: c.criterion), self.candidates)
        best_of: dict[int, Candidate] = {}
        for candidate in sorted(self.candidates, key=lambda c: -c.criterion):
            best_of[candidate.n_contexts] = candidate
        chosen = best_of[1]
        for n in sorted(best_of):
            margin = chosen.criterion - best_of[n].criterion
            is_denser = best_of[n].held_out.mean() > chosen.held_out.mean()
            # One group that differs from all others is an outlier, not a context.
            least = max(limits.min_context_groups, limits.min_context_share * self.m)
            has_groups = best_of[n].posterior.sum(1).min() > least
            if margin > limits.min_margin and is_denser and has_groups:
                chosen = best_of[n]
        return Structure(chosen, self.candidates)

    def _try(self, n_contexts: int) -> list[Candidate]:
        """All candidates with this number of contexts."""
        starts = self._starts(n_contexts) if n_contexts > 1 else np.ones((1, 1, self.m))
        own = (False, True) if self.has_own and n_contexts > 1 else (False,)
        effects = (False, True) if self.may_have_effects else (False,)
        return [
            self._judge(self._search(has_effects, has_own, starts), has_effects, has_own)
            for has_effects, has_own in product(effects, own)
        ]

    def _search(self, has_effects: bool, has_own: bool, starts: Floats) -> Mixture:
        """Follow all starts for some rounds, and the most likely ones to the end."""
        limits, n_held = settings.STRUCTURE, settings.STRUCTURE.n_held * (starts.shape[1] > 1)
        if starts.shape[1] == 1 and has_effects and not has_own:
            return self.one
        if len(starts) > limits.n_finalists:
            tried = self._fit(has_effects, has_own, starts, n_held, n_rounds=limits.n_short_rounds)
            order = _distinct(tried, limits.n_finalists)
            starts, n_held = tried.posterior[order], 0
            return self._fit(has_effects, has_own, starts, n_held, like=tried.best()).best()
        return self._fit(has_effects, has_own, starts, n_held).best()

    def _starts(self, n_contexts: int) -> Floats:
        """Contexts to start from: clusters of effects, and mixtures without effects. (B, K, m)."""
        limits = settings.STRUCTURE
        clusters = np.stack([self._cluster(n_contexts, s) for s in range(limits.n_effect_starts)])
        draws = self.rng.dirichlet(np.full(n_contexts, 0.5), (limits.n_random_starts, self.m))
        random = np.swapaxes(draws, 1, 2)
        none = np.empty(0, dtype=np.intp)
        plain = [
            fit_mixture(moments, none, penalty, random, anneal=limits.anneal, n_rounds=40).posterior
            for moments, penalty in (
                (self.shared, self.shared_penalty),
                (self.own, self.own_penalty),
            )
        ]
        return np.concatenate([clusters, *plain])

    def _cluster(self, n_contexts: int, number: int) -> Floats:
        """Clusters of the groups' effects; after the first, in columns of random weight. (K, m)."""
        limits = settings.STRUCTURE
        effects = self.one.effects[0].reshape(self.m, -1)
        deviation = effects.std(0)
        z = effects / np.maximum(deviation, 1e-9)
        # Columns whose effects are hardly determined would only add noise to the clusters.
        z = z * np.where(
            self.one.deviations[0].ravel() ** 2 * self.own.sizes.mean() > 1,
            1.0,
            limits.vague_weight,
        )
        if number:
            z = z * self.rng.gamma(limits.weight_shape, size=z.shape[1])
        seed = int(self.rng.integers(2**31 - 1))
        with warnings.catch_warnings():  # fewer distinct effects than contexts
            warnings.simplefilter("ignore", ConvergenceWarning)
            labels = KMeans(n_contexts, n_init=1, random_state=seed).fit_predict(z)
        sure = limits.start_probability
        posterior = np.full((n_contexts, self.m), (1 - sure) / n_contexts)
        posterior[labels, np.arange(self.m)] += sure
        return posterior

    def _fit(
        self,
        has_effects: bool,
        has_own: bool,
        starts: Floats,
        n_held: int,
        is_learned: NDArray[np.bool_] | None = None,
        n_rounds: int | None = None,
        like: Mixture | None = None,
    ) -> Mixture:
        none = np.empty(0, dtype=np.intp)
        if has_own:
            columns = self.columns if has_effects else none
            moments, penalty = self.own, self.own_penalty
        else:
            columns = self.shared_columns if has_effects else none
            moments, penalty = self.shared, self.shared_penalty
        return fit_mixture(
            moments, columns, penalty, starts, is_learned, n_held, n_rounds, like=like
        )

    def _judge(self, fit: Mixture, has_effects: bool, has_own: bool) -> Candidate:
        posterior, folds = fit.posterior[0], np.unique(self.fold)
        K = len(posterior)
        is_learned = np.stack([self.fold != f for f in folds])
        starts, n_held = (
            np.repeat(posterior[None], len(folds), 0),
            settings.STRUCTURE.n_held_folds * (K > 1),
        )
        again = self._fit(has_effects, has_own, starts, n_held, is_learned, like=fit)
        held_out = again.log_density[self.fold, np.arange(self.m)]
        of_means = self._count_mean_parameters(fit, has_own)
        n_parameters = of_means + K - 1 + fit.noise.size + has_effects * fit.deviations.size
        likelihood = float(fit.objective[0])
        criterion = n_parameters * np.log(self.m) - 2 * likelihood
        return Candidate(
            K, has_effects, has_own, likelihood, n_parameters, criterion, held_out, posterior
        )

    def _count_mean_parameters(self, fit: Mixture, has_own: bool) -> float:
        moments, penalty = (
            (self.own, self.own_penalty) if has_own else (self.shared, self.shared_penalty)
        )
        F = moments.n_features
        normal = (fit.posterior[0] @ moments.xx.reshape(self.m, -1)).reshape(-1, F, F)
        total = 0.0
        for noise in fit.noise[0]:
            ridge = np.diag(penalty * max(noise, 1e-4))
            total += float(
                np.trace(np.linalg.solve(normal + ridge, normal), axis1=1, axis2=2).sum()
            )
        return total


def _distinct(fits: Mixture, n_most: int) -> Ints:
    """The most likely fits, without those whose groups are together as in a more likely one."""
    chosen: list[int] = []
    partitions: list[Ints] = []
    for b in np.argsort(-fits.objective):
        contexts = fits.posterior[b].argmax(0)
        # Numbered in the order in which they occur, contexts in another order are the same.
        _, first, inverse = np.unique(contexts, return_index=True, return_inverse=True)
        partition = np.argsort(np.argsort(first))[inverse]
        if len(chosen) < n_most and not any(np.array_equal(partition, p) for p in partitions):
            chosen.append(int(b))
            partitions.append(partition)
    return np.array(chosen, dtype=np.intp)


def _stack(means: Sequence[MixedModel]) -> Floats:
    return np.stack([mean.coefficients for mean in means], 1)  #                    (F, D)


def _relative_noise(moments: GroupMoments, means: Sequence[MixedModel], columns: Ints) -> Floats:
    """Noise variance of each group relative to the others, on average over targets, (m,)."""
    residual = moments.reduced(columns, _stack(means))
    zz, relative = residual.xx, np.zeros(len(moments.sizes))
    size = np.diagonal(zz.sum(0)) / moments.sizes.sum()
    for d, mean in enumerate(means):
        loose = np.zeros(len(columns))
        loose[: len(mean.root)] = settings.STRUCTURE.loose_factor * np.diagonal(
            mean.root @ mean.root.T
        )
        ridge = np.diag(1 / np.maximum(loose, 1e-3 / np.maximum(size, 1e-12)))
        zr, rr = residual.xy[:, :, d], residual.products[:, len(columns) + d, len(columns) + d]
        solved = np.linalg.solve(zz + ridge, zr[..., None])[..., 0]
        left = np.maximum(rr - (zr * solved).sum(1), 1e-12)
        used = np.trace(np.linalg.solve(zz + ridge, zz), axis1=1, axis2=2)
        n_free = moments.sizes - used
        is_free = n_free >= settings.STRUCTURE.min_noise_rows
        if is_free.sum() >= 3:
            found = np.log(shrink_variances(left[is_free], n_free[is_free])[0])
            relative[is_free] += (found - found.mean()) / len(means)
    return np.exp(relative)
