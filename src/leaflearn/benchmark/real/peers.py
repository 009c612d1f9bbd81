"""What a user would take instead of leaflearn, each with settings fixed beforehand.

A peer learns from rows with groups. It predicts rows of the same groups, and rows of new groups of
which a few are labelled. The settings are listed in docs/how-to/compare-on-real-tables.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leaflearn.benchmark.real.contract import (
    Fitted,
    Floats,
    Ints,
    Method,
    MissingProgramError,
    NotApplicableError,
    Rows,
)
from leaflearn.benchmark.real.mixed import (
    Design,
    Mixed,
    Scaling,
    as_columns,
    choose_slopes,
    expit,
)
from leaflearn.benchmark.real.r_programs import run_r

MIN_ROWS = 5  # of a group that gets its own linear model; with fewer, its mean
N_FOLDS = 5  # of the target encoding
PEERS: dict[str, Method] = {}


def register(name: str) -> Callable[[Method], Method]:
    """Enter a peer into `PEERS`.

    Examples
    --------
    >>> @register("guess")
    ... def guess(rows):
    ...     raise NotApplicableError("nobody knows")
    >>> PEERS.pop("guess") is guess
    True
    """

    def add(fit: Method) -> Method:
        PEERS[name] = fit
        return fit

    return add


# Pooled models


@dataclass(frozen=True, eq=False)
class Pooled:
    """One model that ignores groups."""

    model: Any
    n_classes: int

    def known(self, X: Floats, group: Ints) -> Floats:
        """Predict rows, whatever their group."""
        return predict_with(self.model, X, self.n_classes)

    def new(self, labelled: Rows, X: Floats, group: Ints) -> Floats:
        """Predict rows; the labelled ones are not used."""
        return self.known(X, group)


def predict_with(model: Any, X: Floats, n_classes: int) -> Floats:
    """Values (N,), or probabilities of all classes (N, C), also of those that a model never saw.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> model = DummyClassifier(strategy="prior").fit(np.zeros((2, 1)), [0, 2])
    >>> predict_with(model, np.zeros((1, 1)), n_classes=3)
    array([[0.5, 0. , 0.5]])
    """
    if not n_classes:
        return np.asarray(model.predict(X))
    shares = np.zeros((len(X), n_classes))
    shares[:, model.classes_.astype(int)] = model.predict_proba(X)
    return shares


def _make_linear(n_classes: int) -> Any:
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = LogisticRegression(max_iter=1000) if n_classes else RidgeCV(np.logspace(-3, 3, 13))
    return make_pipeline(StandardScaler(), model)


def _make_boosting(n_classes: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if n_classes else HistGradientBoostingRegressor
    return kind(learning_rate=0.05, max_iter=150, max_leaf_nodes=15, random_state=0)


@register("pooled linear")
def fit_pooled_linear(rows: Rows) -> Fitted:
    """Ridge or logistic regression that ignores groups."""
    return Pooled(_make_linear(rows.n_classes).fit(rows.X, rows.y), rows.n_classes)


@register("pooled boosting")
def fit_pooled_boosting(rows: Rows) -> Fitted:
    """Gradient boosting that ignores groups."""
    return Pooled(_make_boosting(rows.n_classes).fit(rows.X, rows.y), rows.n_classes)


# One model for each group


@dataclass(frozen=True, eq=False)
class PerGroup:
    """A linear model for each group; groups with few rows or one class get their mean."""

    models: dict[int, Any]
    pooled: Any
    n_classes: int

    def known(self, X: Floats, group: Ints) -> Floats:
        """Predict rows by the model of their group; without one, by the pooled model."""
        out = predict_with(self.pooled, X, self.n_classes)
        for g in np.unique(group):
            if g in self.models:
                out[group == g] = predict_with(self.models[g], X[group == g], self.n_classes)
        return out

    def new(self, labelled: Rows, X: Floats, group: Ints) -> Floats:
        """Predict rows by models of the labelled rows alone."""
        return replace(self, models=_fit_groups(labelled)).known(X, group)


def _fit_groups(rows: Rows) -> dict[int, Any]:
    from sklearn.dummy import DummyClassifier, DummyRegressor

    models = {}
    for g in np.unique(rows.group):
        mine = rows.group == g
        if mine.sum() >= MIN_ROWS and len(np.unique(rows.y[mine])) > 1:
            model = _make_linear(rows.n_classes)
        else:
            model = DummyClassifier(strategy="prior") if rows.n_classes else DummyRegressor()
        models[int(g)] = model.fit(rows.X[mine], rows.y[mine])
    return models


@register("one model a group")
def fit_one_model_a_group(rows: Rows) -> Fitted:
    """A linear model for each group."""
    pooled = _make_linear(rows.n_classes).fit(rows.X, rows.y)
    return PerGroup(_fit_groups(rows), pooled, rows.n_classes)


# Target encoding


@dataclass(frozen=True, eq=False)
class Encoded:
    """Boosting with the shrunk mean target of the group as a further column, or one per class."""

    model: Any
    prior: Floats  #                                                                (C,)
    weight: float
    means: dict[int, Floats]
    n_classes: int

    def known(self, X: Floats, group: Ints) -> Floats:
        """Predict rows with the mean of their group; without one, with that of all rows."""
        code = np.stack([self.means.get(int(g), self.prior) for g in group])
        return predict_with(self.model, np.hstack([X, code]), self.n_classes)

    def new(self, labelled: Rows, X: Floats, group: Ints) -> Floats:
        """Predict rows with the means of the labelled rows."""
        means = _shrunk_means(as_columns(labelled), labelled.group, self.prior, self.weight)
        return replace(self, means=means).known(X, group)


def _shrunk_means(Y: Floats, group: Ints, prior: Floats, weight: float) -> dict[int, Floats]:
    return {
        int(g): (Y[group == g].sum(0) + weight * prior) / ((group == g).sum() + weight)
        for g in np.unique(group)
    }


@register("target-encoded boosting")
def fit_target_encoded_boosting(rows: Rows) -> Fitted:
    """Boosting on the inputs and the group's mean target, which is computed out of fold."""
    Y, rng = as_columns(rows), np.random.default_rng(0)
    prior = Y.mean(0)
    within = sum(
        Y[rows.group == g].var(0).sum() * (rows.group == g).sum() for g in np.unique(rows.group)
    ) / len(Y)
    weight = float(np.clip(within / max(Y.var(0).sum() - within, 1e-3 * within), 0.5, 100))
    fold, code = rng.integers(N_FOLDS, size=len(Y)), np.zeros_like(Y)
    for f in range(N_FOLDS):
        means = _shrunk_means(Y[fold != f], rows.group[fold != f], prior, weight)
        code[fold == f] = [means.get(int(g), prior) for g in rows.group[fold == f]]
    model = _make_boosting(rows.n_classes).fit(np.hstack([rows.X, code]), rows.y)
    means = _shrunk_means(Y, rows.group, prior, weight)
    return Encoded(model, prior, weight, means, rows.n_classes)


