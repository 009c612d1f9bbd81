"""Asking a fitted estimator: what every context answers, what one answers, and which context a new source is in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from leaflearn.core.grouped_data import as_labels, encode_groups, find_groups, position_in_group
from leaflearn.core.training import ROWS_AT_ONCE
from leaflearn.core.trimming import trim_groups
from leaflearn.diagnostics import settings as diagnostic_settings
from leaflearn.diagnostics.novelty import HeldOut, sum_by_group
from leaflearn.engines.engine import choose_engine
from leaflearn.engines.local_models import LocalModels
from leaflearn.estimators.identification import Identification
from leaflearn.estimators.validation import check_rows, check_X


class AnsweringContexts:
    """What `LeafRegressor` and `LeafClassifier` answer once they are fitted."""

    # What a fit leaves behind, and what the two kinds of estimator do differently.
    local_model: Any
    trim: float
    n_contexts_: int
    groups_: NDArray[Any]
    contexts_: NDArray[np.intp]
    _local_models: LocalModels
    _held_out: HeldOut
    _temperature: float
    _check_y: Callable[..., NDArray[Any]]
    _answer: Callable[[NDArray[np.float64]], NDArray[Any]]

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
            Labelled rows. Labels that were not there in training are welcome: they speak for no context, and for a new one.
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
        labels, group = encode_groups(
            np.zeros(len(target), dtype=int) if groups is None else groups, len(target)
        )
        losses = self._losses_where_known(
            X, target
        )  #                                             (N, K)
        scores = sum_by_group(
            self._trimmed(np.nan_to_num(losses, nan=0.0, posinf=np.inf), group), group
        )  # (m, K)
        novelty = self._held_out.novelty(losses, group, scores.argmin(1))
        no_label_is_known = np.bincount(group, ~np.isnan(losses[:, 0])) == 0
        return Identification.from_scores(
            labels,
            scores / self._evidence_unit,
            novelty,
            (novelty > diagnostic_settings.DIAGNOSTICS.novelty_limit) | no_label_is_known,
            abstain,
        )

    @property
    def _evidence_unit(self) -> float:
        """By so much must losses differ for e to 1 in favour of a context."""
        return self._temperature * self._held_out.evidence_factor

    @property
    def _engine(self) -> str:
        return choose_engine(self.local_model)

    def _trimmed(self, losses: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
        """The losses (N, K) with 0 for the worst rows of each group, as in training."""
        return (
            trim_groups(
                torch.as_tensor(losses.T), torch.as_tensor(group), int(group.max()) + 1, self.trim
            )
            .numpy()
            .T
        )

    def _losses_where_known(self, X: Any, target: NDArray[Any]) -> NDArray[np.float64]:
        """Loss of every row under every local model, (N, K); NaN where the class number is -1, for a label nobody has seen."""
        rows = np.flatnonzero(target >= 0) if hasattr(self, "classes_") else np.arange(len(target))
        if len(rows) == len(target):
            return self._local_models.losses(X, target)
        losses = np.full((len(target), self.n_contexts_), np.nan)
        if len(rows):
            losses[rows] = self._local_models.losses(_safe_indexing(X, rows), target[rows])
        return losses

    def _score(
        self, metric: Callable[..., float], X: Any, y: Any, groups: Any, sample_weight: Any
    ) -> float:
        if groups is None:
            return float(metric(y, self.predict(X), sample_weight=sample_weight))
        rows, context = self._context_by_half(X, y, groups)
        weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return float(
            metric(
                _safe_indexing(y, rows),
                self.predict(_safe_indexing(X, rows), context),
                sample_weight=weight,
            )
        )

    def _context_by_half(
        self, X: Any, y: Any, groups: Any
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows to be scored, and their contexts: every second row of a group identifies it, the others are scored."""
        labels, group = encode_groups(groups, len(y))
        support = (
            (position_in_group(group) % 2 == 0)
            & (np.bincount(group)[group] > 1)
            & self._is_known(y)
        )
        context = np.zeros(
            len(labels), dtype=np.intp
        )  # a group of one row tells nothing before it is scored: the most used context
        if support.any():
            found = self.identify(
                _safe_indexing(X, np.flatnonzero(support)),
                _safe_indexing(y, np.flatnonzero(support)),
                group[support],
            )
            context[found.groups] = found.context
        scored = np.flatnonzero(~support)
        return scored, context[group[scored]]

    def _is_known(self, y: Any) -> NDArray[np.bool_]:
        """Which targets can identify a context; a label that was not there in training cannot."""
        return np.ones(len(y), dtype=bool)

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self, "local_models_")
        return self._local_models.outputs(check_X(self, X, reset=False, engine=self._engine))

    def _in_context(
        self,
        X: Any,
        context: Any,
        groups: Any,
        finish: Callable[[NDArray[np.float64]], NDArray[Any]],
    ) -> NDArray[Any]:
        """The finished answers of each row's own context, a slice of rows at a time: those of all contexts may not fit into memory."""
        check_is_fitted(self, "local_models_")
        X = check_X(self, X, reset=False, engine=self._engine)
        contexts = self._contexts_of_rows(X.shape[0], context, groups)
        answers = []
        for start in range(0, len(contexts), ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, len(contexts)))
            outputs = self._local_models.outputs(
                _safe_indexing(X, rows)
            )  #                        (n, K, D)
            answers.append(finish(outputs[np.arange(len(rows)), contexts[rows]]))
        return np.concatenate(answers)

    def _contexts_of_rows(self, n_rows: int, context: Any, groups: Any) -> NDArray[np.intp]:
        """The context of each row, from whatever the user told, shape (n_rows,)."""
        if context is None:
            return (
                np.zeros(n_rows, dtype=np.intp)
                if groups is None
                else self._look_up(groups, n_rows, self.groups_, self.contexts_)
            )
        if groups is not None and not isinstance(context, Identification):
            raise ValueError(
                "both context and groups are given, and they may disagree; give one of them."
            )
        if isinstance(context, Identification):
            if groups is None and len(context) == 1:
                groups = np.repeat(context.groups, n_rows)
            if groups is None:
                raise ValueError(
                    f"context holds {len(context)} groups, but groups is None; say with groups= which row belongs to which."
                )
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
            raise ValueError(
                f"context={outside.flat[0]} is out of range; this model has {self.n_contexts_} contexts, numbered from 0."
            )
        return np.broadcast_to(rows, (n_rows,))

    @staticmethod
    def _look_up(
        groups: Any, n_rows: int, known: NDArray[Any], contexts: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        labels = as_labels(groups)
        if len(labels) != n_rows:
            raise ValueError(
                f"groups has {len(labels)} entries, but X has {n_rows} rows; give one group label for every row."
            )
        found = find_groups(labels, known)
        if (found < 0).any():
            stranger = labels.tolist()[int(np.argmax(found < 0))]
            raise ValueError(
                f"group {stranger!r} is not known; identify it from a few labelled rows first."
            )
        return contexts[found]
