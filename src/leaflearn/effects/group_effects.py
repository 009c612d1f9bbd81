"""Group effects of a fitted model: deviations of groups from their context, known or new.

`GroupEffects` does not know where the means come from. It takes their residuals, so that it serves
every kind of local model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import chi2, norm

from leaflearn.effects.logistic import Answers, integrate_effects
from leaflearn.effects.restricted_likelihood import MixedModel, log_likelihood, shrunk_effects
from leaflearn.moments.features import FeatureMap
from leaflearn.moments.group_moments import GroupMoments

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class GroupEffects:
    """Variances of the effects, and the effects of groups; K contexts, D targets, q effects.

    Parameters
    ----------
    features
        Makes the columns that have effects from the inputs.
    columns
        Which of the features have effects, shape (q,).
    roots
        Lower triangles: effects have the covariance `noise * root root'`, shape (K, D, q, q).
    noise
        Variance of a row around its mean and effects, shape (K, D).
    priors
        Share of each context, shape (K,).
    effects
        Expected effects of each group in each context, shape (m, K, D, q).
    products
        Sums over the rows of each group of `z z'`, which determine how sure its effects are,
        shape (m, q, q).
    evidence
        Factor of the log-likelihood: indicator columns of C classes sum to 1, and hold the
        information of C - 1 targets.
    sums
        Sums over the rows of each group of `z r` and, last, of `r r`, where r is the residual of
        each context; further rows of a group add to them. Shape (m, K, D, q + 1).

    Examples
    --------
    >>> features = FeatureMap.of(np.array([[-1.0], [1.0]]))
    >>> model = GroupEffects.without_groups(
    ...     features, np.array([0]), np.ones((1, 1, 1, 1)), np.ones((1, 1)), np.ones(1)
    ... )
    >>> X, means, targets = np.zeros((3, 1)), np.zeros((3, 1, 1)), np.ones((3, 1))
    >>> new, scores = model.of_groups(X, means, targets, np.zeros(3, dtype=int), 1)
    >>> new.effects.ravel().round(2)
    array([0.75])
    >>> new.add(X, np.zeros((3, 1, 1)), np.zeros(3, dtype=int)).ravel().round(2)
    array([0.75, 0.75, 0.75])
    """

    features: FeatureMap
    columns: Ints
    roots: Floats
    noise: Floats
    priors: Floats
    effects: Floats
    products: Floats
    evidence: float = 1.0
    sums: Floats | None = None

    @classmethod
    def without_groups(
        cls,
        features: FeatureMap,
        columns: Ints,
        roots: Floats,
        noise: Floats,
        priors: Floats,
        evidence: float = 1.0,
    ) -> GroupEffects:
        """The variances only."""
        K, D, q = roots.shape[:3]
        none = np.zeros((0, K, D, q)), np.zeros((0, q, q))
        return cls(features, columns, roots, noise, priors, *none, evidence)

    @property
    def variances(self) -> Floats:
        """Variances of the effects, (K, D, q)."""
        return self.noise[..., None] * np.square(self.roots).sum(-1)

    def design(self, X: Floats) -> Floats:
        """The columns that have effects, (N, q)."""
        return self.features.select(X, self.columns)

    def of_groups(
        self,
        X: Floats,
        means: Floats,
        targets: Floats,
        group: Ints,
        n_groups: int,
        weight: Floats | None = None,
    ) -> tuple[GroupEffects, Floats]:
        """The effects of groups from some of their rows, and the scores of these groups.

        Parameters
        ----------
        X
            Inputs of the rows, shape (N, d).
        means
            The mean of each context, shape (N, K, D).
        targets
            Targets of the rows, shape (N, D).
        group
            The group of each row, 0..m-1.
        n_groups
            Number of groups.
        weight
            Weight of each row's log-likelihood, shape (N,).

        Returns
        -------
        effects
            The same variances with the effects of these groups.
        scores
            Minus the log of prior times marginal likelihood, shape (m, K).
        """
        N, K, D = means.shape
        z, residual = self.design(X), targets[:, None] - means
        moments = GroupMoments.of(z, residual.reshape(N, K * D), group, n_groups, weight)
        q, at = len(self.columns), len(self.columns) + np.arange(K * D)
        squares = moments.products[:, at, at]
        sums = np.concatenate([np.swapaxes(moments.xy, 1, 2), squares[..., None]], 2)
        return self.from_sums(moments.xx, sums.reshape(n_groups, K, D, q + 1), moments.sizes)

    def from_sums(
        self, products: Floats, sums: Floats, sizes: Floats
    ) -> tuple[GroupEffects, Floats]:
        """The same from sums over the rows of the groups: see `products` and `sums`."""
        n_groups, K, D, q = *sums.shape[:3], len(self.columns)
        own = np.arange(q)
        effects = np.zeros((n_groups, K, D, q))
        scores = np.tile(-np.log(np.maximum(self.priors, 1e-300)), (n_groups, 1))
        block = np.zeros((n_groups, q + 1, q + 1))
        block[:, :q, :q] = products
        for k in range(K):
            for d in range(D):
                model = MixedModel(own, np.zeros(q), self.roots[k, d], self.noise[k, d])
                block[:, :, q] = block[:, q] = sums[:, k, d]
                target = GroupMoments(block, sizes)
                effects[:, k, d] = shrunk_effects(model, target)
                scores[:, k] -= self.evidence * log_likelihood(model, target)
        return replace(self, effects=effects, products=products, sums=sums), scores

    def add(self, X: Floats, outputs: Floats, group: Ints) -> Floats:
        """Outputs of each context with the effects of the rows' groups, (N, K, D).

        A group of -1 has no effects.
        """
        effects = np.where((group < 0)[:, None, None, None], 0.0, self.effects[group])
        return outputs + np.einsum("nq,nkdq->nkd", self.design(X), effects)

    def variance(self, X: Floats, group: Ints) -> Floats:
        """Variance of a new row of each group around its prediction, by context, (N, K, D)."""
        z = self.design(X)
        K, D, q = self.roots.shape[:3]
        out = np.empty((len(z), K, D))
        for k in range(K):
            for d in range(D):
                root = self.roots[k, d]
                inner = np.eye(q) + root.T @ self.products @ root  #                (m, q, q)
                known = np.concatenate([np.linalg.inv(inner), np.eye(q)[None]])  # -1: no rows
                rooted = z @ root  #                                                (N, q)
                spread = np.einsum("nq,nqr,nr->n", rooted, known[group], rooted)
                out[:, k, d] = self.noise[k, d] * (1 + spread)
        return out

    def moderate(self, X: Floats, outputs: Floats, group: Ints) -> Floats:
        """Outputs with effects (N, K, D) as they enter predictions: as they are."""
        return outputs

    def novelty(
        self,
        X: Floats,
        means: Floats,
        targets: Floats,
        group: Ints,
        context: Ints,
        weight: Floats | None = None,
    ) -> Floats:
        """How improbable the rows of each group are in its context, in standard deviations, (m,).

        The squared distance of a group from the mean of its context, in units of the covariance of
        its rows, has a chi-squared distribution if the group belongs there.
        """
        own = targets - means[np.arange(len(group)), context[group]]  #             (N, D)
        n_groups, D, q = len(context), own.shape[1], len(self.columns)
        moments = GroupMoments.of(self.design(X), own, group, n_groups, weight)
        distance = np.zeros(n_groups)
        for d in range(D):
            root, noise = self.roots[context, d], self.noise[context, d]
            target = moments.target(d)
            rooted = (np.swapaxes(root, 1, 2) @ target.xy)[..., 0]  #               (m, q)
            inner = np.eye(q) + np.swapaxes(root, 1, 2) @ target.xx @ root
            solved = np.linalg.solve(inner, rooted[..., None])[..., 0]
            distance += (target.products[:, q, q] - (rooted * solved).sum(1)) / noise
        p_value = np.clip(chi2.sf(distance, D * moments.sizes), 1e-300, 1 - 1e-16)
        return np.asarray(norm.isf(p_value))

    def take_contexts(self, chosen: Ints) -> GroupEffects:
        """These contexts, in this order."""
        return replace(
            self,
            roots=self.roots[chosen],
            noise=self.noise[chosen],
            priors=self.priors[chosen] / max(self.priors[chosen].sum(), 1e-300),
            effects=self.effects[:, chosen],
            sums=None if self.sums is None else self.sums[:, chosen],
        )


@dataclass(frozen=True, eq=False)
class LogisticEffects(GroupEffects):
    """Effects on log-odds. `noise` is 1, and `products` have the shape (m, K, D, q, q).

    Examples
    --------
    >>> features = FeatureMap.of(np.array([[-1.0], [1.0]]))
    >>> model = LogisticEffects.without_groups(
    ...     features, np.array([0]), np.ones((1, 1, 1, 1)), np.ones((1, 1)), np.ones(1)
    ... )
    >>> X, means, answers = np.zeros((9, 1)), np.zeros((9, 1, 1)), np.ones((9, 1))
    >>> new, scores = model.of_groups(X, means, answers, np.zeros(9, dtype=int), 1)
    >>> new.effects.ravel().round(1)
    array([1.6])
    """

    @classmethod
    def without_groups(
        cls,
        features: FeatureMap,
        columns: Ints,
        roots: Floats,
        noise: Floats,
        priors: Floats,
        evidence: float = 1.0,
    ) -> LogisticEffects:
        """The variances only."""
        K, D, q = roots.shape[:3]
        none = np.zeros((0, K, D, q)), np.zeros((0, K, D, q, q))
        return cls(features, columns, roots, noise, priors, *none, evidence)

    def of_groups(
        self,
        X: Floats,
        means: Floats,
        targets: Floats,
        group: Ints,
        n_groups: int,
        weight: Floats | None = None,
    ) -> tuple[LogisticEffects, Floats]:
        """The effects of groups from some of their answers, and the scores of these groups."""
        _, K, D = means.shape
        z, q = self.design(X), len(self.columns)
        effects, products = np.zeros((n_groups, K, D, q)), np.zeros((n_groups, K, D, q, q))
        scores = np.tile(-np.log(np.maximum(self.priors, 1e-300)), (n_groups, 1))
        for d in range(D):
            answers = Answers.of(targets[:, d], group, n_groups, weight)
            for k in range(K):
                effects[:, k, d], products[:, k, d], likelihood = integrate_effects(
                    answers, z[answers.order], means[answers.order, k, d], self.roots[k, d]
                )
                scores[:, k] -= self.evidence * likelihood
        return replace(self, effects=effects, products=products), scores

    def with_further_rows(
        self,
        X: Floats,
        means: Floats,
        targets: Floats,
        group: Ints,
        weight: Floats | None = None,
    ) -> tuple[LogisticEffects, Floats]:
        """The effects of known groups after further answers, and minus the log-likelihood of these.

        The answers so far enter as the normal distribution to which they narrowed the effects. For
        groups of which nothing is known, this is `of_groups` without the prior of the contexts.

        Parameters
        ----------
        X, means, targets, group, weight
            Further rows, as in `of_groups`; groups are numbered as those of this object.

        Returns
        -------
        effects
            The effects of all groups; those without further rows are as they were.
        scores
            Minus the log-likelihood of the further answers given those so far, shape (m, K).
        """
        m, K, D = self.effects.shape[:3]
        z = self.design(X)
        effects, products, scores = self.effects.copy(), self.products.copy(), np.zeros((m, K))
        has_rows = np.bincount(group, minlength=m) > 0
        left = self.left_open(self.products)  #                                     (m, K, D, q, q)
        for d in range(D):
            answers = Answers.of(targets[:, d], group, m, weight)
            own_z = z[answers.order]
            for k in range(K):
                known = (own_z * self.effects[answers.group, k, d]).sum(1)
                moved, added, likelihood = integrate_effects(
                    answers, own_z, means[answers.order, k, d] + known, left[:, k, d]
                )
                effects[has_rows, k, d] += moved[has_rows]
                products[:, k, d] += added
                scores[:, k] -= self.evidence * likelihood
        return replace(self, effects=effects, products=products), scores

    def left_open(self, products: Floats) -> Floats:
        """Roots of the covariances that rows with these products leave, (m, K, D, q, q)."""
        inner = np.eye(len(self.columns)) + np.swapaxes(self.roots, -1, -2) @ products @ self.roots
        return np.asarray(self.roots @ np.linalg.cholesky(np.linalg.inv(inner)))

    def variance(self, X: Floats, group: Ints) -> Floats:
        """Variance of the log-odds of each row around its prediction, by context, (N, K, D)."""
        z = self.design(X)
        K, D, q = self.roots.shape[:3]
        out = np.empty((len(z), K, D))
        for k in range(K):
            for d in range(D):
                root = self.roots[k, d]
                inner = np.eye(q) + root.T @ self.products[:, k, d] @ root  #       (m, q, q)
                known = np.concatenate([np.linalg.inv(inner), np.eye(q)[None]])  # -1: no rows
                rooted = z @ root  #                                                (N, q)
                out[:, k, d] = np.einsum("nq,nqr,nr->n", rooted, known[group], rooted)
        return out

    def moderate(self, X: Floats, outputs: Floats, group: Ints) -> Floats:
        """Log-odds of the mean probability over what is not known of the effects.

        A logistic function of a normal variable has about this mean (MacKay, 1992).
        """
        return outputs / np.sqrt(1 + np.pi / 8 * self.variance(X, group))

    def novelty(
        self,
        X: Floats,
        means: Floats,
        targets: Floats,
        group: Ints,
        context: Ints,
        weight: Floats | None = None,
    ) -> Floats:
        """How much more improbable the answers of each group are than expected, (m,).

        In standard deviations of their log-likelihood, if they follow the group's context.
        """
        row, own = np.arange(len(group)), context[group]
        eta = self.add(X, means, group)[row, own]  #                                (N, D)
        p, weight = expit(eta), np.ones(len(group)) if weight is None else weight
        excess = (np.logaddexp(0, eta) - targets * eta) - (np.logaddexp(0, eta) - p * eta)
        spread = p * (1 - p) * eta**2
        sums = [
            np.bincount(group, weight * each.sum(1), minlength=len(context))
            for each in (excess, spread)
        ]
        return np.asarray(sums[0] / np.sqrt(np.maximum(sums[1], 1e-12)))

    def take_contexts(self, chosen: Ints) -> LogisticEffects:
        """These contexts, in this order."""
        taken = super().take_contexts(chosen)
        return replace(self, **{**vars(taken), "products": self.products[:, chosen]})
