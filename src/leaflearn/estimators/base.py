"""`BaseLeaf`: what `LeafRegressor` and `LeafClassifier` share.

From top to bottom: parameters; `fit` and its steps; predictions; `identify`; `score`; updates of a
fitted estimator; saving. The class validates input, delegates, and is the only place that assigns
what was fitted.
"""

from __future__ import annotations

import numbers
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from leaflearn._renamed import warn_renamed
from leaflearn.core.allocation import Rule
from leaflearn.core.grouped_data import (
    GroupedData,
    as_labels,
    encode_groups,
    find_groups,
    position_in_group,
    sum_by_group,
)
from leaflearn.core.losses import Loss
from leaflearn.core.training import ROWS_AT_ONCE, Callback, Schedule
from leaflearn.diagnostics.checks import diagnose
from leaflearn.diagnostics.input_range import find_range, join_ranges, warn_about_far
from leaflearn.effects.group_effects import GroupEffects
from leaflearn.engines.answers import fit_answers
from leaflearn.engines.calibration import find_evidence_factor
from leaflearn.engines.choice import is_better_start, uses_closed_form
from leaflearn.engines.closed_form import ClosedFormModels, fit_in_closed_form
from leaflearn.engines.engine import ENGINES, choose_engine
from leaflearn.engines.fitted_state import EngineResult, FittedState
from leaflearn.engines.novelty import HeldOut, choose_held_out
from leaflearn.engines.parameters import MakeOptimizer
from leaflearn.engines.settings import CHOICE, HELD_OUT
from leaflearn.estimators.identification import Identification
from leaflearn.estimators.model_io import describe_estimator
from leaflearn.estimators.onnx_export import export_onnx
from leaflearn.estimators.validation import check_parameters, check_rows, check_weights, check_X
from leaflearn.initialization.start import (
    find_label_blocks,
    initialize,
    make_surrogate,
    uses_surrogate_start,
)
from leaflearn.initialization.surrogate import Start, Surrogate
from leaflearn.messages import (
    ContextNotGiven,
    EffectsNotExported,
    FitMayBeWrong,
    LeafWarning,
    RecoveryWarning,
    SingleRowGroups,
    UnknownGroups,
)
from leaflearn.persistence import to_json, write_model
from leaflearn.persistence.fingerprint import fingerprint
from leaflearn.updates.partial_fit import update_contexts
from leaflearn.updates.prune_merge import merge, prune, trim_rows
from leaflearn.updates.replay_buffer import fill_replay_buffer, stored_rows