# Mixed models


@register("lme4")
def fit_lme4(rows: Rows) -> Fitted:
    """Linear or logistic mixed model with uncorrelated random slopes (REML; glmer nAGQ=0)."""
    if rows.n_classes > 2:
        raise NotApplicableError("lme4 has no model for several classes")
    scaling, slopes, is_binary = Scaling.of(rows.X), choose_slopes(rows), rows.n_classes == 2
    found = run_r("lme4", scaling(rows.X), rows.y, rows.group, is_binary=is_binary, slopes=slopes)
    beta = np.array(found["beta"], dtype=float)  #                                  (1 + d,)
    effects = {
        int(g): np.array(u, dtype=float)
        for g, u in zip(found["groups"], found["effects"], strict=True)
    }

    def mean(X: Floats) -> Floats:
        return np.asarray(beta[0] + scaling(X) @ beta[1:])

    D = np.diag(np.array(found["variances"], dtype=float))
    noise = float(found["noise"][0])
    return Mixed(mean, Design(scaling, slopes), D, noise, effects, rows.n_classes)


@register("gpboost")
def fit_gpboost(rows: Rows) -> Fitted:
    """Boosting with random intercepts; the number of trees by four-fold cross-validation."""
    return _fit_gpboost(rows, np.empty(0, dtype=np.intp))


