"""The engine for classes with linear, smooth or boosted log-odds, and group effects on them.

    choose features and the columns with effects by least squares on indicators of the classes
    fit one context by working responses and Laplace's likelihood (`effects/logistic.py`)
    search contexts on the moments of its working responses (`initialization/structure.py`)
    keep the number of contexts under which held-out groups answer most probably

Two classes have one logistic model per context; more have one per class, of that class against the
others, and their probabilities are scaled to a sum of one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from leaflearn.core.grouped_data import GroupedData
from leaflearn.effects.group_effects import LogisticEffects
from leaflearn.effects.logistic import (
    Answers,
    LogisticFit,
    curvature,
    fit_by_laplace,
    fit_logistic,
    integrate_effects,
    working_moments,
)
from leaflearn.effects.restricted_likelihood import MixedModel, fit_mixed_model
from leaflearn.engines import settings
from leaflearn.engines.boosting import BoostedColumns
from leaflearn.engines.calibration import posterior as posterior_of
from leaflearn.engines.closed_form import (
    ClosedFormModels,
    Contexts,
    OneContext,
    Rows,
    alternate,
    average_errors,
    choose_local_model,
    fit_one_context,
    fold_rows,
    make_state,
    mean_of_groups,
    to_indicators,
)
from leaflearn.engines.fitted_state import FittedState
from leaflearn.engines.local_models import Scaling
from leaflearn.engines.parameters import Parameters
from leaflearn.initialization.structure import Candidate, choose_structure
from leaflearn.moments.group_moments import GroupMoments

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def fit_answers(
    parameters: Parameters, data: GroupedData, random_state: np.random.RandomState
) -> FittedState:
    """Fit local models of classes with group effects.

    Examples
    --------
    >>> from leaflearn import LeafClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, group = rng.normal(size=(800, 1)), np.repeat(np.arange(40), 20)
    >>> y = (rng.uniform(size=800) < expit(X[:, 0] + rng.normal(size=40)[group])).astype(int)
    >>> rows = GroupedData(X, y, group, np.arange(800), None, 2, True)
    >>> leaf = LeafClassifier(local_model="linear")
    >>> state = fit_answers(leaf, rows, np.random.RandomState(0))
    >>> state.n_contexts, bool(0.4 < state.effects.variances[0, 0, 0] < 1.6)
    (1, True)
    """
    began = time.perf_counter()
    seed = int(random_state.randint(2**31 - 1))
    indicators = to_indicators(data.y, data.n_classes)
    scaling = Scaling.of(indicators)
    common = np.sqrt(np.square(scaling.scale).mean())  # the classes are in one unit
    scaling = Scaling(scaling.center, np.full_like(scaling.scale, common))
    weight = None if data.weight is None else data.weight / data.weight.mean()
    X = np.asarray(data.X, dtype=np.float64)
    rows = Rows(X, scaling.apply(indicators), data.group, weight)
    choice = choose_local_model(rows, parameters.local_model, parameters.group_effects, seed)
    one, boosted = choice.one, None
    if choice.name == "boosting":  # trees of indicators helped to choose; those of log-odds stay
        one = fit_one_context(rows, "smooth", parameters.group_effects, seed)
    task = _Task.of(one, rows, indicators, float(common))
    if choice.name == "boosting":
        boosted, training = task.boost(rows, seed)
        rows = replace(rows, boosted=training)
        task = _Task.of(one, rows, indicators, float(common))
    n_contexts = None if parameters.n_contexts == "auto" else int(parameters.n_contexts)
    is_hard = parameters.allocation == "hard"
    judged, chosen = [task.judge(np.ones((1, rows.n_groups)), is_hard)], 0
    was_searched = n_contexts != 1 and rows.n_groups > 2
    if was_searched:
        rng = np.random.default_rng(seed)
        for candidate in task.search(n_contexts, parameters.group_effects is not None, rng):
            judged.append(task.judge(candidate.posterior, is_hard, candidate.has_own_means))
            if n_contexts is not None or _is_better(judged[-1], judged[chosen]):
                chosen = len(judged) - 1
                continue
            n_failed = len(judged) - 1 - chosen
            if n_failed >= settings.ANSWERS.patience or _is_worse(judged[-1], judged[chosen]):
                break
    fit = judged[chosen].fit
    local_models = ClosedFormModels(
        one.features, fit.coefficients, np.ones(indicators.shape[1]), data.n_classes, boosted
    )
    noise = np.ones((len(fit.models), indicators.shape[1]))
    effects = LogisticEffects.without_groups(
        one.features, task.columns, fit.roots, noise, fit.priors, task.evidence
    )
    sizes = np.bincount(data.group, minlength=rows.n_groups).astype(np.float64)
    selection = {
        "n_contexts": np.array([len(each.fit.models) for each in judged]),
        "has_effects": np.full(len(judged), len(task.columns) > 0),
        "log_density": np.array([float(each.held_out.mean()) for each in judged]),
    }
    selection |= choice.describe()
    if parameters.local_model is None:
        selection |= {"row_error": average_errors(task.held_out_errors(fit, seed))}
    has_effects = len(task.columns) > 0
    init = _explain(judged, chosen, has_effects) if was_searched else "one context"
    seconds = time.perf_counter() - began
    return make_state(fit, local_models, effects, init, selection, sizes, seconds)


@dataclass(frozen=True, eq=False)
class _Judged:
    """Contexts, and the log density of every group under a fit without it."""

    fit: Contexts
    held_out: Floats  #                                                             (m,)


def _is_better(more: _Judged, fewer: _Judged) -> bool:
    """Whether held-out groups answer significantly more probably with more contexts."""
    limits, (gain, error) = settings.ANSWERS, _gain(more, fewer)
    n_groups = np.bincount(more.fit.scores.argmin(1), minlength=len(more.fit.models))
    has_groups = n_groups.min() >= settings.CLOSED_FORM.min_chosen_groups
    return bool(has_groups and gain > max(limits.min_gain, limits.n_errors * error))


def _is_worse(more: _Judged, fewer: _Judged) -> bool:
    """Whether held-out groups answer significantly less probably with more contexts."""
    gain, error = _gain(more, fewer)
    return gain < -settings.ANSWERS.n_errors * error


def _gain(more: _Judged, fewer: _Judged) -> tuple[float, float]:
    """Log probability that more contexts add to the answers of all groups; its standard error."""
    gain = more.held_out - fewer.held_out
    return float(gain.sum()), float(gain.std(ddof=1) * np.sqrt(len(gain)))


def _explain(judged: Sequence[_Judged], chosen: int, has_effects: bool) -> str:
    n_contexts = len(judged[chosen].fit.models)
    if n_contexts == 1:
        how = "groups differ by degree" if has_effects else "groups do not differ"
        return f"{how}: more contexts do not explain them better"
    gain = (judged[chosen].held_out - judged[0].held_out).mean()
    besides = "one context with group effects" if has_effects else "one context"
    return (
        f"{n_contexts} contexts raise the log probability of the answers of a held-out group by "
        f"{gain:.2g} over {besides}"
    )


@dataclass(frozen=True, eq=False)
class _ContextFits:
    """Contexts, with the log-odds of all rows; and one context with the same variances."""

    found: Contexts
    fits: list[list[LogisticFit]]  # by context and target
    shared: list[LogisticFit]  # by target

    @property
    def has_own_means(self) -> bool:
        """Whether contexts differ in the whole mean, not only in the columns with effects."""
        return self.found.has_own_means


def _loss(fitted: _ContextFits) -> float:
    """Minus the log density of a group, on average."""
    return float(fitted.found.history["loss"][-1])


@dataclass(frozen=True, eq=False)
class _Task:
    """What all fits to these answers share; rows are sorted by group."""

    answers: list[Answers]  # of each target
    design: Floats  #                                                               (N, F)
    columns: Ints
    is_shrunk: NDArray[np.bool_]
    is_full: bool
    evidence: float
    one: list[LogisticFit]  # one context, by target

    @classmethod
    def of(cls, one: OneContext, rows: Rows, indicators: Floats, scale: float) -> _Task:
        m, D = rows.n_groups, indicators.shape[1]
        answers = [Answers.of(indicators[:, d], rows.group, m, rows.weight) for d in range(D)]
        design = rows.design(one.features)[answers[0].order]
        columns = one.models[0].columns
        position = np.arange(design.shape[1])
        n_linear, n_features = one.features.n_linear, one.features.n_features
        is_shrunk = (position >= n_linear) & (position < n_features)
        n_diagonal = len(columns) + int(one.is_shrunk.any())
        is_full = bool(len(columns)) and one.models[0].n_parameters > n_diagonal
        evidence = 1.0 if D == 1 else (D - 1) / D
        how = columns, is_shrunk, None, is_full, None
        # Least squares on indicators finds the ratios of the variances well; log-odds change by one
        # over the variance of an indicator when its mean changes by one.
        roots = [
            model.root * np.sqrt(max(model.noise, 1e-6)) * scale / max(each.y.var(), 1e-6)
            for model, each in zip(one.models, answers, strict=True)
        ]
        fits = [
            fit_by_laplace(each, design, *how, root)
            for each, root in zip(answers, roots, strict=True)
        ]
        return cls(answers, design, columns, is_shrunk, is_full, evidence, fits)

    def boost(self, rows: Rows, seed: int) -> tuple[BoostedColumns, Floats]:
        """Trees fitted to the working responses without effects; their columns, out of fold."""
        z, back = self.design[:, self.columns], np.argsort(self.answers[0].order)
        targets, weights = [], []
        for answers, fit in zip(self.answers, self.one, strict=True):
            mean = self.design @ fit.model.coefficients
            effects = integrate_effects(answers, z, mean, fit.model.root)[0]
            added = (z * effects[answers.group]).sum(1)
            weight = curvature(mean + added)
            response = mean + (answers.y - expit(mean + added)) / weight
            targets.append(response[back])
            weights.append((weight * answers.weight)[back])
        return BoostedColumns.fit(
            rows.X, np.stack(targets, 1), rows.group, np.stack(weights, 1), seed
        )

    def search(
        self, n_contexts: int | None, may_have_effects: bool, rng: np.random.Generator
    ) -> list[Candidate]:
        """Numbers of contexts that may explain working responses better, the best of each."""
        free = _free_targets(self.answers)
        parts = [(self.answers[d], self.one[d].eta) for d in free]
        weight = np.mean([curvature(eta) for _, eta in parts], 0)
        responses = [eta + (answers.y - expit(eta)) / weight for answers, eta in parts]
        first = self.answers[0]
        found = GroupMoments.of(
            self.design,
            np.stack(responses, 1),
            first.group,
            first.n_groups,
            weight * first.weight,
        )
        moments = GroupMoments(found.products, first.sum_by_group(first.weight), len(free))
        models = [self.one[d].model for d in free]
        how = self.is_shrunk, n_contexts, may_have_effects, rng, True
        structure = choose_structure(moments, models, *how)
        if n_contexts is not None:
            return [structure.chosen] if n_contexts > 1 else []
        best: dict[int, Candidate] = {}
        for candidate in sorted(structure.candidates, key=lambda each: -each.criterion):
            best[candidate.n_contexts] = candidate
        # Labels decide, so a second context is tried without a margin.
        has_second = 2 in best and best[2].criterion < best[1].criterion
        most = max(structure.chosen.n_contexts, 2 if has_second else 1)
        return [best[n] for n in range(2, most + 1)]

    def judge(self, posterior: Floats, is_hard: bool, has_own_means: bool = True) -> _Judged:
        """Fit contexts from a posterior (K, m), and measure the density of held-out groups."""
        if not len(self.columns):  # contexts without effects have means of their own
            best = self._fit_contexts(posterior, self.one, True, is_hard)
            return _Judged(best.found, self._hold_out(best))
        how, n_rounds = (has_own_means, is_hard), settings.ANSWERS.n_rounds
        one = self._fit_contexts(posterior, self.one, *how, n_rounds)
        best = self._improve_variances(one, *how)
        # The same treatment for one context, so that it does not lose by its variances alone.
        gain = (_loss(one) - _loss(best)) * posterior.shape[1]
        if len(posterior) == 1 and gain < settings.ANSWERS.min_gain:
            best = one
        best = self._fit_contexts(best.found.posterior, best.shared, *how)
        return _Judged(best.found, self._hold_out(best))

    def _improve_variances(
        self, best: _ContextFits, has_own_means: bool, is_hard: bool
    ) -> _ContextFits:
        """Variances from working responses within the contexts, and a common factor of them all."""
        limits, how = settings.ANSWERS, (has_own_means, is_hard, settings.ANSWERS.n_rounds)
        for _ in range(limits.n_variance_rounds):
            best = self._fit_contexts(best.found.posterior, self._pool_variances(best), *how)
        for factor in (limits.effect_factor, 1 / limits.effect_factor):
            for _ in range(limits.max_scalings):
                scaled = [each.scale_effects(factor) for each in best.shared]
                other = self._fit_contexts(best.found.posterior, scaled, *how)
                if not _loss(other) < _loss(best):
                    break
                best = other
        return best

    def _pool_variances(self, fitted: _ContextFits) -> list[LogisticFit]:
        """One context with the variances of effects within all contexts, by target.

        All contexts have the same variances, so that none differs from another in spread alone.
        """
        own, pooled = np.arange(len(self.columns)), []
        weight = fitted.found.posterior.ravel()
        for d, (answers, shared) in enumerate(zip(self.answers, fitted.shared, strict=True)):
            parts = [
                working_moments(answers, self.design, each[d].eta).reduced(
                    self.columns, each[d].model.coefficients
                )
                for each in fitted.fits
            ]
            moments = GroupMoments(
                np.concatenate([part.products for part in parts]),
                np.concatenate([part.sizes for part in parts]),
            )
            found = fit_mixed_model(moments, own, None, weight, self.is_full, noise=1.0)
            pooled.append(replace(shared, model=replace(shared.model, root=found.root)))
        return pooled

    def _fit_contexts(
        self,
        posterior: Floats,
        shared: list[LogisticFit],
        has_own_means: bool,
        is_hard: bool,
        n_rounds: int | None = None,
    ) -> _ContextFits:
        fits: list[list[LogisticFit]] = []

        def fit(weights: Floats, _: list[list[MixedModel]]) -> list[list[MixedModel]]:
            nonlocal fits
            fits = [
                [
                    self._fit_context(d, weight, shared[d], fits[k][d] if fits else None)
                    if has_own_means
                    else self._fit_offset(d, weight, shared[d])
                    for d in range(len(self.answers))
                ]
                for k, weight in enumerate(weights)
            ]
            return [[each.model for each in of_context] for of_context in fits]

        found = alternate(posterior, fit, self._score, is_hard, n_rounds)
        return _ContextFits(replace(found, has_own_means=has_own_means), fits, shared)

    def _fit_context(
        self, d: int, weight: Floats, shared: LogisticFit, before: LogisticFit | None
    ) -> LogisticFit:
        """A target's model of one context, whose groups have these posterior weights (m,)."""
        limits, answers = settings.CLOSED_FORM, self.answers[d]
        if np.allclose(weight, 1.0) and shared is self.one[d]:
            return shared
        n_rows = float(weight @ answers.sum_by_group(answers.weight))
        if n_rows < limits.rows_per_coefficient * int((~self.is_shrunk).sum()):
            return self._fit_offset(d, weight, shared)
        how = self.columns, self.is_shrunk, weight, self.is_full
        n_steps = None if before is None else settings.ANSWERS.n_steps
        return fit_logistic(answers, self.design, *how, before or shared, True, n_steps)

    def held_out_errors(self, fit: Contexts, seed: int) -> Floats:
        """Squared error of the probabilities of held-out rows by group, as `held_out_errors`.

        Rows are predicted in the contexts and with the effects that the others of their group
        suggest; in units of the variance of the indicators.
        """
        first, n_folds = self.answers[0], settings.CLOSED_FORM.n_row_folds
        fold, z = fold_rows(first.group, n_folds, seed), self.design[:, self.columns]
        y = np.stack([answers.y for answers in self.answers], 1)  #                 (N, D)
        predicted = np.full_like(y, np.nan)
        for f in range(n_folds):
            held, is_learned = np.flatnonzero(fold == f), fold != f
            scores = np.tile(-np.log(fit.priors), (first.n_groups, 1))
            each = np.empty((len(held), len(fit.models), y.shape[1]))
            for k, of_context in enumerate(fit.models):
                for d, (model, answers) in enumerate(zip(of_context, self.answers, strict=True)):
                    # The mean is that of all rows; contexts and effects are those of the others.
                    rest = replace(answers, weight=answers.weight * is_learned)
                    mean = self.design @ model.coefficients
                    effects, _, likelihood = integrate_effects(rest, z, mean, model.root)
                    scores[:, k] -= self.evidence * likelihood
                    each[:, k, d] = mean[held] + (z[held] * effects[first.group[held]]).sum(1)
            probability = posterior_of(scores)[first.group[held]]
            predicted[held] = np.einsum("nk,nkd->nd", probability, expit(each))
        errors = np.square(y - predicted).sum(1) / max(y.var(0).sum(), 1e-12)
        return mean_of_groups(errors, first.group)

    def _fit_offset(self, d: int, weight: Floats, shared: LogisticFit) -> LogisticFit:
        """A context with the mean of all groups, but for the columns with effects."""
        answers = self.answers[d]
        kept = self.columns if len(self.columns) else np.array([0], dtype=np.intp)
        own = np.arange(len(self.columns))
        start = replace(
            shared, model=replace(shared.model, columns=own, coefficients=np.zeros(len(kept)))
        )
        mean = self.design @ shared.model.coefficients
        none = np.zeros(len(kept), dtype=bool)
        design = self.design[:, kept]
        how = own, none, weight, self.is_full, start, True, None
        found = fit_logistic(answers, design, *how, mean)
        coefficients = shared.model.coefficients.copy()
        coefficients[kept] += found.model.coefficients
        model = replace(found.model, columns=self.columns, coefficients=coefficients)
        return LogisticFit(model, found.eta)

    def _score(self, models: Sequence[Sequence[MixedModel]]) -> Floats:
        """Minus the log marginal likelihood of each group in each context, (m, K)."""
        z = self.design[:, self.columns]
        columns = []
        for of_context in models:
            parts = [
                integrate_effects(answers, z, self.design @ model.coefficients, model.root)[2]
                for answers, model in zip(self.answers, of_context, strict=True)
            ]
            columns.append(-self.evidence * np.sum(parts, 0))
        return np.stack(columns, 1)

    def _hold_out(self, fitted: _ContextFits) -> Floats:
        """Log density of each group under a fit without it, with the same variances, (m,)."""
        limits, m = settings.ANSWERS, self.answers[0].n_groups
        fold = np.random.default_rng(0).permutation(m) % min(limits.n_folds, m)
        density, targets = np.zeros(m), range(len(self.answers))
        for f in np.unique(fold):
            is_learned = (fold != f).astype(np.float64)
            learned = fitted.found.posterior * is_learned
            if fitted.has_own_means:
                fits = [
                    [self._fit_again(d, weight, of_context[d]) for d in targets]
                    for weight, of_context in zip(learned, fitted.fits, strict=True)
                ]
            else:
                shared = [self._fit_again(d, is_learned, fitted.shared[d]) for d in targets]
                fits = [
                    [self._fit_offset(d, weight, shared[d]) for d in targets] for weight in learned
                ]
            priors = np.maximum(learned.sum(1), 1e-6)
            models = [[fit.model for fit in of_context] for of_context in fits]
            log_joint = np.log(priors / priors.sum()) - self._score(models)
            density[fold == f] = logsumexp(log_joint, 1)[fold == f]
        return density

    def _fit_again(self, d: int, weight: Floats, fit: LogisticFit) -> LogisticFit:
        """The same to groups of other weights (m,), in a few steps."""
        how = self.columns, self.is_shrunk, weight, self.is_full, fit
        n_steps = settings.ANSWERS.n_held_out_steps
        return fit_logistic(
            self.answers[d], self.design, *how, keep_variances=True, n_steps=n_steps
        )


def _free_targets(answers: Sequence[Answers]) -> list[int]:
    """All targets, but for one of several classes, which the others determine."""
    if len(answers) == 1:
        return [0]
    largest = int(np.argmax([each.y.mean() for each in answers]))
    return [d for d in range(len(answers)) if d != largest]
