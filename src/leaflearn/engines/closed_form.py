"""The engine for linear and smooth local models: contexts and group effects in closed form.

Everything is computed from the moments of the groups over features (`moments/`):

    fit one context with group effects; the restricted likelihood chooses the columns
    compare numbers of contexts by the density of groups (`initialization/structure.py`)
    repeat until the posterior converges:
        fit mean, variances of effects and noise of every context, weighted by the posterior
        posterior of every group: prior times marginal likelihood, effects integrated out

Without group effects and with hard allocation this is LEAF with least squares as local models.

Classes are fitted as indicator columns, by least squares. Predictions are clipped to probabilities.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.core.grouped_data import GroupedData
from leaflearn.effects.columns import add_hats, choose_columns, find_varying
from leaflearn.effects.group_effects import GroupEffects
from leaflearn.effects.restricted_likelihood import (
    MixedModel,
    fit_mixed_model,
    fit_with_variances,
    log_likelihood,
)
from leaflearn.engines import settings
from leaflearn.engines.fitted_state import FittedState
from leaflearn.engines.local_models import LocalModels, Scaling
from leaflearn.engines.many_groups import fit_to_all, iterate_moments, sample_groups
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

    def predict(self, X: Floats) -> Floats:
        """Predictions without group effects, (N, D)."""
        return self.features(np.asarray(X, dtype=np.float64)) @ self.coefficients


@dataclass(frozen=True, eq=False)
class ClosedFormModels:
    """Local models that are linear in common features.

    Two classes have one indicator column, more have one each.
    """

    features: FeatureMap
    coefficients: Floats  #                                                         (K, F, D)
    scale: Floats  # standard deviations of the targets                             (D,)
    n_classes: int = 0  # 0 in regression

    @property
    def models(self) -> list[LinearModel]:
        return [LinearModel(self.features, each) for each in self.coefficients]

    def outputs(self, X: Floats) -> Floats:
        return self.finish(self.means(X))

    def means(self, X: Floats) -> Floats:
        """Means of the targets, (N, K, D)."""
        K, F, D = self.coefficients.shape
        flat = np.moveaxis(self.coefficients, 0, 1).reshape(F, K * D)
        return in_blocks(lambda rows: self.features(rows) @ flat, X).reshape(len(X), K, D)

    def finish(self, values: Floats) -> Floats:
        """Values as they are, or those of indicator columns as probabilities, (..., C)."""
        if not self.n_classes:
            return values
        least = settings.CLOSED_FORM.min_probability
        if self.n_classes == 2:
            values = np.concatenate([1 - values, values], -1)
        clipped = np.clip(values, least, 1.0)
        return clipped / clipped.sum(-1, keepdims=True)

    def residuals(self, X: Floats, y: NDArray[Any]) -> Floats:
        """Targets minus the mean of each context, (N, K, D); 0 for labels that are not known."""
        if not self.n_classes:
            return y[:, None] - self.means(X)
        residual = to_indicators(np.maximum(y, 0), self.n_classes)[:, None] - self.means(X)
        return np.where((y < 0)[:, None, None], 0.0, residual)

    def losses(self, X: Floats, y: NDArray[Any]) -> Floats:
        if self.n_classes:
            return -np.log(self.outputs(X)[np.arange(len(y)), :, y])
        return np.square(self.residuals(X, y) / self.scale).mean(-1)

    def reordered(self, order: Ints) -> ClosedFormModels:
        return replace(self, coefficients=self.coefficients[order])

    def joined(self, others: ClosedFormModels) -> ClosedFormModels:
        return replace(self, coefficients=np.concatenate([self.coefficients, others.coefficients]))


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
    targets, scaling = data.y, Scaling.of(data.y)
    if data.is_classifier:
        targets = to_indicators(data.y, data.n_classes)
        scaling = Scaling.of(targets)
        common = np.sqrt(np.square(scaling.scale).mean())  # the classes are in one unit
        scaling = Scaling(scaling.center, np.full_like(scaling.scale, common))
    # Weights multiply the log-likelihood; their mean is 1, so that only their ratios matter.
    weight = None if data.weight is None else data.weight / data.weight.mean()
    every = _Rows(np.asarray(data.X, dtype=np.float64), scaling.apply(targets), data.group, weight)
    rows = every.sample(seed)
    one = _fit_one_context(rows, str(parameters.local_model), parameters.group_effects, seed)
    n_contexts = None if parameters.n_contexts == "auto" else int(parameters.n_contexts)
    structure: Structure | None = None
    posterior = np.ones((1, rows.n_groups))
    if n_contexts != 1 and rows.n_groups > 2:
        rng = np.random.default_rng(seed)
        may_have = parameters.group_effects is not None
        free = _free_targets(targets, data.n_classes)
        structure = choose_structure(
            one.moments.targets(free),
            [one.models[d] for d in free],
            one.is_shrunk,
            n_contexts,
            may_have,
            rng,
        )
        posterior = structure.chosen.posterior
    # Effects that are not there have variances near zero, and shrinking them costs nothing. So they
    # stay where the comparison of numbers could do without.
    columns = one.models[0].columns
    evidence = 1.0 if data.n_classes <= 2 else (data.n_classes - 1) / data.n_classes
    fit = _fit_contexts(one, columns, posterior, evidence, parameters.allocation == "hard")
    while n_contexts is None and len(fit.posterior) > 1:
        n_groups = np.bincount(fit.scores.argmin(1), minlength=len(fit.posterior))
        if n_groups.min() >= settings.CLOSED_FORM.min_chosen_groups:
            break
        posterior = np.delete(fit.posterior, n_groups.argmin(), 0)
        posterior = posterior / np.maximum(posterior.sum(0), 1e-12)
        fit = _fit_contexts(one, columns, posterior, evidence, parameters.allocation == "hard")
    if rows is not every:
        found = fit_to_all(
            fit.models,
            fit.priors,
            iterate_moments(one.features, every.X, every.y, every.group, every.weight),
            one.is_shrunk,
            parameters.allocation == "hard",
            evidence,
        )
        fit = replace(fit, **vars(found))
    seconds = time.perf_counter() - began
    return _make_state(fit, one, scaling, structure, data.n_classes, evidence, every.sizes, seconds)


def _free_targets(targets: Floats, n_classes: int) -> Ints:
    """All targets, but for one indicator of several classes, which the others determine."""
    chosen = np.arange(targets.shape[1])
    return np.delete(chosen, targets.mean(0).argmax()) if n_classes > 2 else chosen


@dataclass(frozen=True, eq=False)
class _Rows:
    X: Floats  #                                                                    (N, d)
    y: Floats  # in standard units                                                  (N, D)
    group: Ints
    weight: Floats | None
    every_X: Floats | None = None  # inputs of all rows, where these are some of them

    @property
    def n_groups(self) -> int:
        return int(self.group.max()) + 1

    @property
    def sizes(self) -> Floats:
        return np.bincount(self.group, self.weight).astype(np.float64)

    @property
    def linear_features(self) -> FeatureMap:
        """A constant and the inputs, in the units and the range of all rows."""
        return FeatureMap.of(self.X if self.every_X is None else self.every_X)

    def sample(self, seed: int) -> _Rows:
        """The rows of some of the groups, where there are very many."""
        if self.n_groups <= settings.CLOSED_FORM.max_groups:
            return self
        rows = sample_groups(self.group, settings.CLOSED_FORM.max_groups, seed)
        group = np.unique(self.group[rows], return_inverse=True)[1]
        weight = None if self.weight is None else self.weight[rows]
        return _Rows(self.X[rows], self.y[rows], group, weight, self.X)

    def moments(self, features: FeatureMap) -> GroupMoments:
        return GroupMoments.of_rows(
            features, self.X, self.y, self.group, self.n_groups, self.weight
        )


@dataclass(frozen=True, eq=False)
class _OneContext:
    """Features, their moments, and the model of one context for each target."""

    features: FeatureMap
    moments: GroupMoments
    is_shrunk: NDArray[np.bool_]
    models: list[MixedModel]

    @property
    def criterion(self) -> float:
        return sum(model.criterion for model in self.models)


def _fit_one_context(rows: _Rows, local_model: str, group_effects: Any, seed: int) -> _OneContext:
    """One context with the features and the effects that the likelihood asks for."""
    first = np.array([0] if group_effects is not None else [], dtype=np.intp)
    linear = rows.linear_features
    candidates = [_fit_columns(rows, linear, [first] * rows.y.shape[1])]
    if local_model == "smooth":
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


def _choose_effects(one: _OneContext, candidates: Ints) -> _OneContext:
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


def _fit_columns(rows: _Rows, features: FeatureMap, columns: Sequence[Ints]) -> _OneContext:
    moments = rows.moments(features)
    is_shrunk = np.arange(features.n_features) >= features.n_linear
    models = [fit_mixed_model(moments.target(d), own, is_shrunk) for d, own in enumerate(columns)]
    return _OneContext(features, moments, is_shrunk, models)


def _add_cosines(features: FeatureMap, scale: float, seed: int) -> FeatureMap:
    rng, d = np.random.default_rng(seed), len(features.center)
    n_cosines = settings.CLOSED_FORM.n_cosines
    directions = rng.normal(size=(d, n_cosines)) / (scale * np.sqrt(d))
    return replace(features, directions=directions, phases=rng.uniform(0, 2 * np.pi, n_cosines))


@dataclass(frozen=True, eq=False)
class _Contexts:
    models: list[list[MixedModel]]  # by context and target
    priors: Floats  #                                                               (K,)
    scores: Floats  # minus log of prior times marginal likelihood                  (m, K)
    posterior: Floats  #                                                            (K, m)
    history: dict[str, list[Any]]
    converged: bool


def _fit_contexts(
    one: _OneContext, columns: Ints, posterior: Floats, evidence: float, is_hard: bool
) -> _Contexts:
    """Alternate between the contexts' models and the groups' posterior, from a given posterior."""
    limits, (K, m) = settings.CLOSED_FORM, posterior.shape
    targets = [one.moments.target(d) for d in range(one.moments.n_targets)]
    n_diagonal = len(columns) + int(one.is_shrunk.any())
    is_full = bool(len(columns)) and one.models[0].n_parameters > n_diagonal
    models: list[list[MixedModel]] = []
    history: dict[str, list[Any]] = {"loss": [], "changed": [], "usage": []}
    has_converged = False
    for _ in range(limits.max_rounds):
        models = [
            [
                _fit_context(
                    one, d, posterior[k], columns, is_full, models[k][d] if models else None
                )
                for d in range(len(targets))
            ]
            for k in range(K)
        ]
        priors = np.maximum(posterior.sum(1) / posterior.sum(), 1e-6)
        scores = np.stack(
            [
                -np.log(prior) - evidence * sum(map(log_likelihood, each, targets))
                for prior, each in zip(priors, models, strict=True)
            ],
            1,
        )
        least = scores.min(1, keepdims=True)
        density = np.exp(least - scores)
        new = (density / density.sum(1, keepdims=True)).T
        if is_hard:
            new = np.eye(K)[scores.argmin(1)].T
        changed = float((new.argmax(0) != posterior.argmax(0)).mean())
        history["loss"].append(float((least[:, 0] - np.log(density.sum(1))).mean()))
        history["changed"].append(changed)
        history["usage"].append(np.bincount(scores.argmin(1), minlength=K) / m)
        has_converged = float(np.abs(new - posterior).max()) < limits.max_change
        is_idle = new.sum(1) < limits.min_groups
        posterior = new
        if has_converged or K == 1:
            break
        if is_idle.any():  # a context without groups keeps its model and is not fitted again
            posterior = np.where(is_idle[:, None], 1.0 / m, posterior)
    return _Contexts(models, priors, scores, posterior, history, has_converged or K == 1)


def _fit_context(
    one: _OneContext,
    d: int,
    weight: Floats,
    columns: Ints,
    is_full: bool,
    start: MixedModel | None,
) -> MixedModel:
    """A target's model of one context, whose groups have these posterior weights (m,).

    A context with few groups has the variances of all groups, relative to its noise. With few rows,
    it has the mean of all groups as well, but for the columns that have effects.
    """
    limits, target, shared = settings.CLOSED_FORM, one.moments.target(d), one.models[d]
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
    return fit_mixed_model(
        target, columns, one.is_shrunk, None if is_all else weight, is_full, start
    )


def _make_state(
    fit: _Contexts,
    one: _OneContext,
    scaling: Scaling,
    structure: Structure | None,
    n_classes: int,
    evidence: float,
    sizes: Floats,
    seconds: float,
) -> FittedState:
    scale = scaling.scale
    coefficients = np.stack(
        [np.stack([model.coefficients for model in each], 1) for each in fit.models]
    )  #                                                                            (K, F, D)
    coefficients = coefficients * scale
    coefficients[:, 0] += scaling.center
    roots = np.stack([np.stack([model.root for model in each]) for each in fit.models])
    noise = np.array([[model.noise for model in each] for each in fit.models]) * scale**2
    columns = fit.models[0][0].columns
    local_models: LocalModels = ClosedFormModels(one.features, coefficients, scale, n_classes)
    variances = GroupEffects.without_groups(
        one.features, columns, roots, noise, fit.priors, evidence
    )
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
        init="one context" if structure is None else structure.explain(),
        selection=_describe(structure),
        effects=variances,
    )


def _describe(structure: Structure | None) -> dict[str, NDArray[Any]]:
    """The candidates as columns of `selection_`."""
    candidates = [] if structure is None else structure.candidates
    return {
        "n_contexts": np.array([c.n_contexts for c in candidates], dtype=int),
        "has_effects": np.array([c.has_effects for c in candidates], dtype=bool),
        "has_own_means": np.array([c.has_own_means for c in candidates], dtype=bool),
        "log_density": np.array([float(c.held_out.mean()) for c in candidates]),
        "bic": np.array([c.criterion for c in candidates]),
    }