@register("gpboost slopes")
def fit_gpboost_with_slopes(rows: Rows) -> Fitted:
    """The same with random slopes."""
    return _fit_gpboost(rows, choose_slopes(rows))


def _fit_gpboost(rows: Rows, slopes: Ints) -> Fitted:
    if rows.n_classes > 2:
        raise NotApplicableError("GPBoost has no mixed model for several classes")
    try:
        import gpboost as gpb
    except ImportError:
        raise MissingProgramError("gpboost is not installed") from None
    scaling = Scaling.of(rows.X)
    X = scaling(rows.X)
    # Its steps become small where targets have a large variance, so that values are standardized.
    center, unit = (0.0, 1.0) if rows.n_classes else (rows.y.mean(), rows.y.std())
    likelihood = "bernoulli_logit" if rows.n_classes else "gaussian"

    def make_model() -> Any:
        coefficients: dict[str, Any] = {}
        if len(slopes):
            coefficients = {
                "group_rand_coef_data": X[:, slopes],
                "ind_effect_group_rand_coef": [1] * len(slopes),
            }
        group = rows.group.astype(str)
        return gpb.GPModel(
            group_data=group, likelihood=likelihood, num_parallel_threads=1, **coefficients
        )

    params = {
        "learning_rate": 0.05,
        "max_depth": 5,
        "num_leaves": 31,
        "min_data_in_leaf": 10,
        "lambda_l2": 1.0,
        "verbose": -1,
        "num_threads": 1,
    }
    data = gpb.Dataset(X, (rows.y.astype(float) - center) / unit, free_raw_data=False)
    tried = make_model()
    tried.set_optim_params({"maxit": 100})
    found = gpb.cv(
        params,
        data,
        gp_model=tried,
        num_boost_round=300,
        early_stopping_rounds=10,
        nfold=4,
        seed=0,
        verbose_eval=False,
        stratified=False,
    )
    n_rounds = max(1, int(np.argmin(next(iter(found.values())))) + 1)
    model = make_model()
    booster = gpb.train(params, data, n_rounds, gp_model=model, verbose_eval=False)
    parameters = np.asarray(model.get_cov_pars()).ravel()
    noise, variances = (1.0, parameters) if rows.n_classes else (parameters[0], parameters[1:])

    def mean(X: Floats) -> Floats:
        X = scaling(X)
        nobody = np.full(len(X), "a group that does not exist")
        coefficients = {"group_rand_coef_data_pred": X[:, slopes]} if len(slopes) else {}
        out = booster.predict(X, group_data_pred=nobody, pred_latent=True, **coefficients)
        return np.asarray(center + unit * out["fixed_effect"])

    D = unit**2 * np.diag(np.maximum(variances, 1e-9))
    noise = float(unit**2 * noise)
    without = Mixed(mean, Design(scaling, slopes), D, noise, {}, rows.n_classes)
    return without.with_groups(rows)


@register("merf")
def fit_merf(rows: Rows) -> Fitted:
    """Random forest with random effects; 100 trees, ten iterations."""
    if rows.n_classes:
        raise NotApplicableError("MERF predicts values")
    MERF = _import_merf()
    import pandas as pd  # type: ignore[import-untyped]
    from sklearn.ensemble import RandomForestRegressor

    scaling = Scaling.of(rows.X)
    design = Design(scaling, choose_slopes(rows))
    model = MERF(RandomForestRegressor(100, min_samples_leaf=3, random_state=0), max_iterations=10)
    model.fit(scaling(rows.X), design(rows.X), pd.Series(rows.group), rows.y)
    effects = {int(g): np.asarray(u, dtype=float) for g, u in model.trained_b.iterrows()}

    def mean(X: Floats) -> Floats:
        return np.asarray(model.trained_fe_model.predict(scaling(X)))

    D = np.asarray(model.D_hat_history[-1], dtype=float)
    return Mixed(mean, design, D, float(model.sigma2_hat_history[-1]), effects)


