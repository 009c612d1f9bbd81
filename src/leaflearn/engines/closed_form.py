"""The engine for linear and smooth local models: contexts and group effects in closed form.

Everything is computed from the moments of the groups over features (`moments/`):

    fit one context with group effects; the restricted likelihood chooses the columns
    compare numbers of contexts by the density of groups (`initialization/structure.py`)
    repeat until the posterior converges:
        fit mean, variances of effects and noise of every context, weighted by the posterior
        posterior of every group: prior times marginal likelihood, effects integrated out

Without group effects and with hard allocation this is LEAF with least squares as local models.

Classes are fitted in `answers.py`, which begins with the same steps on indicator columns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from leaflearn.core.grouped_data import GroupedData, position_in_group
from leaflearn.effects.columns import add_hats, choose_columns, find_varying
from leaflearn.effects.group_effects import GroupEffects
from leaflearn.effects.restricted_likelihood import (
    MixedModel,
    fit_mixed_model,
    fit_with_variances,
    log_likelihood,
    shrunk_effects,
)
from leaflearn.engines import settings
from leaflearn.engines.boosting import BoostedColumns
from leaflearn.engines.calibration import posterior as posterior_of
from leaflearn.engines.fitted_state import FittedState
from leaflearn.engines.local_models import LocalModels, Scaling
from leaflearn.engines.many_groups import (
    find_posterior,
    fit_to_all,
    iterate_moments,
    sample_groups,
)
from leaflearn.engines.parameters import Parameters
from leaflearn.initialization.structure import Structure, choose_structure
from leaflearn.moments.features import FeatureMap, in_blocks
from leaflearn.moments.group_moments import GroupMoments

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class LinearModel:
    """The mean of one context: linear in the features; `predict` takes the inputs."""

    features: FeatureMap
    coefficients: Floats  # in units of the targets                                 (F, D)
    boosted: BoostedColumns | None = None

    def predict(self, X: Floats) -> Floats:
        """Predictions without group effects, (N, D)."""
        X = np.asarray(X, dtype=np.float64)
        return make_design(X, self.features, self.boosted) @ self.coefficients


@dataclass(frozen=True, eq=False)
class ClosedFormModels:
    """Local models that are linear in common features: values, or log-odds of classes.

    Two classes have the log-odds of the second one, more have those of each against the others.
    """

    features: FeatureMap
    coefficients: Floats  #                                                         (K, F, D)
    scale: Floats  # standard deviations of the targets                             (D,)
    n_classes: int = 0  # 0 in regression
    boosted: BoostedColumns | None = None  # further features, the last ones

    @property
    def name(self) -> str:
        """The name of the local model."""
        if self.boosted is not None:
            return "boosting"
        return "linear" if self.features.phases is None else "smooth"

    @property
    def models(self) -> list[LinearModel]:
        return [LinearModel(self.features, each, self.boosted) for each in self.coefficients]

    def outputs(self, X: Floats) -> Floats:
        return self.finish(self.means(X))

    def means(self, X: Floats) -> Floats:
        """Means of the targets, (N, K, D)."""
        K, F, D = self.coefficients.shape
        flat = np.moveaxis(self.coefficients, 0, 1).reshape(F, K * D)
        means = in_blocks(lambda rows: make_design(rows, self.features, self.boosted) @ flat, X)
        return means.reshape(len(X), K, D)

    def finish(self, values: Floats) -> Floats:
        """Values as they are, or log-odds as probabilities of the classes, (..., C)."""
        if not self.n_classes:
            return values
        if self.n_classes == 2:
            values = np.concatenate([-values, values], -1)
        probability = np.maximum(expit(values), settings.CLOSED_FORM.min_probability)
        return np.asarray(probability / probability.sum(-1, keepdims=True))

    def targets(self, y: NDArray[Any]) -> Floats:
        """Values as they are, or classes as indicators, (N, D); class 0 for unknown labels."""
        return to_indicators(np.maximum(y, 0), self.n_classes) if self.n_classes else y

    def means_and_targets(self, X: Floats, y: NDArray[Any]) -> tuple[Floats, Floats]:
        """What effects are found from: means (N, K, D) and targets (N, D)."""
        return self.means(np.asarray(X, dtype=np.float64)), self.targets(y)

    def residuals(self, X: Floats, y: NDArray[Any]) -> Floats:
        """Targets minus the mean of each context, (N, K, D)."""
        means, targets = self.means_and_targets(X, y)
        return targets[:, None] - means

    def losses(self, X: Floats, y: NDArray[Any]) -> Floats:
        if self.n_classes:
            return -np.log(self.outputs(X)[np.arange(len(y)), :, y])
        return np.square((y[:, None] - self.means(X)) / self.scale).mean(-1)

    def reordered(self, order: Ints) -> ClosedFormModels:
        return replace(self, coefficients=self.coefficients[order])

    def joined(self, others: ClosedFormModels) -> ClosedFormModels:
        return replace(self, coefficients=np.concatenate([self.coefficients, others.coefficients]))


def make_design(X: Floats, features: FeatureMap, boosted: BoostedColumns | None) -> Floats:
    """The features of some rows, with boosted columns last if there are any, (N, F)."""
    return features(X) if boosted is None else np.concatenate([features(X), boosted(X)], 1)


def to_indicators(y: NDArray[Any], n_classes: int) -> Floats:
    """Class numbers (N,) as indicator columns: one column for two classes, else one per class.

    Examples
    --------
    >>> to_indicators(np.array([0, 1]), 2).tolist(), to_indicators(np.array([2]), 3).tolist()
    ([[0.0], [1.0]], [[0.0, 0.0, 1.0]])
    """
    indicators = np.eye(n_classes)[y]
    return indicators[:, 1:] if n_classes == 2 else indicators


def fit_in_closed_form(
    parameters: Parameters, data: GroupedData, random_state: np.random.RandomState
) -> FittedState:
    """Fit linear or smooth local models with group effects.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, group = rng.normal(size=(400, 1)), np.repeat(np.arange(40), 10)
    >>> y = X + rng.normal(size=40)[group][:, None] + rng.normal(0, 0.3, (400, 1))
    >>> rows = GroupedData(X, y, group, np.arange(400), None, 1, False)
    >>> leaf = LeafRegressor(local_model="linear")
    >>> state = fit_in_closed_form(leaf, rows, np.random.RandomState(0))
    >>> state.n_contexts, bool(0.6 < state.effects.variances[0, 0, 0] < 1.6)
    (1, True)
    """
    began = time.perf_counter()
    seed = int(random_state.randint(2**31 - 1))
    scaling = Scaling.of(data.y)
    # Weights multiply the log-likelihood; their mean is 1, so that only their ratios matter.
    weight = None if data.weight is None else data.weight / data.weight.mean()
    every = Rows(np.asarray(data.X, dtype=np.float64), scaling.apply(data.y), data.group, weight)
    how = parameters.group_effects, seed
    is_boosting = parameters.local_model == "boosting"
    choice = choose_local_model(
        every if is_boosting else every.sample(seed), parameters.local_model, *how
    )
    if choice.rows.is_sample and choice.boosted is not None:  # trees learn from all rows
        choice = replace(choose_local_model(every, "boosting", *how), errors=choice.errors)
    one, rows, boosted = choice.one, choice.rows, choice.boosted
    n_contexts = None if parameters.n_contexts == "auto" else int(parameters.n_contexts)
    structure: Structure | None = None
    posterior = np.ones((1, rows.n_groups))
    if n_contexts != 1 and rows.n_groups > 2:
        rng = np.random.default_rng(seed)
        may_have = parameters.group_effects is not None
        structure = choose_structure(
            one.moments, one.models, one.is_shrunk, n_contexts, may_have, rng
        )
        posterior = structure.chosen.posterior
    # Effects that are not there have variances near zero, and shrinking them costs nothing. So they
    # stay where the comparison of numbers could do without.
    is_hard = parameters.allocation == "hard"
    has_own_means = structure is None or structure.chosen.has_own_means
    fit = _fit_contexts(one, posterior, has_own_means, is_hard)
    while n_contexts is None and len(fit.posterior) > 1:
        n_groups = np.bincount(fit.scores.argmin(1), minlength=len(fit.posterior))
        if n_groups.min() >= settings.CLOSED_FORM.min_chosen_groups:
            break
        posterior = np.delete(fit.posterior, n_groups.argmin(), 0)
        posterior = posterior / np.maximum(posterior.sum(0), 1e-12)
        fit = _fit_contexts(one, posterior, has_own_means, is_hard)
    selection = describe(structure) | choice.describe()
    if parameters.local_model is None:
        selection |= {"row_error": average_errors(held_out_errors(fit, one, rows, seed))}
    if rows.is_sample:
        blocks = iterate_moments(one.features, every.X, every.y, every.group, weight)
        found = fit_to_all(fit.models, fit.priors, blocks, one.is_shrunk, is_hard)
        fit = replace(fit, **vars(found))
    scale = scaling.scale
    coefficients = fit.coefficients * scale
    coefficients[:, 0] += scaling.center
    local_models = ClosedFormModels(one.features, coefficients, scale, boosted=boosted)
    noise = np.array([[model.noise for model in each] for each in fit.models]) * scale**2
    variances = GroupEffects.without_groups(one.features, one.columns, fit.roots, noise, fit.priors)
    init = "one context" if structure is None else structure.explain()
    seconds = time.perf_counter() - began
    return make_state(fit, local_models, variances, init, selection, every.sizes, seconds)


@dataclass(frozen=True, eq=False)
class LocalModelChoice:
    """One context with the local model that was given or chosen, and the rows that it sees."""

    name: str
    one: OneContext
    rows: Rows
    boosted: BoostedColumns | None = None
    errors: dict[str, float] = field(default_factory=dict)  # of held-out rows, by local model

    def describe(self) -> dict[str, NDArray[Any]]:
        """The alternatives as columns of `selection_`."""
        if not self.errors:
            return {}
        return {
            "local_model": np.array(list(self.errors)),
            "local_model_error": np.array(list(self.errors.values())),
        }


def choose_local_model(
    rows: Rows, local_model: str | None, group_effects: Any, seed: int
) -> LocalModelChoice:
    """Fit one context with the local model of this name; None chooses it on held-out rows.

    Candidates are compared by rows that are held out of their groups, in one context with group
    effects. The error of a row is bounded, so that single rows do not decide. Trees predict the
    rows of a group without having seen any of them.
    """
    if local_model in ("linear", "smooth"):
        one = fit_one_context(rows, local_model, group_effects, seed)
        return LocalModelChoice(local_model, one, rows)
    smooth = fit_one_context(rows, "smooth", group_effects, seed)
    found = [LocalModelChoice("smooth", smooth, rows)]
    n_rows, limits = len(rows.y), settings.CLOSED_FORM
    if local_model == "boosting" or n_rows * settings.BOOSTING.n_fits <= limits.max_work:
        targets = rows.y - effects_of_rows(smooth, rows)
        boosted, columns = BoostedColumns.fit(rows.X, targets, rows.group, rows.weight, seed)
        wider = replace(rows, boosted=columns)
        with_trees = fit_one_context(wider, "smooth", group_effects, seed)
        found.append(LocalModelChoice("boosting", with_trees, wider, boosted))
    if local_model == "boosting":
        return found[-1]
    linear = fit_one_context(rows, "linear", group_effects, seed)
    found.insert(0, LocalModelChoice("linear", linear, rows))
    residuals = [_held_out_residuals(each.one, each.rows, seed) for each in found]
    bound = limits.error_bound * np.median(np.abs(residuals[1]), 0)  #               (D,)
    losses = [np.square(np.minimum(np.abs(each), bound)).mean(1) for each in residuals]
    errors = {each.name: float(own.mean()) for each, own in zip(found, losses, strict=True)}
    best = 0  # the simplest; a richer one has to predict significantly better
    for i, loss in enumerate(losses):
        gain = losses[best] - loss
        if gain.mean() > limits.n_errors * gain.std() / max(len(gain), 1) ** 0.5:
            best = i
    return replace(found[best], errors=errors)


def _held_out_residuals(one: OneContext, rows: Rows, seed: int) -> Floats:
    """Residuals of rows that are predicted from the other rows of their groups, (N', D).

    Variances are those of all rows; the mean and the effects are fitted without the held-out ones.
    """
    design, n_folds = rows.design(one.features), settings.CLOSED_FORM.n_row_folds
    fold = fold_rows(rows.group, n_folds, seed)
    out = np.full_like(rows.y, np.nan)
    for f in range(n_folds):
        held, learned = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
        weight = None if rows.weight is None else rows.weight[learned]
        moments = GroupMoments.of(
            design[learned], rows.y[learned], rows.group[learned], rows.n_groups, weight
        )
        for d, like in enumerate(one.models):
            model = fit_with_variances(moments.target(d), like, one.is_shrunk)
            effects = shrunk_effects(model, moments.target(d))[rows.group[held]]
            added = (design[held][:, model.columns] * effects).sum(1)
            out[held, d] = rows.y[held, d] - design[held] @ model.coefficients - added
    return out[np.isfinite(out[:, 0])]


def fold_rows(group: Ints, n_folds: int, seed: int) -> Ints:
    """Folds 0.. that hold out rows of every group in turn; -1 for groups of a single row.

    Examples
    --------
    >>> fold_rows(np.array([0, 0, 1, 0, 0]), 2, seed=0)
    array([ 0,  1, -1,  1,  0])
    """
    order = np.random.default_rng(seed).permutation(len(group))
    fold = position_in_group(group, order) % n_folds
    return np.where(np.bincount(group)[group] > 1, fold, -1)


def effects_of_rows(one: OneContext, rows: Rows) -> Floats:
    """What the group effects add to the mean of each row, (N, D)."""
    features = one.features(rows.X)
    added = np.empty_like(rows.y)
    for d, model in enumerate(one.models):
        effects = shrunk_effects(model, one.moments.target(d))  #                   (m, q)
        added[:, d] = (features[:, model.columns] * effects[rows.group]).sum(1)
    return added


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows as the engine sees them."""

    X: Floats  #                                                                    (N, d)
    y: Floats  # in standard units                                                  (N, D)
    group: Ints
    weight: Floats | None
    boosted: Floats | None = None  # boosted columns, out of fold                   (N, D)
    every_X: Floats | None = None  # inputs of all rows, where these are some of them

    @property
    def n_groups(self) -> int:
        return int(self.group.max()) + 1

    @property
    def sizes(self) -> Floats:
        """Rows of each group, or the sum of their weights, (m,)."""
        return np.bincount(self.group, self.weight).astype(np.float64)

    @property
    def is_sample(self) -> bool:
        """Whether these are the rows of some of the groups only."""
        return self.every_X is not None

    @property
    def linear_features(self) -> FeatureMap:
        """A constant and the inputs, in the units and the range of all rows."""
        return FeatureMap.of(self.X if self.every_X is None else self.every_X)

    def sample(self, seed: int) -> Rows:
        """The rows of some of the groups, where there are very many."""
        if self.n_groups <= settings.CLOSED_FORM.max_groups:
            return self
        rows = sample_groups(self.group, settings.CLOSED_FORM.max_groups, seed)
        group = np.unique(self.group[rows], return_inverse=True)[1]
        weight = None if self.weight is None else self.weight[rows]
        return Rows(self.X[rows], self.y[rows], group, weight, every_X=self.X)

    def design(self, features: FeatureMap) -> Floats:
        """Features of all rows, with boosted columns last, (N, F)."""
        design = features(self.X)
        return design if self.boosted is None else np.concatenate([design, self.boosted], 1)

    def moments(self, features: FeatureMap) -> GroupMoments:
        how = self.y, self.group, self.n_groups, self.weight
        if self.boosted is None:
            return GroupMoments.of_rows(features, self.X, *how)
        return GroupMoments.of(self.design(features), *how)


@dataclass(frozen=True, eq=False)
class OneContext:
    """Features, their moments, and the model of one context for each target."""

    features: FeatureMap
    moments: GroupMoments
    is_shrunk: NDArray[np.bool_]
    models: list[MixedModel]

    @property
    def criterion(self) -> float:
        return sum(model.criterion for model in self.models)

    @property
    def columns(self) -> Ints:
        """The features that have effects, (q,)."""
        return self.models[0].columns

    @property
    def is_full(self) -> bool:
        """Whether effects are correlated."""
        n_diagonal = len(self.columns) + int(self.is_shrunk.any())
        return bool(len(self.columns)) and self.models[0].n_parameters > n_diagonal

    @property
    def targets(self) -> list[GroupMoments]:
        """The moments of each target."""
        return [self.moments.target(d) for d in range(self.moments.n_targets)]


def fit_one_context(rows: Rows, local_model: str, group_effects: Any, seed: int = 0) -> OneContext:
    """One context with the features and the effects that the likelihood asks for."""
    first = np.array([0] if group_effects is not None else [], dtype=np.intp)
    linear = rows.linear_features
    candidates = [_fit_columns(rows, linear, [first] * rows.y.shape[1])]
    if local_model != "linear":
        candidates = [
            _fit_columns(rows, _add_cosines(linear, scale, seed), [first] * rows.y.shape[1])
            for scale in settings.CLOSED_FORM.scales
        ]
    one = min(candidates, key=lambda candidate: candidate.criterion)
    if group_effects in (None, "intercept"):
        return one
    varying = find_varying(one.moments, one.features.n_linear)
    if group_effects == "slopes":
        chosen = varying[: settings.CLOSED_FORM.max_slopes]
        return _fit_columns(rows, one.features, [np.append(first, chosen)] * rows.y.shape[1])
    one = _choose_effects(one, varying)
    bent = add_hats(one.features, rows.X, one.models[0])
    if len(bent.hat_input):
        start = _fit_columns(rows, bent, [model.columns for model in one.models])
        hats = np.arange(bent.n_linear, bent.n_linear + len(bent.hat_input))
        curved = _choose_effects(start, np.concatenate([varying, hats]))
        one = min(one, curved, key=lambda candidate: candidate.criterion)
    return one


def _choose_effects(one: OneContext, candidates: Ints) -> OneContext:
    """The columns that the targets' likelihoods ask for, common to all targets."""
    targets = range(len(one.models))
    chosen = [
        choose_columns(one.moments.target(d), one.is_shrunk, candidates, one.models[d])
        for d in targets
    ]
    if len(chosen) == 1:
        return replace(one, models=chosen)
    columns = np.array(list(dict.fromkeys(c for model in chosen for c in model.columns.tolist())))
    columns = columns[: settings.CLOSED_FORM.max_slopes + 1].astype(np.intp)
    models = [fit_mixed_model(one.moments.target(d), columns, one.is_shrunk) for d in targets]
    return replace(one, models=models)


def _fit_columns(rows: Rows, features: FeatureMap, columns: Sequence[Ints]) -> OneContext:
    moments = rows.moments(features)
    position = np.arange(moments.n_features)
    is_shrunk = (position >= features.n_linear) & (position < features.n_features)
    models = [fit_mixed_model(moments.target(d), own, is_shrunk) for d, own in enumerate(columns)]
    return OneContext(features, moments, is_shrunk, models)


def _add_cosines(features: FeatureMap, scale: float, seed: int) -> FeatureMap:
    rng, d = np.random.default_rng(seed), len(features.center)
    n_cosines = settings.CLOSED_FORM.n_cosines
    directions = rng.normal(size=(d, n_cosines)) / (scale * np.sqrt(d))
    return replace(features, directions=directions, phases=rng.uniform(0, 2 * np.pi, n_cosines))


@dataclass(frozen=True, eq=False)
class Contexts:
    """Fitted contexts, and how the alternation ended."""

    models: list[list[Any]]  # by context and target
    priors: Floats  #                                                               (K,)
    scores: Floats  # minus log of prior times marginal likelihood                  (m, K)
    posterior: Floats  #                                                            (K, m)
    history: dict[str, list[Any]]
    converged: bool
    has_own_means: bool = True  # or one that they share, but for the columns with effects

    @property
    def coefficients(self) -> Floats:
        """Of the means, (K, F, D)."""
        return np.stack([np.stack([m.coefficients for m in each], 1) for each in self.models])

    @property
    def roots(self) -> Floats:
        """Of the effects' covariances, (K, D, q, q)."""
        return np.stack([np.stack([m.root for m in each]) for each in self.models])


def _fit_contexts(
    one: OneContext, posterior: Floats, has_own_means: bool, is_hard: bool
) -> Contexts:
    """Alternate between the contexts' models and the groups' posterior, from a given posterior.

    With group effects, contexts have the variances of all contexts while groups are allocated, and
    their own ones afterwards. Otherwise a narrow and a wide context would explain groups that
    differ by degree, and leave the contexts that differ in kind.
    """
    targets, has_effects = one.targets, len(one.columns) > 0
    is_joint = len(posterior) > 1 and has_effects

    def fit(weights: Floats, before: list[list[MixedModel]]) -> list[list[MixedModel]]:
        by_target = []
        for d, target in enumerate(targets):
            starts = [each[d] for each in before]
            if is_joint and not has_own_means:
                joint = SharedMean.of(target, one, weights)
                by_target.append(joint.fit(starts[0] if starts else None, one.is_full))
                continue
            own = [
                _fit_context(one, d, weight, starts[k] if starts else None)
                for k, weight in enumerate(weights)
            ]
            shared = _share_variances(target, own, weights, one.is_full) if is_joint else own
            by_target.append(shared)
        return [list(each) for each in zip(*by_target, strict=True)]

    def score(models: list[list[MixedModel]]) -> Floats:
        return -np.stack([sum(map(log_likelihood, each, targets)) for each in models], 1)

    found = replace(alternate(posterior, fit, score, is_hard), has_own_means=has_own_means)
    if not is_joint:
        return found
    models = [
        [_give_own_variances(one, d, model, weight) for d, model in enumerate(each)]
        for each, weight in zip(found.models, found.posterior, strict=True)
    ]
    scores = score(models) - np.log(found.priors)
    return replace(found, models=models, scores=scores, posterior=find_posterior(scores, is_hard))


def alternate(
    posterior: Floats,
    fit: Callable[[Floats, list[list[Any]]], list[list[Any]]],
    score: Callable[[list[list[Any]]], Floats],
    is_hard: bool,
    n_rounds: int | None = None,
) -> Contexts:
    """Alternate between the contexts' models and the groups' posterior, from a given posterior.

    Parameters
    ----------
    posterior
        Probability of each context for each group, shape (K, m).
    fit
        From the weights of the groups (K, m) and the models so far, the models by context and
        target.
    score
        Minus the log marginal likelihood of each group under the models of each context, (m, K).
    is_hard
        Whether each group belongs to one context alone.
    n_rounds
        Rounds at most.
    """
    limits, (K, m) = settings.CLOSED_FORM, posterior.shape
    models: list[list[Any]] = []
    history: dict[str, list[Any]] = {"loss": [], "changed": [], "usage": []}
    has_converged = False
    for _ in range(n_rounds or limits.max_rounds):
        models = fit(posterior, models)
        priors = np.maximum(posterior.sum(1) / posterior.sum(), 1e-6)
        scores = score(models) - np.log(priors)
        new = find_posterior(scores, is_hard)
        changed = float((new.argmax(0) != posterior.argmax(0)).mean())
        history["loss"].append(float(-logsumexp(-scores, 1).mean()))
        history["changed"].append(changed)
        history["usage"].append(np.bincount(scores.argmin(1), minlength=K) / m)
        has_converged = float(np.abs(new - posterior).max()) < limits.max_change
        is_idle = new.sum(1) < limits.min_groups
        posterior = new
        if has_converged or K == 1:
            break
        if is_idle.any():  # a context without groups keeps its model and is not fitted again
            posterior = np.where(is_idle[:, None], 1.0 / m, posterior)
    return Contexts(models, priors, scores, posterior, history, has_converged or K == 1)


@dataclass(frozen=True, eq=False)
class SharedMean:
    """Contexts that share one mean, but for the columns that have effects, as one mixed model.

    Its groups are pairs of a context and a group that may belong to it. Its features are those of
    the mean, and for every context but the first the columns with effects once more, zero in the
    pairs of other contexts.
    """

    moments: GroupMoments  # of the pairs, for one target
    weight: Floats  # posterior of each pair
    columns: Ints
    is_shrunk: NDArray[np.bool_]
    n_contexts: int

    @classmethod
    def of(cls, target: GroupMoments, one: OneContext, weights: Floats) -> SharedMean:
        """From the moments of the groups for one target, and their weights (K, m)."""
        K, F, q = len(weights), target.n_features, len(one.columns)
        context, group = np.nonzero(weights > settings.CLOSED_FORM.min_pair_weight)
        to = np.zeros((K, F + 1, F + (K - 1) * q + 1))  # of each context
        to[:, np.arange(F), np.arange(F)] = to[:, F, -1] = 1.0
        for k in range(1, K):
            to[k, one.columns, F + (k - 1) * q + np.arange(q)] = 1.0
        products = np.concatenate(
            [to[k].T @ target.products[group[context == k]] @ to[k] for k in range(K)]
        )
        is_shrunk = np.concatenate([one.is_shrunk, np.tile(one.is_shrunk[one.columns], K - 1)])
        pairs = GroupMoments(products, target.sizes[group])
        return cls(pairs, weights[context, group], one.columns, is_shrunk, K)

    def fit(self, start: MixedModel | None, is_full: bool) -> list[MixedModel]:
        """The models of the contexts, with the most probable variances."""
        how = self.columns, self.is_shrunk, self.weight, is_full, start
        return self._take_apart(fit_mixed_model(self.moments, *how))

    def fit_with_variances(self, like: MixedModel) -> list[MixedModel]:
        """The models of the contexts, with the variances of another model."""
        how = like, self.is_shrunk, self.weight
        return self._take_apart(fit_with_variances(self.moments, *how))

    def _take_apart(self, joint: MixedModel) -> list[MixedModel]:
        q, F = len(self.columns), len(self.is_shrunk) - (self.n_contexts - 1) * len(self.columns)
        means = np.tile(joint.coefficients[:F], (self.n_contexts, 1))
        means[1:, self.columns] += joint.coefficients[F:].reshape(-1, q)
        return [replace(joint, coefficients=mean) for mean in means]


def _share_variances(
    target: GroupMoments, models: list[MixedModel], weights: Floats, is_full: bool
) -> list[MixedModel]:
    """The same means with the variances of effects and the noise of all contexts together."""
    columns = models[0].columns
    parts = [target.reduced(columns, model.coefficients) for model in models]
    stacked = GroupMoments(
        np.concatenate([part.products for part in parts]),
        np.concatenate([part.sizes for part in parts]),
    )
    own = np.arange(len(columns))
    found = fit_mixed_model(stacked, own, None, weights.ravel(), is_full)
    # Below it, the squares of residuals are rounding errors, which may be negative.
    if found.noise < settings.CLOSED_FORM.min_noise:
        return models
    return [replace(model, root=found.root, noise=found.noise) for model in models]


def _give_own_variances(one: OneContext, d: int, model: MixedModel, weight: Floats) -> MixedModel:
    """The model with variances of its own, if its groups show that they differ from the others'."""
    limits, q = settings.CLOSED_FORM, len(one.columns)
    if weight.sum() < limits.groups_per_variance * (q + 1) or model.noise < limits.min_noise:
        return model
    target = one.moments.target(d).reduced(one.columns, model.coefficients)
    like = replace(model, columns=np.arange(q), coefficients=np.zeros(q))
    found = fit_mixed_model(target, like.columns, None, weight, one.is_full)
    own = replace(like, root=found.root, noise=max(found.noise, limits.min_noise))
    gain = weight @ (log_likelihood(own, target) - log_likelihood(like, target))
    if 2 * gain < (q + 1) * np.log(max(weight.sum(), 2.0)):
        return model
    return replace(model, root=own.root, noise=own.noise)


def _fit_context(one: OneContext, d: int, weight: Floats, start: MixedModel | None) -> MixedModel:
    """A target's model of one context, whose groups have these posterior weights (m,).

    A context with few groups has the variances of all contexts, relative to its noise. With few
    rows, it has the mean of all groups as well, but for the columns that have effects.
    """
    limits, target, columns = settings.CLOSED_FORM, one.moments.target(d), one.columns
    shared = one.models[d] if start is None else replace(one.models[d], root=start.root)
    is_all = bool(np.allclose(weight, 1.0))
    n_rows, n_fixed = float(weight @ target.sizes), int((~one.is_shrunk).sum())
    if not is_all and n_rows < limits.rows_per_coefficient * n_fixed:
        kept = columns if len(columns) else np.array([0], dtype=np.intp)
        offset = replace(shared, columns=np.arange(len(columns)))
        found = fit_with_variances(target.reduced(kept, shared.coefficients), offset, None, weight)
        coefficients = shared.coefficients.copy()
        coefficients[kept] += found.coefficients
        return replace(found, columns=columns, coefficients=coefficients)
    if not is_all and weight.sum() < limits.groups_per_variance * len(columns):
        return fit_with_variances(target, shared, one.is_shrunk, weight)
    start = shared if is_all and start is None else start
    return fit_mixed_model(
        target, columns, one.is_shrunk, None if is_all else weight, one.is_full, start
    )


def held_out_errors(fit: Contexts, one: OneContext, rows: Rows, seed: int) -> Floats:
    """Squared error of rows in the contexts and with the effects that other rows suggest.

    The means over the rows of each group, (m,), in units of the variance of the targets; nan for
    groups of a single row.
    """
    design, n_folds = rows.design(one.features), settings.CLOSED_FORM.n_row_folds
    fold = fold_rows(rows.group, n_folds, seed)
    errors = np.full(len(rows.y), np.nan)
    for f in range(n_folds):
        held, learned = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
        moments = GroupMoments.of(
            design[learned], rows.y[learned], rows.group[learned], rows.n_groups
        )
        scores = np.tile(-np.log(fit.priors), (rows.n_groups, 1))
        each = np.empty((len(held), len(fit.models), rows.y.shape[1]))
        for d in range(moments.n_targets):
            target = moments.target(d)
            for k, model in enumerate(_refit_means(fit, one, d, target)):
                scores[:, k] -= log_likelihood(model, target)
                effects = shrunk_effects(model, target)[rows.group[held]]
                added = (design[held][:, model.columns] * effects).sum(1)
                each[:, k, d] = design[held] @ model.coefficients + added
        probability = posterior_of(scores)[rows.group[held]]
        predicted = np.einsum("nk,nkd->nd", probability, each)
        errors[held] = np.square(rows.y[held] - predicted).mean(1)
    return mean_of_groups(errors, rows.group)


def _refit_means(fit: Contexts, one: OneContext, d: int, target: GroupMoments) -> list[MixedModel]:
    """The models of a target with means of other rows of the same groups."""
    models = [each[d] for each in fit.models]
    if len(models) > 1 and len(one.columns) and not fit.has_own_means:
        found = SharedMean.of(target, one, fit.posterior).fit_with_variances(models[0])
        pairs = zip(models, found, strict=True)
        return [replace(model, coefficients=new.coefficients) for model, new in pairs]
    return [
        fit_with_variances(target, model, one.is_shrunk, weight)
        for model, weight in zip(models, fit.posterior, strict=True)
    ]


def mean_of_groups(errors: Floats, group: Ints) -> Floats:
    """Mean of the errors of each group, (m,); nan where one of them is.

    Examples
    --------
    >>> mean_of_groups(np.array([1.0, 2.0, np.nan]), np.array([0, 0, 1]))
    array([1.5, nan])
    """
    return np.asarray(np.bincount(group, errors) / np.bincount(group))


def average_errors(errors: Floats) -> Floats:
    """Arithmetic and geometric mean of the errors of groups, without those that are nan, (2,).

    Examples
    --------
    >>> average_errors(np.array([0.1, 1.0, 10.0, np.nan])).round(2).tolist()
    [3.7, 1.0]
    """
    known = errors[np.isfinite(errors)]
    if not len(known):
        return np.full(2, np.nan)
    least = settings.CHOICE.least_error
    return np.array([known.mean(), np.exp(np.log(np.maximum(known, least)).mean())])


def make_state(
    fit: Contexts,
    local_models: LocalModels,
    variances: GroupEffects,
    init: str,
    selection: dict[str, NDArray[Any]],
    sizes: Floats,
    seconds: float,
) -> FittedState:
    """The contexts as a fitted state; the effects of the groups are still to be found."""
    n_rounds = len(fit.history["loss"])
    history = {
        "epoch": np.arange(1, n_rounds + 1),
        "temperature": np.zeros(n_rounds),
        "seconds": np.full(n_rounds, seconds / n_rounds),
        **{name: np.array(values) for name, values in fit.history.items()},
    }
    contexts = fit.scores.argmin(1)
    restart = {
        "stage": "training",
        "error": history["loss"][-1],
        "kept": True,
        "n_iter": n_rounds,
        "converged": fit.converged,
        "curve": history["loss"],
        "contexts": contexts,
    }
    return FittedState(
        local_models,
        fit.scores,
        sizes.astype(np.intp),
        history,
        [restart],
        0,
        converged=fit.converged,
        init=init,
        selection=selection,
        effects=variances,
    )


def describe(structure: Structure | None) -> dict[str, NDArray[Any]]:
    """The candidates as columns of `selection_`."""
    candidates = [] if structure is None else structure.candidates
    return {
        "n_contexts": np.array([c.n_contexts for c in candidates], dtype=int),
        "has_effects": np.array([c.has_effects for c in candidates], dtype=bool),
        "has_own_means": np.array([c.has_own_means for c in candidates], dtype=bool),
        "log_density": np.array([float(c.held_out.mean()) for c in candidates]),
        "bic": np.array([c.criterion for c in candidates]),
    }
