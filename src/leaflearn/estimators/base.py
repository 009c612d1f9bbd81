"""What the regressor and the classifier share: parameters, fitting, and asking the fitted contexts."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from leaflearn.conflict.start import Start
from leaflearn.core.allocation import Rule
from leaflearn.core.losses import Loss
from leaflearn.core.training import ROWS_AT_ONCE, Callback, Schedule
from leaflearn.data.grouping import as_labels, encode_groups, find_groups, position_in_group
from leaflearn.estimators.engines import ENGINES, Examples, Fitting, choose_engine, find_start_for
from leaflearn.estimators.identification import Identification, posterior
from leaflearn.estimators.inputs import check_rows, check_weights, check_X
from leaflearn.estimators.parameters import check_parameters
from leaflearn.recipe import MakeOptimizer, RecoveryWarning


class BaseLeaf(BaseEstimator):
    """K local models, and the contexts they were found to answer for. See `LeafRegressor` and `LeafClassifier`."""

    # Groups travel through pipelines and searches without being asked for: without them there is nothing to find.
    __metadata_request__fit = {"groups": True}
    __metadata_request__score = {"groups": True}

    def __init__(
        self,
        n_contexts: int | str = 2,
        *,
        local_model: Any = None,
        allocation: str | Rule = "annealed",
        temperature: float | str = "auto",
        init: str = "auto",
        n_init: int | str = "auto",
        loss: str | Loss = "auto",
        optimizer: str | MakeOptimizer = "adamw",
        learning_rate: float = 0.003,
        schedule: str | Schedule = "cosine",
        max_epochs: int | str = "auto",
        groups_per_step: int = 32,
        rows_per_group: int | None = 32,
        max_grad_norm: float | None = None,
        tol: float = 1e-4,
        n_iter_no_change: int | None = 20,
        refresh: bool = True,
        out_of_fold: bool | str = "auto",
        callbacks: Sequence[Callback] | None = None,
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_contexts = n_contexts
        self.local_model = local_model
        self.allocation = allocation
        self.temperature = temperature
        self.init = init
        self.n_init = n_init
        self.loss = loss
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.max_epochs = max_epochs
        self.groups_per_step = groups_per_step
        self.rows_per_group = rows_per_group
        self.max_grad_norm = max_grad_norm
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.refresh = refresh
        self.out_of_fold = out_of_fold
        self.callbacks = callbacks
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Find the contexts and fit a local model for each.

        Parameters
        ----------
        X : array, frame or tensor of shape (n_samples, n_features)
            Inputs; pictures of shape (n_samples, channels, height, width) with a module factory as `local_model`, sparse matrices, frames
            with text and missing values with scikit-learn models that take them.
        y : array of shape (n_samples,) or, in regression, (n_samples, n_outputs)
            Targets.
        groups : array of shape (n_samples,), default=None
            Rows with the same label are known to share one hidden context: the annotator, site, session or device. Without it every row is
            a group of its own, which identifies contexts only in special cases; a warning says so.
        sample_weight : array of shape (n_samples,), default=None
            Weighs rows inside their group; every group has the same mass. Rows of weight 0 are left out.

        Returns
        -------
        self
            The fitted estimator.
        """
        check_parameters(self)
        before = vars(self).copy()
        try:
            examples = self._check_examples(X, y, groups, sample_weight)
            random_state = check_random_state(self.random_state)
            start = find_start_for(self, examples, random_state)
            self.n_contexts_ = self._count_contexts(start)
            examples = self._set_aside(examples, start)
            self._adopt(ENGINES[self._engine](self, examples, start, random_state), examples)
        except BaseException:  # a fit that fails, or is interrupted, leaves the estimator as it was
            self.__dict__ = before
            raise
        return self

    def predict_each(self, X: Any) -> NDArray[Any]:
        """Predict with every local model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_contexts_) or (n_samples, n_contexts_, n_outputs)
            The answer of each context.
        """
        return self._answer(self._outputs(X))

    def predict(self, X: Any, context: Any = None, groups: Any = None) -> NDArray[Any]:
        """Predict in a context; without any hint, in the most used one (context 0).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        context : int, array of shape (n_samples,) or Identification, default=None
            The context of all rows, of each row, or of each group as `identify` found it (joined to the rows by `groups`).
        groups : array of shape (n_samples,), default=None
            Without `context`: training groups, whose contexts are known. An unknown group is an error.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        return self._in_context(X, context, groups, self._answer)

    def identify(self, X: Any, y: Any, groups: Any = None, abstain: bool = False) -> Identification:
        """Find the context of new sources from a few labelled rows of each.

        Parameters
        ----------
        X, y
            Labelled rows.
        groups : array of shape (n_samples,), default=None
            The source of each row; without it all rows are one source.
        abstain : bool, default=False
            Answer -1 where no context is at least 90 % probable or none explains the source.

        Returns
        -------
        Identification
            One entry a group.
        """
        check_is_fitted(self, "local_models_")
        X = check_X(self, X, reset=False, engine=self._engine)
        target = self._check_y(y, reset=False)
        check_rows(X, target)
        labels, group = encode_groups(np.zeros(len(target), dtype=int) if groups is None else groups, len(target))
        losses = self._local_models.losses(X, target)  #                                            (N, K)
        scores = np.stack([np.bincount(group, column) for column in losses.T], 1)  #                (m, K)
        mean = scores.min(1) / np.bincount(group)
        best = scores.argmin(1)
        limit = 0.5 * (1.0 + self._novelty[best])  # half-way between the context's own training groups and no explanation at all
        return Identification.from_scores(labels, scores / self._temperature, mean / self._constant_loss, limit, abstain)

    def _score(self, metric: Callable[..., float], X: Any, y: Any, groups: Any, sample_weight: Any) -> float:
        if groups is None:
            return float(metric(y, self.predict(X), sample_weight=sample_weight))
        rows, context = self._context_by_half(X, y, groups)
        weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return float(metric(_safe_indexing(y, rows), self.predict(_safe_indexing(X, rows), context), sample_weight=weight))

    def _context_by_half(self, X: Any, y: Any, groups: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows to be scored, and their contexts: every second row of a group identifies it, the others are scored."""
        labels, group = encode_groups(groups, len(y))
        support = (position_in_group(group) % 2 == 0) & (np.bincount(group)[group] > 1) & self._is_known(y)
        context = np.zeros(len(labels), dtype=np.intp)  # a group of one row tells nothing before it is scored: the most used context
        if support.any():
            found = self.identify(_safe_indexing(X, np.flatnonzero(support)), _safe_indexing(y, np.flatnonzero(support)), group[support])
            context[found.groups] = found.context
        scored = np.flatnonzero(~support)
        return scored, context[group[scored]]

    def _is_known(self, y: Any) -> NDArray[np.bool_]:
        """Which targets can identify a context; a label that was not there in training cannot."""
        return np.ones(len(y), dtype=bool)

    # ---- what the two kinds of estimator answer differently ---------------------------------------------------------------------------

    @abstractmethod
    def _check_y(self, y: Any, reset: bool) -> NDArray[Any]:
        """Targets as class numbers (N,) or values (N, D)."""

    @abstractmethod
    def _answer(self, outputs: NDArray[np.float64]) -> NDArray[Any]:
        """From outputs (..., D) to what the user asked for."""

    @abstractmethod
    def _empirical_error(self, mean_losses: NDArray[np.float64], examples: Examples) -> float:
        """Mean over groups of the mean loss under the chosen local models, from the mean losses that chose them, (m,)."""

    @abstractmethod
    def _noise(self, fitting: Fitting, examples: Examples) -> float:
        """The temperature of the posterior: by how much of the loss a context becomes e times less likely."""

    # ---- the steps of fit -------------------------------------------------------------------------------------------------------------

    @property
    def _engine(self) -> str:
        return choose_engine(self.local_model)

    def _check_examples(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> Examples:
        X = check_X(self, X, reset=True, engine=self._engine)
        target = self._check_y(y, reset=True)
        check_rows(X, target)
        self.groups_, group = encode_groups(groups, len(target))
        weight = check_weights(sample_weight, X)
        row = np.arange(len(target))
        self.outliers_ = np.zeros(len(target), dtype=bool)
        if weight is not None and not weight.all():
            rows = np.flatnonzero(weight)
            X, target, weight, row = _safe_indexing(X, rows), target[rows], weight[rows], row[rows]
            left, group = np.unique(group[rows], return_inverse=True)
            self.groups_ = self.groups_[left]
        if not isinstance(self.n_contexts, str) and len(self.groups_) < self.n_contexts:
            raise ValueError(
                f"there are fewer groups ({len(self.groups_)}, n_samples={len(target)}) than contexts (n_contexts={self.n_contexts}); "
                "give more groups or ask for fewer contexts."
            )
        self._warn_about_single_rows(group)
        is_classifier = hasattr(self, "classes_")
        if is_classifier and len(np.unique(target)) < 2:
            raise ValueError(
                f"y holds one class only, {self.classes_[target[:1]].tolist()[0]!r}, but a classifier needs at least two classes."
            )
        return Examples(X, target, group, row, weight, len(self.classes_) if is_classifier else target.shape[1], is_classifier)

    def _count_contexts(self, start: Start | None) -> int:
        if not isinstance(self.n_contexts, str):
            return int(self.n_contexts)
        if start is None:
            raise ValueError("n_contexts='auto' reads their number off inputs that are finite numbers, and X is not; give a number.")
        return int(start.contexts.max()) + 1 if start.is_trusted else 1

    def _set_aside(self, examples: Examples, start: Start | None) -> Examples:
        """Rows that seem to belong to another context than their group's teach nobody, and are told in `outliers_`."""
        if start is None or not start.is_trusted or start.is_stranger is None:
            return examples
        self.outliers_[examples.row[start.is_stranger]] = True
        return examples.without(start.is_stranger)

    def _warn_about_single_rows(self, group: NDArray[np.intp]) -> None:
        if self.n_contexts == 1 or np.bincount(group).max() > 1:
            return
        exception = ", unless every context has labels of its own" if hasattr(self, "classes_") else ""
        warnings.warn(
            f"Every group has a single row, and single rows cannot tell contexts apart{exception}; "
            "pass groups= (annotator, site, session, ...) so that rows known to share a context stay together. In a pipeline or search, "
            "groups arrive only with sklearn.set_config(enable_metadata_routing=True).",
            RecoveryWarning,
            stacklevel=4,
        )

    def _adopt(self, fitting: Fitting, examples: Examples) -> None:
        """Keep the fitted contexts, ordered by falling usage, and what can be said of them."""
        usage = np.bincount(fitting.scores.argmin(1), minlength=self.n_contexts_) / len(fitting.scores)
        self.context_order_ = np.argsort(-usage, kind="stable")
        scores = fitting.scores[:, self.context_order_]  #                                          (m, K)
        sizes = np.bincount(examples.group)
        self._local_models = fitting.local_models.reordered(self.context_order_)
        self.local_models_ = self._local_models.models
        self.contexts_ = scores.argmin(1)
        self.usage_ = usage[self.context_order_]
        self.history_ = {**fitting.history, "usage": fitting.history["usage"][:, self.context_order_]}
        self.n_iter_ = len(fitting.history["epoch"])
        self.restarts_, self.best_restart_, self.converged_ = fitting.restarts, fitting.best_restart, fitting.converged
        self.init_ = fitting.init
        self.selection_ = fitting.selection
        self._constant_loss = fitting.constant_loss or 1.0  # constant targets leave nothing to explain: any unit will do
        self._temperature = self._noise(fitting, examples)
        self.probabilities_ = posterior(scores / self._temperature)
        mean = scores.min(1) / sizes / self._constant_loss
        self._novelty = np.array([mean[self.contexts_ == k].mean() if usage_k else 1.0 for k, usage_k in enumerate(self.usage_)])
        self.empirical_error_ = self._empirical_error(scores.min(1) / sizes, examples)

    def _mean_over_groups(self, rows: NDArray[np.float64], examples: Examples) -> float:
        """Mean over groups of the weighted mean over their rows."""
        weight = np.ones(len(rows)) if examples.weight is None else examples.weight
        return float((np.bincount(examples.group, rows * weight) / np.bincount(examples.group, weight)).mean())

    # ---- asking the local models ------------------------------------------------------------------------------------------------------

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self, "local_models_")
        return self._local_models.outputs(check_X(self, X, reset=False, engine=self._engine))

    def _in_context(self, X: Any, context: Any, groups: Any, finish: Callable[[NDArray[np.float64]], NDArray[Any]]) -> NDArray[Any]:
        """The finished answers of each row's own context, a slice of rows at a time: those of all contexts may not fit into memory."""
        check_is_fitted(self, "local_models_")
        X = check_X(self, X, reset=False, engine=self._engine)
        contexts = self._contexts_of_rows(X.shape[0], context, groups)
        answers = []
        for start in range(0, len(contexts), ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, len(contexts)))
            outputs = self._local_models.outputs(_safe_indexing(X, rows))  #                        (n, K, D)
            answers.append(finish(outputs[np.arange(len(rows)), contexts[rows]]))
        return np.concatenate(answers)

    def _contexts_of_rows(self, n_rows: int, context: Any, groups: Any) -> NDArray[np.intp]:
        """The context of each row, from whatever the user told, shape (n_rows,)."""
        if context is None:
            return np.zeros(n_rows, dtype=np.intp) if groups is None else self._look_up(groups, n_rows, self.groups_, self.contexts_)
        if groups is not None and not isinstance(context, Identification):
            raise ValueError("both context and groups are given, and they may disagree; give one of them.")
        if isinstance(context, Identification):
            if groups is None and len(context) == 1:
                groups = np.repeat(context.groups, n_rows)
            if groups is None:
                raise ValueError(f"context holds {len(context)} groups, but groups is None; say with groups= which row belongs to which.")
            context = self._look_up(groups, n_rows, context.groups, context.context)
            if (context < 0).any():
                raise ValueError(
                    f"the context of {int((context < 0).sum())} rows was left open by identify; choose one, or do not abstain."
                )
        rows = np.asarray(context)
        if rows.dtype.kind not in "iu" or rows.shape not in ((), (n_rows,)):
            raise ValueError(
                f"context has type {rows.dtype} and shape {rows.shape}, but a whole number, one for each of the {n_rows} rows, or an "
                "Identification was expected."
            )
        outside = rows[(rows < 0) | (rows >= self.n_contexts_)]
        if outside.size:
            raise ValueError(f"context={outside.flat[0]} is out of range; this model has {self.n_contexts_} contexts, numbered from 0.")
        return np.broadcast_to(rows, (n_rows,))

    @staticmethod
    def _look_up(groups: Any, n_rows: int, known: NDArray[Any], contexts: NDArray[np.intp]) -> NDArray[np.intp]:
        labels = as_labels(groups)
        if len(labels) != n_rows:
            raise ValueError(f"groups has {len(labels)} entries, but X has {n_rows} rows; give one group label for every row.")
        found = find_groups(labels, known)
        if (found < 0).any():
            stranger = labels.tolist()[int(np.argmax(found < 0))]
            raise ValueError(f"group {stranger!r} is not known; identify it from a few labelled rows first.")
        return contexts[found]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if choose_engine(self.local_model) == "refit":
            inner = get_tags(self.local_model)
            tags.input_tags.sparse, tags.input_tags.allow_nan = inner.input_tags.sparse, inner.input_tags.allow_nan
        return tags