class BaseLeaf(BaseEstimator):
    """K local models, and the context of every group. See `LeafRegressor` and `LeafClassifier`."""

    # Groups are passed on by pipelines and searches without being requested, since contexts cannot
    # be found without them.
    __metadata_request__fit = {"groups": True}
    __metadata_request__partial_fit = {"groups": True}
    __metadata_request__score = {"groups": True}

    def __init__(
        self,
        n_contexts: int | str = "auto",
        *,
        local_model: Any = None,
        group_effects: str | None = "auto",
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
        self.group_effects = group_effects
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

    # ---- what the two estimators do differently --------------------------------------------------

    @abstractmethod
    def _check_y(self, y: Any, reset: bool) -> NDArray[Any]:
        """Targets as class numbers (N,) or values (N, D)."""

    @abstractmethod
    def _finish(self, outputs: NDArray[np.float64]) -> NDArray[Any]:
        """From outputs (..., D) to predictions."""

    @abstractmethod
    def _posterior_temperature(self, state: FittedState, data: GroupedData) -> float:
        """The loss difference at which a context becomes e times less likely."""

    @abstractmethod
    def _empirical_error(self, state: FittedState, data: GroupedData | None) -> float:
        """Mean over groups of the mean loss under the chosen local models.

        NaN where rows are needed to compute it and none are stored.
        """

    def _is_known(self, y: Any) -> NDArray[np.bool_]:
        """Targets that can identify a context; labels that were not there in training cannot."""
        return np.ones(len(y), dtype=bool)

    # ---- fit ------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Find the contexts and fit a local model for each.

        Parameters
        ----------
        X : array, frame or tensor of shape (n_samples, n_features)
            Inputs. Images of shape (n_samples, channels, height, width) with a module factory as
            `local_model`; sparse matrices, and frames with text and missing values, with
            scikit-learn models that accept them.
        y : array of shape (n_samples,) or, in regression, (n_samples, n_outputs)
            Targets.
        groups : array of shape (n_samples,), default=None
            Rows with the same label are known to share one hidden context: the annotator, site,
            session or device. Without it every row is a group of its own, which identifies
            contexts only in special cases; a warning says so.
        sample_weight : array of shape (n_samples,), default=None
            Weights of the rows inside their group; every group has the same mass. Rows of weight 0
            are left out.

        Returns
        -------
        self
            The fitted estimator.
        """
        check_parameters(self)
        with self._unchanged_on_error():
            data = self._check_data(X, y, groups, sample_weight)
            random_state = check_random_state(self.random_state)
            if self._engine == "chosen":
                state, data = self._fit_chosen(data, random_state)
            elif self._engine == "closed_form":
                state = self._fit_in_closed_form(data, random_state)
            else:
                state, data = self._fit_local_models(self._engine, data, random_state)
            rng = np.random.default_rng(random_state.randint(2**31 - 1))
            buffer = fill_replay_buffer(data, state.contexts, rng)
            self._assign(replace(state, replay_buffer=buffer), data)
        return self

    def _fit_chosen(
        self, data: GroupedData, random_state: np.random.RandomState
    ) -> tuple[FittedState, GroupedData]:
        """Fit the local model that suits the rows; also return the rows used.

        Models in closed form with group effects, where groups have several rows. Groups of a few
        rows tell little about their own effects, but much about contexts that they follow exactly:
        there, networks are trained on the contexts of the surrogate search, if these predict
        held-out rows clearly better.
        """
        if not uses_closed_form(self, data):
            return self._fit_local_models("mlp", data, random_state)
        state = self._fit_in_closed_form(data, random_state)
        has_few_rows = len(data.y) < CHOICE.max_group_size * (int(data.group.max()) + 1)
        if not has_few_rows or self.n_contexts == 1 or self.group_effects not in ("auto", None):
            return state, data
        start = initialize(self, data, random_state)
        if not is_better_start(start, state, data.is_classifier):
            return state, data
        return self._fit_local_models("mlp", data, random_state, start)

    def _fit_local_models(
        self,
        engine: str,
        data: GroupedData,
        random_state: np.random.RandomState,
        start: Start | None = None,
    ) -> tuple[FittedState, GroupedData]:
        """Find a start, train local models from it, diagnose them; also return the rows used."""
        start = initialize(self, data, random_state) if start is None else start
        n_contexts = self._count_contexts(start)
        labels = find_label_blocks(data, n_contexts, start, random_state)
        self._warn_about_single_rows(data, labels)
        data = self._exclude_outliers(data, start if uses_surrogate_start(self) else None)
        fit = ENGINES[engine](self, n_contexts, data, start, random_state)
        state = self._complete(fit.state, data)
        state = self._diagnose(state, data, start, labels, random_state)
        held_out = self._hold_out(fit, state, data, random_state)
        return replace(state, held_out=held_out), data

    def _fit_in_closed_form(
        self, data: GroupedData, random_state: np.random.RandomState
    ) -> FittedState:
        """Contexts and effects from moments; then the effects of every group."""
        self._warn_about_single_rows(data, None)
        fit = fit_answers if data.is_classifier else fit_in_closed_form
        state = fit(self, data, random_state).ordered_by_usage()
        effects, scores = self._find_effects(state, data)
        return replace(state, effects=effects, scores=scores)

    def _find_effects(
        self, state: FittedState, data: GroupedData
    ) -> tuple[GroupEffects, NDArray[np.float64]]:
        """The effects of the groups of some rows, and their scores (m, K)."""
        assert state.effects is not None
        assert isinstance(state.local_models, ClosedFormModels)
        models = state.local_models
        means, targets = models.means(data.X), models.targets(data.y)
        weight = None if data.weight is None else data.weight / data.weight.mean()
        n_groups = int(data.group.max()) + 1
        return state.effects.of_groups(data.X, means, targets, data.group, n_groups, weight)

    def _assign(self, state: FittedState, data: GroupedData | None) -> None:
        """Set every attribute that depends on the contexts; `data` are the rows at hand."""
        self.fitted_state_ = state
        self.n_contexts_ = state.n_contexts
        self.local_models_ = state.local_models.models
        self.contexts_ = state.contexts
        self.probabilities_ = state.probabilities
        self.usage_ = state.usage
        self.context_order_ = state.context_order
        self.history_ = state.history
        self.n_iter_ = len(state.history["epoch"])
        self.restarts_ = state.restarts
        self.best_restart_ = state.best_restart
        self.init_ = state.init
        self.selection_ = state.selection
        self.converged_ = state.converged
        self.stability_ = state.stability
        if state.effects is not None:
            self.priors_ = state.effects.priors
            self.noise_ = state.effects.noise
            self.effect_variances_ = state.effects.variances
            own = np.arange(len(state.contexts)), state.contexts
            self.group_effects_ = state.effects.effects[own]
        self.empirical_error_ = self._empirical_error(state, data)

    @property
    def local_model_(self) -> Any:
        """The name of the local model that was chosen; `local_model` if it was given."""
        models = self.fitted_state_.local_models
        if self.local_model is not None:
            return self.local_model
        return models.name if isinstance(models, ClosedFormModels) else "mlp"

    def restore(self, state: FittedState, attributes: Mapping[str, Any]) -> Self:
        """Assign a state and attributes that were saved; `leaflearn.load` does this."""
        for name, value in attributes.items():
            setattr(self, name, value)
        self.fitted_state_ = state
        self.local_models_ = state.local_models.models
        return self

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Leave the estimator as it was where the block fails or is interrupted."""
        before = vars(self).copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _check_data(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> GroupedData:
        X, target = self._check_labelled_rows(X, y, reset=True)
        self.groups_, group = encode_groups(groups, len(target))
        weight = check_weights(sample_weight, X)
        self.input_shape_ = tuple(X.shape[1:])
        self.fingerprint_ = fingerprint(X, target, group, weight)
        self.outliers_ = np.zeros(len(target), dtype=bool)
        is_classifier = hasattr(self, "classes_")
        n_outputs = len(self.classes_) if is_classifier else target.shape[1]
        row = np.arange(len(target))
        data = GroupedData(X, target, group, row, weight, n_outputs, is_classifier)
        if weight is not None and not weight.all():
            data, left = data.take(np.flatnonzero(weight)).renumbered()
            self.groups_ = self.groups_[left]
        self.input_range_ = find_range(data.X)
        if not isinstance(self.n_contexts, str) and len(self.groups_) < self.n_contexts:
            raise ValueError(
                f"there are fewer groups ({len(self.groups_)}, n_samples={len(data.y)}) than "
                f"contexts (n_contexts={self.n_contexts}); give more groups or ask for fewer "
                "contexts."
            )
        has_one_class = is_classifier and len(np.unique(data.y)) < 2
        if has_one_class and getattr(self, "_all_classes", None) is None:
            label = self.classes_[data.y[:1]].tolist()[0]
            raise ValueError(
                f"y holds one class only, {label!r}, but a classifier needs at least two classes."
            )
        return data

    def _check_labelled_rows(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray[Any]]:
        X = check_X(self, X, reset=reset, engine=self._engine)
        target = self._check_y(y, reset=reset)
        check_rows(X, target)
        return X, target

    def _count_contexts(self, start: Start | None) -> int:
        if not isinstance(self.n_contexts, str):
            return int(self.n_contexts)
        return int(start.contexts.max()) + 1 if start is not None and start.is_trusted else 1

    def _warn_about_single_rows(self, data: GroupedData, labels: Start | None) -> None:
        if self.n_contexts != 1 and np.bincount(data.group).max() == 1 and labels is None:
            warnings.warn(RecoveryWarning(SingleRowGroups(data.is_classifier)), stacklevel=3)

    def _exclude_outliers(self, data: GroupedData, start: Start | None) -> GroupedData:
        """Leave out rows that seem to belong to another context, and mark them in `outliers_`."""
        if start is None or not start.is_trusted or start.is_outlier is None:
            return data
        left = data.without(start.is_outlier)
        self.outliers_[np.setdiff1d(data.row, left.row)] = True
        return left

    def _complete(self, state: FittedState, data: GroupedData) -> FittedState:
        """Contexts ordered by usage, with the temperature of their posterior."""
        # Constant targets leave nothing to explain, so any unit will do.
        state = replace(state, constant_loss=state.constant_loss or 1.0)
        temperature = self._posterior_temperature(state, data)
        return replace(state, temperature=temperature).ordered_by_usage()

    def _diagnose(
        self,
        state: FittedState,
        data: GroupedData,
        start: Start | None,
        labels: Start | None,
        random_state: np.random.RandomState,
    ) -> FittedState:
        """Compare the fit with the surrogate models and with its own other starts."""
        surrogate: Surrogate | None = start.surrogate if start is not None else None
        if surrogate is None and state.n_contexts > 1:
            surrogate = make_surrogate(data, random_state)
        # Starts of other stages had other tasks, such as to learn contexts that were found, so
        # that their agreement means nothing.
        stage = state.restarts[state.best_restart]["stage"]
        restarts = [start for start in state.restarts if start["stage"] == stage]
        by_labels = labels.contexts if labels is not None else None
        return self._check_fit(state, surrogate, state.mean_scores, restarts, by_labels)

    def _check_fit(
        self,
        state: FittedState,
        surrogate: Surrogate | None,
        mean_scores: NDArray[np.float64],
        restarts: Sequence[dict[str, Any]],
        by_labels: NDArray[np.intp] | None = None,
        n_before: int | None = None,
    ) -> FittedState:
        converged, unit = state.converged or n_before is not None, state.constant_loss
        outputs = self._outputs_on(surrogate, state)
        try:
            found = diagnose(
                surrogate, mean_scores, restarts, unit, converged, outputs, by_labels, n_before
            )
        except torch.linalg.LinAlgError:  # the surrogate cannot be fitted to these inputs
            found = diagnose(None, mean_scores, restarts, unit, converged)
        if not found.looks_right:
            warnings.warn(RecoveryWarning(FitMayBeWrong(tuple(found.problems))), stacklevel=4)
        return replace(state, stability=found.stability, converged=found.looks_right)

    def _outputs_on(
        self, surrogate: Surrogate | None, state: FittedState
    ) -> NDArray[np.float64] | None:
        """Outputs of networks on the surrogate's rows, (N', K, D); None for classes and items."""
        if surrogate is None or not surrogate.compares_outputs:
            return None
        if self._engine == "refit" or hasattr(self, "classes_"):
            return None
        return state.local_models.outputs(surrogate.x[surrogate.rows])

    def _hold_out(
        self,
        fit: EngineResult,
        state: FittedState,
        data: GroupedData,
        random_state: np.random.RandomState,
    ) -> HeldOut:
        """Losses of each context on rows that local models were refitted without."""
        seed, contexts = int(random_state.randint(2**31 - 1)), state.contexts
        learned, held = choose_held_out(data.X, data.group, contexts, np.random.default_rng(seed))
        if not len(held):
            return state.held_out
        try:
            again = fit.refit_quickly(learned, contexts, seed)
            losses = again.losses(_safe_indexing(data.X, held), data.y[held])  #    (H, K)
        except ValueError:  # a local model cannot be fitted on fewer rows: nothing is called new
            return state.held_out
        group = data.group[held]
        factor = find_evidence_factor(losses / state.temperature, contexts[group])
        return HeldOut.of(losses, group, state.constant_loss, factor)

    # ---- predict --------------------------------------------------------------------------------

    def predict_each(self, X: Any) -> NDArray[Any]:
        """Predict with every local model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_contexts_) or (n_samples, n_contexts_, n_outputs)
            The predictions of each context.
        """
        return self._finish(self._outputs(X))

    def predict(self, X: Any, context: Any = None, groups: Any = None) -> NDArray[Any]:
        """Predict in a context; without `context` and `groups`, in the most used one (context 0).

        With group effects, predictions for groups (`groups`, or an `Identification`) are averaged
        over the posterior of their contexts and include their effects.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        context : int, array of shape (n_samples,) or Identification, default=None
            The context of all rows, of each row, or of each group as returned by `identify` (joined
            to the rows by `groups`).
        groups : array of shape (n_samples,), default=None
            Without `context`: training groups, whose contexts are known. An unknown group is an
            error; with group effects, it is predicted without effects and with the shares of the
            contexts, and a warning says how many there are.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        return self._predict_in_context(X, context, groups, self._finish)

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self, "local_models_")
        X = check_X(self, X, reset=False, engine=self._engine)
        self._warn_about_far(X)
        return self.fitted_state_.local_models.outputs(X)

    def _warn_about_far(self, X: Any) -> None:
        """Warn about inputs far outside the training rows; folders of 0.1.0 have no range."""
        known, names = (getattr(self, name, None) for name in ("input_range_", "feature_names_in_"))
        warn_about_far(X, known, names)

    def _predict_in_context(
        self,
        X: Any,
        context: Any,
        groups: Any,
        finish: Callable[[NDArray[np.float64]], NDArray[Any]],
    ) -> NDArray[Any]:
        """Predictions of each row's own context, in chunks: all contexts may not fit in memory."""
        check_is_fitted(self, "local_models_")
        X = check_X(self, X, reset=False, engine=self._engine)
        self._warn_about_far(X)
        if self._has_effects and (groups is not None or isinstance(context, Identification)):
            return finish(self._predict_with_effects(X, context, groups)[0])
        contexts = self._contexts_of_rows(X.shape[0], context, groups)
        predictions = []
        for start in range(0, len(contexts), ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, len(contexts)))
            outputs = self.fitted_state_.local_models.outputs(_safe_indexing(X, rows))  # (n, K, D)
            predictions.append(finish(outputs[np.arange(len(rows)), contexts[rows]]))
        return np.concatenate(predictions)

    @property
    def _has_effects(self) -> bool:
        return self.fitted_state_.effects is not None

    def _predict_distribution(
        self, X: Any, context: Any, groups: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and variance (N, D) of rows of groups, or of contexts without known groups."""
        effects = self.fitted_state_.effects
        assert effects is not None
        if groups is not None or isinstance(context, Identification):
            return self._predict_with_effects(X, context, groups)
        row, own = np.arange(X.shape[0]), self._contexts_of_rows(X.shape[0], context, groups)
        outputs = self.fitted_state_.local_models.outputs(X)
        variance = effects.variance(X, np.full(len(row), -1))
        return outputs[row, own], variance[row, own]

    def _predict_with_effects(
        self, X: Any, context: Any, groups: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and variance (N, D) of a row, over the contexts of its group and their effects."""
        effects = self.fitted_state_.effects
        assert effects is not None
        if context is None:
            known, probability = self.groups_, self.probabilities_
        elif isinstance(context, Identification):
            if context.effects is None or context.products is None:
                raise ValueError(
                    "context comes from a model without group effects; identify with this model."
                )
            known, probability = context.groups, context.probability
            effects = replace(effects, effects=context.effects, products=context.products)
            if groups is None and len(context) == 1:
                groups = np.repeat(context.groups, X.shape[0])
            if groups is None:
                raise self._groups_are_missing(context)
        else:
            raise ValueError(
                "both context and groups are given, and they may disagree; give one of them."
            )
        group = self._find_rows(groups, X.shape[0], known)
        is_unknown = group < 0
        if is_unknown.any():
            n_unknown = len(set(as_labels(groups)[is_unknown].tolist()))
            warnings.warn(
                LeafWarning(UnknownGroups(n_unknown, int(is_unknown.sum()))), stacklevel=4
            )
        weight = np.where(is_unknown[:, None], effects.priors, probability[group])  #  (N, K)
        models = self.fitted_state_.local_models
        assert isinstance(models, ClosedFormModels)
        added = effects.add(X, models.means(X), group)
        each = models.finish(effects.moderate(X, added, group))  #                  (N, K, D)
        mean = np.einsum("nk,nkd->nd", weight, each)
        if models.n_classes:
            return mean, mean * (1 - mean)
        spread = effects.variance(X, group) + (each - mean[:, None]) ** 2
        return mean, np.einsum("nk,nkd->nd", weight, spread)

    def _contexts_of_rows(self, n_rows: int, context: Any, groups: Any) -> NDArray[np.intp]:
        """The context of each row, from what was passed to `predict`, shape (n_rows,)."""
        if context is None and groups is None:
            if self.n_contexts_ > 1:
                warnings.warn(LeafWarning(ContextNotGiven(self.n_contexts_)), stacklevel=4)
            return np.zeros(n_rows, dtype=np.intp)
        if context is None:
            return self._look_up(groups, n_rows, self.groups_, self.contexts_)
        if isinstance(context, Identification):
            context = self._join_identification(context, n_rows, groups)
        elif groups is not None:
            raise ValueError(
                "both context and groups are given, and they may disagree; give one of them."
            )
        rows = np.asarray(context)
        if rows.dtype.kind not in "iu" or rows.shape not in ((), (n_rows,)):
            raise ValueError(
                f"context has type {rows.dtype} and shape {rows.shape}, but an integer, one for "
                f"each of the {n_rows} rows, or an Identification was expected."
            )
        outside = rows[(rows < 0) | (rows >= self.n_contexts_)]
        if outside.size:
            raise ValueError(
                f"context={outside.flat[0]} is out of range; this model has {self.n_contexts_} "
                "contexts, numbered from 0."
            )
        return np.broadcast_to(rows, (n_rows,))

    def _join_identification(
        self, found: Identification, n_rows: int, groups: Any
    ) -> NDArray[np.intp]:
        if groups is None and len(found) == 1:
            groups = np.repeat(found.groups, n_rows)
        if groups is None:
            raise self._groups_are_missing(found)
        contexts = self._look_up(groups, n_rows, found.groups, found.context)
        n_open = int((contexts < 0).sum())
        if n_open:
            raise ValueError(
                f"identify abstained from the context of {n_open} rows; choose one, or do not "
                "abstain."
            )
        return contexts

    @staticmethod
    def _groups_are_missing(found: Identification) -> ValueError:
        return ValueError(
            f"context holds {len(found)} groups, but groups is None; pass groups= to say which row "
            "belongs to which."
        )

    @staticmethod
    def _find_rows(groups: Any, n_rows: int, known: NDArray[Any]) -> NDArray[np.intp]:
        """The place of each row's group among the known ones, -1 for others."""
        labels = as_labels(groups)
        if len(labels) != n_rows:
            raise ValueError(
                f"groups has {len(labels)} entries, but X has {n_rows} rows; give one group label "
                "for every row."
            )
        return find_groups(labels, known)

    @classmethod
    def _look_up(
        cls, groups: Any, n_rows: int, known: NDArray[Any], contexts: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        found = cls._find_rows(groups, n_rows, known)
        if (found < 0).any():
            unknown = as_labels(groups).tolist()[int(np.argmax(found < 0))]
            raise ValueError(
                f"group {unknown!r} is not known; identify it from a few labelled rows first."
            )
        return contexts[found]

    # ---- identify and score ---------------------------------------------------------------------

    def identify(self, X: Any, y: Any, groups: Any = None, abstain: bool = False) -> Identification:
        """Find the context of new groups from a few labelled rows of each.

        Parameters
        ----------
        X, y
            Labelled rows. Labels that were not there in training are accepted: they are no evidence
            for any context, but evidence for a new one.
        groups : array of shape (n_samples,), default=None
            The group of each row; without it all rows are one group.
        abstain : bool, default=False
            Return -1 where no context is at least 90 % probable or none explains the group.

        Returns
        -------
        Identification
            One entry per group.
        """
        check_is_fitted(self, "local_models_")
        X, target = self._check_labelled_rows(X, y, reset=False)
        self._warn_about_far(X)
        one_group = np.zeros(len(target), dtype=int)
        labels, group = encode_groups(one_group if groups is None else groups, len(target))
        if self._has_effects:
            return self._identify_with_effects(X, target, labels, group, abstain)
        losses = self._losses_where_known(X, target)  #                             (N, K)
        known = np.nan_to_num(losses, nan=0.0, posinf=np.inf)
        scores = sum_by_group(trim_rows(known, group, self.trim), group)  #         (m, K)
        state = self.fitted_state_
        novelty = state.held_out.novelty(losses, group, scores.argmin(1))
        has_no_known_label = np.bincount(group, ~np.isnan(losses[:, 0])) == 0
        is_new = (novelty > HELD_OUT.novelty_limit) | has_no_known_label
        evidence = scores / state.evidence_unit
        return Identification.from_scores(labels, evidence, novelty, is_new, abstain)

    def _identify_with_effects(
        self,
        X: Any,
        target: NDArray[Any],
        labels: NDArray[Any],
        group: NDArray[np.intp],
        abstain: bool,
    ) -> Identification:
        """Posterior of contexts and effects; novelty is how improbable the best context is."""
        state = self.fitted_state_
        assert isinstance(state.local_models, ClosedFormModels)
        assert state.effects is not None
        is_known = target >= 0 if hasattr(self, "classes_") else np.ones(len(target), dtype=bool)
        models, weight = state.local_models, is_known.astype(np.float64)
        rows = X, models.means(X), models.targets(target), group
        effects, scores = state.effects.of_groups(*rows, len(labels), weight)
        novelty = effects.novelty(*rows, scores.argmin(1), weight)
        has_no_known_label = np.bincount(group, is_known) == 0
        is_new = (novelty > HELD_OUT.novelty_limit) | has_no_known_label
        found = Identification.from_scores(labels, scores, novelty, is_new, abstain)
        return replace(found, effects=effects.effects, products=effects.products)

    def _losses_where_known(self, X: Any, target: NDArray[Any]) -> NDArray[np.float64]:
        """Loss of every row under every local model, (N, K); NaN for labels new to the model."""
        local_models = self.fitted_state_.local_models
        is_known = target >= 0 if hasattr(self, "classes_") else np.ones(len(target), dtype=bool)
        rows = np.flatnonzero(is_known)
        if len(rows) == len(target):
            return local_models.losses(X, target)
        losses = np.full((len(target), self.n_contexts_), np.nan)
        if len(rows):
            losses[rows] = local_models.losses(_safe_indexing(X, rows), target[rows])
        return losses

    def _score(
        self, metric: Callable[..., float], X: Any, y: Any, groups: Any, sample_weight: Any
    ) -> float:
        if groups is None:
            return float(metric(y, self.predict(X), sample_weight=sample_weight))
        rows, context = self._identify_by_half(X, y, groups)
        weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
        if isinstance(context, Identification):
            group = encode_groups(groups, len(y))[1][rows]
            with warnings.catch_warnings():  # groups of a single row have nothing to identify them
                warnings.simplefilter("ignore", LeafWarning)
                predictions = self.predict(_safe_indexing(X, rows), context, group)
        else:
            predictions = self.predict(_safe_indexing(X, rows), context)
        return float(metric(_safe_indexing(y, rows), predictions, sample_weight=weight))

    def _identify_by_half(
        self, X: Any, y: Any, groups: Any
    ) -> tuple[NDArray[np.intp], NDArray[np.intp] | Identification]:
        """Rows to score and their contexts, which every second row of each group identifies."""
        labels, group = encode_groups(groups, len(y))
        is_second = position_in_group(group) % 2 == 0
        is_support = is_second & (np.bincount(group)[group] > 1) & self._is_known(y)
        # A group of a single row cannot identify its context before it is scored.
        context = np.zeros(len(labels), dtype=np.intp)
        support = np.flatnonzero(is_support)
        if len(support):
            support_X, support_y = _safe_indexing(X, support), _safe_indexing(y, support)
            found = self.identify(support_X, support_y, group[support])
            if self._has_effects:
                return np.flatnonzero(~is_support), found
            context[found.groups] = found.context
        scored = np.flatnonzero(~is_support)
        return scored, context[group[scored]]

    # ---- updates --------------------------------------------------------------------------------

    def prune(self, min_usage: float | str = "auto", *, redundant: bool = True) -> Self:
        """Remove contexts that are superfluous: rarely used, or redundant.

        A context is redundant where the others explain its groups as well after training on them:
        each is left out in turn, the others are fine-tuned on the rows in `replay_buffer_`, and the
        loss is compared with that of all contexts fine-tuned for as long. Contexts that are needed
        keep their models as they are. With group effects, contexts that receive groups are fitted
        again, and the density of the stored groups is compared.

        Parameters
        ----------
        min_usage : float or "auto", default="auto"
            Contexts with a smaller share of the groups are removed, the least used first; "auto" is
            a tenth of a fair share. The most used context always stays.
        redundant : bool, default=True
            Whether to look for redundant contexts. Without it nothing is trained.

        Returns
        -------
        self
            The estimator, with `n_contexts_` and all that depends on it changed in place. Where
            contexts were removed, `converged_` and `stability_` are determined again.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LinearRegression
        >>> from leaflearn import LeafRegressor
        >>> rng = np.random.default_rng(0)
        >>> X, site = rng.normal(size=(200, 1)), np.repeat(np.arange(20), 10)
        >>> y = np.where(site % 3 == 0, -2.0, 2.0) * X[:, 0] + rng.normal(0, 0.1, 200)
        >>> leaf = LeafRegressor(n_contexts=4, local_model=LinearRegression(), random_state=0)
        >>> leaf.fit(X, y, groups=site).prune().n_contexts_
        2
        """
        check_is_fitted(self, "local_models_")
        is_number = isinstance(min_usage, numbers.Real) and not isinstance(min_usage, bool)
        if not (is_number and 0 <= float(min_usage) <= 1) and min_usage != "auto":
            raise ValueError(
                f"min_usage={min_usage!r}, but a share between 0 and 1, or 'auto', was expected."
            )
        with self._unchanged_on_error():
            self._replace_contexts(prune(self.fitted_state_, self, min_usage, redundant))
        return self

    def merge(self, first: int | None = None, second: int | None = None) -> Self:
        """Make two contexts one; without arguments, all pairs that do not conflict.

        One model is fine-tuned on the groups of both, from the rows in `replay_buffer_`. Two
        contexts do not conflict where that model explains them as well as the two models do that
        are fine-tuned for as long. With group effects, the density of the stored groups decides;
        groups without stored rows keep what is known of their effects.

        Parameters
        ----------
        first, second : int, default=None
            The contexts, which are merged whether they conflict or not.

        Returns
        -------
        self
            The estimator, with `n_contexts_` and all that depends on it changed in place. Where
            contexts were removed, `converged_` and `stability_` are determined again.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LinearRegression
        >>> from leaflearn import LeafRegressor
        >>> rng = np.random.default_rng(0)
        >>> X, site = rng.normal(size=(200, 1)), np.repeat(np.arange(20), 10)
        >>> y = np.where(site % 2 == 0, -2.0, 2.0) * X[:, 0] + rng.normal(0, 0.1, 200)
        >>> leaf = LeafRegressor(n_contexts=2, local_model=LinearRegression(), random_state=0)
        >>> leaf = leaf.fit(X, y, groups=site)
        >>> leaf.merge().n_contexts_, leaf.merge(0, 1).n_contexts_
        (2, 1)
        """
        check_is_fitted(self, "local_models_")
        self._check_pair(first, second)
        with self._unchanged_on_error():
            self._replace_contexts(merge(self.fitted_state_, self, first, second))
        return self

    def partial_fit(self, X: Any, y: Any, groups: Any = None, classes: Any = None) -> Self:
        """Learn from new groups, and open a context where none explains them.

        New groups go to the contexts that explain them, whose models are fine-tuned on the new rows
        together with those in `replay_buffer_`, so that nothing is forgotten. Groups that no
        context explains open a new one, if there are enough rows to learn from (at least 20) and a
        new model of half of their rows predicts the other half significantly better than the known
        contexts do; otherwise they are stored and train no model. New rows of known groups alone
        leave the local models as they are where no group changes its context. The first call on an
        estimator that is not fitted is `fit`.

        With group effects, the effects and contexts of groups are updated as if all their rows had
        come at once, while means and variances of known contexts stay as they are; fit again when
        there are many more groups. In a classifier this is exact for groups whose rows are all in
        `replay_buffer_`; for others, what is known of their effects enters as a normal
        distribution. A context is opened for at least two groups whose density it
        raises by more than it costs in the Bayesian information criterion; its variances are those
        of the nearest context.

        Parameters
        ----------
        X, y
            New rows, as for `fit`.
        groups : array of shape (n_samples,), default=None
            The group of each row; a known label adds rows to its group. Without it every row is a
            new group of its own.
        classes : array of shape (n_classes,), default=None
            All labels that can occur, for a classifier; only for the first call. Without it, those
            of the first call.

        Returns
        -------
        self
            The estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LinearRegression
        >>> from leaflearn import LeafRegressor
        >>> rng = np.random.default_rng(0)
        >>> X, site = rng.normal(size=(300, 1)), np.repeat(np.arange(30), 10)
        >>> slope = np.where(site < 20, np.where(site % 2 == 0, -2.0, 2.0), 9.0)
        >>> y = slope * X[:, 0] + rng.normal(0, 0.1, 300)
        >>> leaf = LeafRegressor(n_contexts=2, local_model=LinearRegression(), random_state=0)
        >>> leaf.fit(X[:200], y[:200], groups=site[:200]).n_contexts_
        2
        >>> leaf.partial_fit(X[200:], y[200:], groups=site[200:]).n_contexts_
        3
        """
        if not hasattr(self, "local_models_"):
            return self._first_fit(X, y, groups, classes)
        known = np.asarray(getattr(self, "classes_", None))
        if classes is not None and not np.array_equal(np.unique(classes), known):
            raise ValueError(
                f"classes={np.unique(classes).tolist()} differs from the first call, which has to "
                "name all labels."
            )
        with self._unchanged_on_error():
            buffer = stored_rows(self.fitted_state_)
            X, target = self._check_labelled_rows(X, y, reset=False)
            self._refuse_new_labels(y, target)
            groups = self._number_rows(len(target)) if groups is None else groups
            labels, group = encode_groups(groups, len(target))
            row = np.arange(len(target))
            shape = buffer.n_outputs, buffer.is_classifier
            rows = GroupedData(X, target, group, row, None, *shape)
            update = update_contexts(self.fitted_state_, self, self.groups_, rows, labels)
            self.groups_ = update.groups
            self.input_range_ = join_ranges(getattr(self, "input_range_", None), find_range(X))
            self._assign(update.state, update.data)
        return self

    @property
    def replay_buffer_(self) -> GroupedData | None:
        """Training rows kept for updates; set it to None to discard them."""
        check_is_fitted(self, "local_models_")
        return self.fitted_state_.replay_buffer

    @replay_buffer_.setter
    def replay_buffer_(self, rows: GroupedData | None) -> None:
        self.fitted_state_ = replace(self.fitted_state_, replay_buffer=rows)

    @property
    def memory_(self) -> GroupedData | None:
        """The former name of `replay_buffer_`."""
        warn_renamed("memory_", "replay_buffer_")
        return self.replay_buffer_

    @memory_.setter
    def memory_(self, rows: GroupedData | None) -> None:
        warn_renamed("memory_", "replay_buffer_")
        self.replay_buffer_ = rows

    def _replace_contexts(self, state: FittedState) -> None:
        """Assign contexts after `prune` or `merge`, diagnosed again where there are fewer."""
        n_before, state = self.n_contexts_, state.ordered_by_usage()
        buffer = None if self._has_effects else state.replay_buffer  # effects need no surrogate
        if state.n_contexts < n_before and buffer is not None:
            data, numbers = buffer.renumbered()
            surrogate = make_surrogate(data, check_random_state(self.random_state))
            # Other starts had other contexts, so that they are not compared.
            means = state.mean_scores[numbers]
            state = self._check_fit(state, surrogate, means, [], n_before=n_before)
        self._assign(state, state.replay_buffer)

    def _check_pair(self, first: Any, second: Any) -> None:
        if first is None and second is None:
            return
        is_context = [
            isinstance(k, numbers.Integral)
            and not isinstance(k, bool)
            and 0 <= int(k) < self.n_contexts_
            for k in (first, second)
        ]
        if not all(is_context) or first == second:
            raise ValueError(
                f"merge({first!r}, {second!r}), but two different contexts of 0 to "
                f"{self.n_contexts_ - 1} were expected, or none."
            )

    def _first_fit(self, X: Any, y: Any, groups: Any, classes: Any) -> Self:
        self._all_classes = classes
        try:
            return self.fit(X, y, groups=groups)
        finally:
            del self._all_classes

    def _refuse_new_labels(self, y: Any, target: NDArray[Any]) -> None:
        if hasattr(self, "classes_") and (target < 0).any():
            label = np.asarray(y).tolist()[int(np.argmax(target < 0))]
            raise ValueError(
                f"y holds {label!r}, a label that was not there before; known are "
                f"{self.classes_.tolist()}. Name all labels with classes= in the first call of "
                "partial_fit."
            )

    def _number_rows(self, n_rows: int) -> NDArray[Any]:
        """Labels for rows that are groups of their own: the next numbers."""
        if self.groups_.dtype.kind not in "iu":
            raise ValueError(
                "groups is None, but the groups of this model have names; pass groups= to say "
                "which row belongs to which group."
            )
        return np.arange(n_rows) + int(self.groups_.max()) + 1

    # ---- saving ---------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Save the fitted estimator as a folder that is safe to share; `leaflearn.load` reads it.

        The folder holds JSON, safetensors and, for scikit-learn local models, skops; never a
        pickle. It is written completely or not at all. An older model in its place is replaced,
        anything else is refused. The rows in `replay_buffer_` are saved too; set it to None to
        leave them out.

        Parameters
        ----------
        folder : str or path
            Where to save it.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np
        >>> from leaflearn import LeafRegressor
        >>> X, groups = np.arange(8.0)[:, None], np.repeat(np.arange(4), 2)
        >>> leaf = LeafRegressor(1, max_epochs=2).fit(X, X[:, 0], groups)
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     leaf.save(f"{parent}/model")
        ...     sorted(os.listdir(f"{parent}/model"))
        ['fitted.safetensors', 'model.json', 'weights.safetensors']
        """
        section, parts = describe_estimator(self)
        write_model(folder, {"estimator": section}, parts)

    def export_onnx(self, folder: str | Path) -> None:
        """Write networks, or linear and smooth local models, as ONNX files, one per context.

        `context_0.onnx`, ... take `X`, any number of rows as `predict` takes them: in double
        precision, with the scaling in the file, but in single precision for modules of a factory.
        The output is that of `predict` in the context, of shape (n,) or (n, n_outputs), or, for a
        classifier, that of `predict_proba`, (n, n_classes). `all.onnx` gives that of `predict_each`
        or `predict_proba_each`, (n, n_contexts_, ...). The classes are in the metadata of each
        file. Group effects are not in the files, and a warning says so.
        Needs `pip install 'leaflearn[onnx]'`.

        Parameters
        ----------
        folder : str or path
            Where to write them; an older export there is replaced, anything else is refused.
        """
        check_is_fitted(self, "local_models_")
        facts = {"estimator": type(self).__name__, "n_contexts": self.n_contexts_}
        if hasattr(self, "classes_"):
            facts["classes"] = to_json(self.classes_.tolist(), name="classes_")
        models, y_shape = self.fitted_state_.local_models, getattr(self, "y_shape_", ())
        export_onnx(models, self.input_shape_, y_shape, facts, folder)
        effects = self.fitted_state_.effects
        if effects is not None and len(effects.columns):
            warnings.warn(LeafWarning(EffectsNotExported()), stacklevel=2)

    def was_fitted_on(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> bool:
        """Whether the estimator was fitted on exactly these rows, by their fingerprint.

        Examples
        --------
        >>> import numpy as np
        >>> from leaflearn import LeafRegressor
        >>> X, groups = np.arange(8.0)[:, None], np.repeat(np.arange(4), 2)
        >>> leaf = LeafRegressor(1, max_epochs=2).fit(X, X[:, 0], groups)
        >>> leaf.was_fitted_on(X, X[:, 0], groups), leaf.was_fitted_on(X + 1, X[:, 0], groups)
        (True, False)
        """
        check_is_fitted(self, "local_models_")
        X = check_X(self, X, reset=False, engine=self._engine)
        target = self._check_y(y, reset=False)
        group = encode_groups(groups, len(target))[1]
        return fingerprint(X, target, group, check_weights(sample_weight, X)) == self.fingerprint_

    # ---- scikit-learn ---------------------------------------------------------------------------

    @property
    def _engine(self) -> str:
        """The engine of `local_model`; once fitted, the one that was chosen."""
        engine = choose_engine(self.local_model)
        if engine != "chosen" or "fitted_state_" not in vars(self):
            return engine
        models = self.fitted_state_.local_models
        return "closed_form" if isinstance(models, ClosedFormModels) else "mlp"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self._engine == "refit":
            inner = get_tags(self.local_model).input_tags
            tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags


def mean_over_groups(losses: NDArray[np.float64], data: GroupedData) -> float:
    """Mean over groups of the weighted mean over their rows (N,); groups without rows are left out.

    Examples
    --------
    >>> x, group = np.zeros((3, 1)), np.array([0, 0, 1])
    >>> mean_over_groups(np.array([1.0, 3.0, 6.0]), GroupedData(x, x, group, group, None, 1, False))
    4.0
    """
    weight = np.ones(len(losses)) if data.weight is None else data.weight
    mass = np.bincount(data.group, weight)
    has_rows = mass > 0
    sums = np.bincount(data.group, losses * weight)
    return float((sums[has_rows] / mass[has_rows]).mean())
