"""What the regressor and the classifier share: their parameters, and the steps of a fit."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_random_state, get_tags

from leaflearn.core.allocation import Rule
from leaflearn.core.grouped_data import GroupedData, encode_groups, renumber
from leaflearn.core.losses import Loss
from leaflearn.core.training import Callback, Schedule
from leaflearn.diagnostics.calibration import find_evidence_factor, posterior
from leaflearn.diagnostics.checks import diagnose
from leaflearn.diagnostics.novelty import HeldOut, choose_held_out
from leaflearn.engines import MakeOptimizer
from leaflearn.engines.engine import ENGINES
from leaflearn.engines.fitted_state import Fitting
from leaflearn.engines.local_models import LocalModels
from leaflearn.estimators.answering import AnsweringContexts
from leaflearn.estimators.context_updates import ChangingContexts
from leaflearn.estimators.parameters import check_parameters
from leaflearn.estimators.sharing import SharedModels
from leaflearn.estimators.validation import check_rows, check_weights, check_X
from leaflearn.initialization.initialize import (
    find_label_blocks,
    initialize,
    make_surrogate,
    uses_surrogate_start,
)
from leaflearn.initialization.item_surrogate import ItemSurrogate
from leaflearn.initialization.start import Start
from leaflearn.initialization.surrogate import SmoothSurrogate
from leaflearn.messages import RecoveryWarning, SingleRowGroups
from leaflearn.persistence.fingerprint import fingerprint
from leaflearn.updates.prune_merge import ContextSet
from leaflearn.updates.replay_buffer import fill_replay_buffer


class BaseLeaf(AnsweringContexts, ChangingContexts, SharedModels, BaseEstimator):
    """K local models, and the contexts they were found to answer for. See `LeafRegressor` and `LeafClassifier`."""

    # Groups travel through pipelines and searches without being asked for: without them there is nothing to find.
    __metadata_request__fit = {"groups": True}
    __metadata_request__partial_fit = {"groups": True}
    __metadata_request__score = {"groups": True}

    def __init__(
        self,
        n_contexts: int | str = "auto",
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
        trim: float = 0.0,
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
        self.trim = trim
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
            start = initialize(self, examples, random_state)
            self.n_contexts_ = self._count_contexts(start)
            labels = find_label_blocks(examples, self.n_contexts_, start, random_state)
            self._warn_about_single_rows(examples, labels)
            examples = self._set_aside(examples, start if uses_surrogate_start(self) else None)
            fitting = ENGINES[self._engine](self, examples, start, random_state)
            self._adopt(fitting, examples)
            self._diagnose(examples, start, labels, random_state)
            self._held_out = self._hold_out(fitting, examples, random_state)
            self.probabilities_ = posterior(self._scores / self._evidence_unit)
            self.replay_buffer_ = fill_replay_buffer(
                examples, self.contexts_, np.random.default_rng(random_state.randint(2**31 - 1))
            )
        except BaseException:  # a fit that fails, or is interrupted, leaves the estimator as it was
            self.__dict__ = before
            raise
        return self

    # ---- what the two kinds of estimator answer differently ---------------------------------------------------------------------------

    @abstractmethod
    def _check_y(self, y: Any, reset: bool) -> NDArray[Any]:
        """Targets as class numbers (N,) or values (N, D)."""

    @abstractmethod
    def _answer(self, outputs: NDArray[np.float64]) -> NDArray[Any]:
        """From outputs (..., D) to what the user asked for."""

    @abstractmethod
    def _empirical_error(
        self, mean_losses: NDArray[np.float64], examples: GroupedData | None
    ) -> float:
        """Mean over groups of the mean loss under the chosen local models, from the mean losses that chose them, (m,).

        NaN where rows are needed for that and none are in memory any more.
        """

    @abstractmethod
    def _noise(self, fitting: Fitting, examples: GroupedData) -> float:
        """The temperature of the posterior: by how much of the loss a context becomes e times less likely."""

    # ---- the steps of fit -------------------------------------------------------------------------------------------------------------

    def _check_examples(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> GroupedData:
        X = check_X(self, X, reset=True, engine=self._engine)
        target = self._check_y(y, reset=True)
        check_rows(X, target)
        self.groups_, group = encode_groups(groups, len(target))
        weight = check_weights(sample_weight, X)
        self._input_shape, self._fingerprint = (
            tuple(X.shape[1:]),
            fingerprint(X, target, group, weight),
        )
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
        is_classifier = hasattr(self, "classes_")
        if (
            is_classifier
            and len(np.unique(target)) < 2
            and getattr(self, "_all_classes", None) is None
        ):
            raise ValueError(
                f"y holds one class only, {self.classes_[target[:1]].tolist()[0]!r}, but a classifier needs at least two classes."
            )
        return GroupedData(
            X,
            target,
            group,
            row,
            weight,
            len(self.classes_) if is_classifier else target.shape[1],
            is_classifier,
        )

    def _count_contexts(self, start: Start | None) -> int:
        if not isinstance(self.n_contexts, str):
            return int(self.n_contexts)
        return int(start.contexts.max()) + 1 if start is not None and start.is_trusted else 1

    def _set_aside(self, examples: GroupedData, start: Start | None) -> GroupedData:
        """Rows that seem to belong to another context than their group's teach nobody, and are told in `outliers_`."""
        if start is None or not start.is_trusted or start.is_outlier is None:
            return examples
        left = examples.without(start.is_outlier)
        self.outliers_[np.setdiff1d(examples.row, left.row)] = True
        return left

    def _warn_about_single_rows(self, examples: GroupedData, labels: Start | None) -> None:
        if self.n_contexts == 1 or np.bincount(examples.group).max() > 1 or labels is not None:
            return
        message = SingleRowGroups(bool(examples.is_classifier))
        warnings.warn(RecoveryWarning(message), stacklevel=3)

    def _adopt(self, fitting: Fitting, examples: GroupedData) -> None:
        """Keep the fitted contexts and what can be said of them."""
        self.history_, self.context_order_ = fitting.history, np.arange(self.n_contexts_)
        self.n_iter_ = len(fitting.history["epoch"])
        self.restarts_, self.best_restart_, self.converged_ = (
            fitting.restarts,
            fitting.best_restart,
            fitting.converged,
        )
        self.init_ = fitting.init
        self.selection_ = fitting.selection
        self._constant_loss = (
            fitting.constant_loss or 1.0
        )  # constant targets leave nothing to explain: any unit will do
        self._temperature = self._noise(fitting, examples)
        self._held_out = HeldOut.unknown(self.n_contexts_)  # until something is known
        self._sizes = np.bincount(
            examples.group
        )  #                                                (m,)
        self._is_unexplained = np.zeros(
            len(self._sizes), dtype=bool
        )  # groups that no context explains, see partial_fit
        self._arrange(fitting.local_models, fitting.scores, examples)

    def _arrange(
        self, local_models: LocalModels, scores: NDArray[np.float64], examples: GroupedData | None
    ) -> NDArray[np.intp]:
        """Set all that depends on the contexts, ordered by falling usage, from the scores (m, K); the answer is their order."""
        self.n_contexts_ = scores.shape[1]
        usage = np.bincount(scores.argmin(1), minlength=self.n_contexts_) / len(scores)
        order = np.argsort(-usage, kind="stable")
        self._scores = scores[:, order]
        self._local_models = local_models.reordered(order)
        self.local_models_ = self._local_models.models
        self.contexts_ = self._scores.argmin(1)
        self.usage_ = usage[order]
        self.context_order_ = self.context_order_[order]
        self.history_ = {**self.history_, "usage": self.history_["usage"][:, order]}
        self.probabilities_ = posterior(self._scores / self._evidence_unit)
        self.empirical_error_ = self._empirical_error(self._scores.min(1) / self._sizes, examples)
        return order

    def _diagnose(
        self,
        examples: GroupedData,
        start: Start | None,
        labels: Start | None,
        random_state: np.random.RandomState,
    ) -> None:
        """Say what speaks against the contexts that were found, where something does."""
        reading = start.reading if start is not None else None
        if reading is None and self.n_contexts_ > 1:
            reading = make_surrogate(examples, random_state)
        told = labels.contexts if labels is not None else None
        # Starts of other stages had other tasks, such as to learn contexts that were found: that they agree tells nothing.
        stage = self.restarts_[self.best_restart_]["stage"]
        restarts = [start for start in self.restarts_ if start["stage"] == stage]
        self._run_checks(
            reading, self._scores / self._sizes[:, None], restarts, self.converged_, told
        )

    def _diagnose_again(self, n_before: int) -> None:
        """The same for contexts that were pruned or merged, with the rows in memory; other starts had other contexts."""
        if self.n_contexts_ == n_before or getattr(self, "replay_buffer_", None) is None:
            return
        examples, numbers = renumber(self.replay_buffer_)
        reading = make_surrogate(examples, check_random_state(self.random_state))
        self._run_checks(
            reading,
            (self._scores / self._sizes[:, None])[numbers],
            [],
            has_converged=True,
            n_before=n_before,
        )

    def _run_checks(
        self, reading: SmoothSurrogate | None, mean: NDArray[np.float64], restarts: Sequence[dict[str, Any]], has_converged: bool,
        told: NDArray[np.intp] | None = None, n_before: int | None = None,
    ) -> None:  # fmt: skip
        try:
            found = diagnose(
                reading,
                mean,
                restarts,
                self._constant_loss,
                has_converged,
                self._outputs_to(reading),
                told,
                n_before,
            )
        except (
            torch.linalg.LinAlgError
        ):  # smooth models cannot read these inputs; the fit stands without a second opinion
            found = diagnose(None, mean, restarts, self._constant_loss, has_converged)
        self.stability_ = found.stability
        self.converged_ = found.looks_right
        if not found.looks_right:
            warnings.warn(
                f"The fit may not be right. {' '.join(found.problems)}",
                RecoveryWarning,
                stacklevel=4,
            )

    def _outputs_to(self, reading: SmoothSurrogate | None) -> NDArray[np.float64] | None:
        """What networks answer to the rows of a reading, (N', K, D); classes are not compared, and between items there is nothing."""
        if (
            reading is None
            or isinstance(reading, ItemSurrogate)
            or self._engine == "refit"
            or hasattr(self, "classes_")
        ):
            return None
        return self._local_models.outputs(reading.x[reading.rows])

    def _replace_contexts(self, found: ContextSet) -> None:
        """Keep contexts that were pruned, merged or opened instead of the present ones; new ones come last in the history, unused."""
        is_new = found.origin < 0
        usage = np.where(
            is_new, 0.0, self.history_["usage"][:, found.origin]
        )  #                   (T, K)
        self.history_ = {**self.history_, "usage": usage}
        numbers = self.context_order_[found.origin]
        self.context_order_ = np.where(
            is_new, self.context_order_.max() + np.cumsum(is_new), numbers
        )
        order = self._arrange(found.local_models, found.scores, self.replay_buffer_)
        self._held_out = replace(found.held_out, losses=[found.held_out.losses[k] for k in order])

    def _hold_out(
        self, fitting: Fitting, examples: GroupedData, random_state: np.random.RandomState
    ) -> HeldOut:
        """What losses each context shows on rows that its model has not seen: local models learn again without some of the groups."""
        seed = int(random_state.randint(2**31 - 1))
        learn, held = choose_held_out(
            examples.X, examples.group, self.contexts_, np.random.default_rng(seed)
        )
        if not len(held):
            return HeldOut.unknown(self.n_contexts_)
        try:
            again = fitting.refit_quickly(learn, self.contexts_, seed)
            losses = again.losses(
                _safe_indexing(examples.X, held), examples.y[held]
            )  #            (H, K)
        except ValueError:  # a local model that cannot learn from fewer rows: the fit stands, and nothing is called new
            return HeldOut.unknown(self.n_contexts_)
        group = examples.group[held]
        doubt = find_evidence_factor(losses / self._temperature, self.contexts_[group])
        return HeldOut.of(losses, group, self._constant_loss, doubt)

    def _mean_over_groups(self, rows: NDArray[np.float64], examples: GroupedData) -> float:
        """Mean over groups of the weighted mean over their rows."""
        weight = np.ones(len(rows)) if examples.weight is None else examples.weight
        mass = np.bincount(examples.group, weight)
        is_there = mass > 0  # of some groups no row may be in memory
        return float((np.bincount(examples.group, rows * weight)[is_there] / mass[is_there]).mean())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self._engine == "refit":
            inner = get_tags(self.local_model)
            tags.input_tags.sparse, tags.input_tags.allow_nan = (
                inner.input_tags.sparse,
                inner.input_tags.allow_nan,
            )
        return tags
