"""A pooled model and local models, fitted without a fold of rows, and what they predict.

There are three ways, by the kind of the local models:

group effects   the estimator is fitted again, with the same number of contexts
networks        new networks learn the contexts that are known, for a short time
scikit-learn    a model of each context is fitted to the rows of its groups
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from leaflearn.core.grouped_data import GroupedData
from leaflearn.engines.engine import choose_engine
from leaflearn.estimators.classifier import LeafClassifier
from leaflearn.estimators.regressor import LeafRegressor
from leaflearn.tabular import settings
from leaflearn.updates.fine_tuning import fit_new_models

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class FoldPredictions:
    """Predictions of rows that may not have been learned from; n of them, in K contexts.

    Parameters
    ----------
    pooled
        Of the pooled model, shape (n,).
    local
        Of each local model, shape (n, K). K is 1 where the models have already chosen the contexts
        of the groups from the rows that they learned from.
    losses
        The loss of each local model, comparable between contexts, shape (n, K).
    """

    pooled: NDArray[Any]
    local: NDArray[Any]
    losses: Floats


@dataclass(frozen=True, eq=False)
class FoldModels:
    """Fits models to some rows of a table and predicts others.

    Parameters
    ----------
    estimator
        The fitted estimator; one with scikit-learn models may be unfitted.
    X, y
        The rows of the table.
    group
        The group of each row, 0..m-1.
    contexts
        The context of each group, 0..K-1, each with groups, (m,).
    seed
        Seed of networks.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X, group = np.linspace(-1, 1, 40)[:, None], np.tile([0, 1], 20)
    >>> y = np.where(group == 0, 1.0, -1.0) * X[:, 0]
    >>> leaf = LeafRegressor(2, local_model=LinearRegression())
    >>> models = FoldModels(leaf, X, y, group, contexts=np.array([0, 1]), seed=0)
    >>> models.predict(learn=np.arange(39), ask=np.array([39])).local.round(6)
    array([[ 1., -1.]])
    """

    estimator: LeafClassifier | LeafRegressor
    X: NDArray[Any]
    y: NDArray[Any]
    group: Rows
    contexts: Rows
    seed: int

    @property
    def has_effects(self) -> bool:
        """Whether predictions include group effects."""
        state = getattr(self.estimator, "fitted_state_", None)
        if state is not None:
            return state.effects is not None
        return choose_engine(self.estimator.local_model) == "closed_form"

    @property
    def are_networks(self) -> bool:
        """Whether the local models are networks."""
        if self.has_effects:
            return False
        return choose_engine(self.estimator.local_model) in ("chosen", "mlp", "module")

    @property
    def n_contexts(self) -> int:
        """The number of contexts."""
        return int(self.contexts.max()) + 1

    def predict(self, learn: Rows, ask: Rows) -> FoldPredictions:
        """Learn from some rows, and predict others in every context."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit itself has warned
            if self.has_effects:
                return self._with_effects(learn, ask)
            return (self._networks if self.are_networks else self._refitted)(learn, ask)

    def _with_effects(self, learn: Rows, ask: Rows) -> FoldPredictions:
        X, y, group = self.X[learn], self.y[learn], self.group[learn]
        # A clone, because a fit of another table must not change the estimator.
        # The local model was chosen by all rows; it is not chosen again in every fold.
        name = getattr(self.estimator, "local_model_", self.estimator.local_model)
        one, all_contexts = (
            clone(self.estimator).set_params(verbose=0, local_model=name) for _ in range(2)
        )
        pooled = one.set_params(n_contexts=1, group_effects=None).fit(X, y, groups=group)
        local = all_contexts.set_params(n_contexts=self.n_contexts).fit(X, y, groups=group)
        own = local.predict(self.X[ask], groups=self.group[ask])
        none = np.zeros((len(ask), 1))  # the contexts are chosen already
        return FoldPredictions(pooled.predict(self.X[ask]), own[:, None], none)

    def _networks(self, learn: Rows, ask: Rows) -> FoldPredictions:
        check_is_fitted(self.estimator, "fitted_state_")
        like = self.estimator.fitted_state_.local_models
        classes = getattr(self.estimator, "classes_", None)
        target = self.y[:, None] if classes is None else np.searchsorted(classes, self.y)
        n_outputs = 1 if classes is None else len(classes)
        kept, group = np.unique(self.group[learn], return_inverse=True)
        data = GroupedData(
            *(self.X[learn], target[learn], group, np.arange(len(learn)), None),
            *(n_outputs, classes is not None),
        )

        def fit(contexts: Rows) -> Any:
            random_state = np.random.RandomState(self.seed)
            return fit_new_models(self.estimator, like, data, contexts, random_state, quickly=True)

        def finish(outputs: Floats) -> NDArray[Any]:
            return outputs[..., 0] if classes is None else classes[outputs.argmax(-1)]

        pooled = fit(np.zeros(len(kept), dtype=np.intp))
        local = pooled if self.n_contexts == 1 else fit(self.contexts[kept])
        return FoldPredictions(
            finish(pooled.outputs(self.X[ask])[:, 0]),
            finish(local.outputs(self.X[ask])),
            local.losses(self.X[ask], target[ask]),
        )

    def _refitted(self, learn: Rows, ask: Rows) -> FoldPredictions:
        quick = clone(self.estimator).set_params(n_contexts=1, n_init=1, callbacks=None, verbose=0)
        context = self.contexts[self.group[learn]]
        pooled, losses = self._fit_one(quick, learn, ask)
        if self.n_contexts == 1:
            return FoldPredictions(pooled, pooled[:, None], losses[:, None])
        each = [
            self._fit_one(quick, learn[context == k], ask) for k in range(self.n_contexts)
        ]  #                                                                        K times (n,)
        predictions, losses = (np.stack(columns, 1) for columns in zip(*each, strict=True))
        return FoldPredictions(pooled, predictions, losses)

    def _fit_one(
        self, quick: LeafClassifier | LeafRegressor, learn: Rows, ask: Rows
    ) -> tuple[NDArray[Any], Floats]:
        """Predictions and losses of a model of one context; a single label is predicted as it is.

        The loss of labels is minus the log of their probability.
        """
        X, y = self.X[ask], self.y[ask]
        labels = np.unique(self.y[learn])
        if len(labels) == 1:
            predictions = np.repeat(labels, len(ask))
            probability: Floats = (predictions == y).astype(np.float64)
        else:
            model = clone(quick).fit(self.X[learn], self.y[learn], groups=self.group[learn])
            predictions = np.asarray(model.predict(X))
            if isinstance(model, LeafClassifier):
                probability = _probability_of(y, model.classes_, model.predict_proba(X))
        if self.y.dtype.kind == "f":
            return predictions, np.square(predictions - y)
        return predictions, -np.log(np.maximum(probability, settings.TABLES.min_probability))


def _probability_of(y: NDArray[Any], classes: NDArray[Any], table: Floats) -> Floats:
    """The probability of each label in a table (n, C); 0 for labels that were not learned."""
    place = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return np.where(classes[place] == y, table[np.arange(len(y)), place], 0.0)