def _import_merf() -> Any:
    """The class; the package sends its progress to the root logger, which stays as it was."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        from merf import MERF
    except ImportError:
        raise MissingProgramError("merf is not installed") from None
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    return MERF


# Mixtures of regressions


@register("flexmix")
def fit_flexmix(rows: Rows) -> Fitted:
    """Mixture of linear or logistic regressions over groups, up to five components by BIC."""
    if rows.n_classes > 2:
        raise NotApplicableError("flexmix is run for values and two classes")
    scaling, none = Scaling.of(rows.X), np.array([], dtype=np.intp)
    X = scaling(rows.X)
    kept = independent_columns(X)  # flexmix fails on columns that others determine
    found = run_r(
        "flexmix", X[:, kept], rows.y, rows.group, is_binary=rows.n_classes == 2, slopes=none
    )
    beta = np.zeros((len(found["beta"]), 1 + X.shape[1]))  #                        (K, 1 + d)
    beta[:, [0, *(kept + 1)]] = np.nan_to_num(np.array(found["beta"], dtype=float))
    noise = np.array(found["sigma"], dtype=float) ** 2
    prior = np.array(found["prior"], dtype=float)
    return Mixture(beta, noise, prior, scaling, {}, rows.n_classes).with_groups(rows)


def independent_columns(X: Floats) -> Ints:
    """Columns that are linearly independent of each other and of a constant.

    Examples
    --------
    >>> x = np.arange(4.0)
    >>> len(independent_columns(np.column_stack([x, 2 * x + 1, x**2])))
    2
    """
    from scipy.linalg import qr

    _, root, order = qr(X - X.mean(0), mode="economic", pivoting=True)
    size = np.abs(np.diag(root))
    return np.sort(order[: int((size > 1e-7 * size[0]).sum())]).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Regressions, and the posterior of each group over them.

    Parameters
    ----------
    beta, noise, prior
        Intercepts and slopes (K, 1 + d), variances of the residuals (K,), and shares (K,).
    scaling
        Of the inputs.
    posteriors
        The probability of each component for each group that was learnt from (K,).
    n_classes
        0 or 2.
    """

    beta: Floats
    noise: Floats
    prior: Floats
    scaling: Scaling
    posteriors: dict[int, Floats]
    n_classes: int = 0

    def known(self, X: Floats, group: Ints) -> Floats:
        """Predict rows by the average over the posterior of their group."""
        weights = np.stack([self.posteriors.get(int(g), self.prior) for g in group], 1)  # (K, N)
        average = (weights * self._predict_each(X)).sum(0)
        return np.stack([1 - average, average], 1) if self.n_classes else average

    def new(self, labelled: Rows, X: Floats, group: Ints) -> Floats:
        """Predict rows of new groups by the posterior that their labelled rows give."""
        return self.with_groups(labelled).known(X, group)

    def with_groups(self, rows: Rows) -> Mixture:
        """The same mixture with the posteriors of these groups."""
        each = self._predict_each(rows.X)  #                                        (K, N)
        if self.n_classes:
            log = np.log(np.clip(np.where(rows.y == 1, each, 1 - each), 1e-9, 1))
        else:
            log = -0.5 * ((rows.y - each) ** 2 / self.noise[:, None] + np.log(self.noise)[:, None])
        posteriors = {}
        for g in np.unique(rows.group):
            total = np.log(self.prior) + log[:, rows.group == g].sum(1)
            weight = np.exp(total - total.max())
            posteriors[int(g)] = weight / weight.sum()
        return replace(self, posteriors=posteriors)

    def _predict_each(self, X: Floats) -> Floats:
        eta = self.beta[:, :1] + self.beta[:, 1:] @ self.scaling(X).T  #            (K, N)
        return expit(eta) if self.n_classes else eta
