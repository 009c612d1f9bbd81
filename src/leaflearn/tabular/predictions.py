"""Predictions for the rows of a table, as columns to put beside them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.diagnostics import settings as diagnostic_settings
from leaflearn.messages import (
    FittedWithoutGroups,
    GroupsNotInTraining,
    GroupsWithoutLabels,
    Message,
    MessageError,
    NoProbabilities,
    TableWarning,
    UncertainContexts,
    UnknownContexts,
)
from leaflearn.tabular.reading import find_column
from leaflearn.tabular.rows import name_sources
from leaflearn.tabular.unfamiliar_rows import warned_already

if TYPE_CHECKING:
    from leaflearn.tabular.table_model import TableModel

ROWS_AT_ONCE = 50_000

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Predictions:
    """Predictions of a fitted `TableModel` for the rows of a table."""

    model: TableModel
    frame: Any  # with an index 0, 1, 2, ...
    what: str
    proba: bool
    images: Path | None
    on_row: Callable[[float], None]

    def in_context(self, context: int) -> Any:
        """All rows in a context that the user names, whose probability is therefore 1."""
        n_contexts = self.model.estimator_.n_contexts_
        if not 0 <= context < n_contexts:
            raise ValueError(
                f"There is no context {context}; the model has {n_contexts}, numbered from 0."
            )
        return self._predict(np.full(len(self.frame), context), np.ones(len(self.frame)))

    def by_training_group(self) -> Any:
        """Each row in the context of its training group."""
        estimator = self.model.estimator_
        names = self._group_names(f"{self.what}, which is needed to look up the contexts")
        probability = estimator.probabilities_.max(1)
        return self._look_up(
            names, estimator.groups_, estimator.contexts_, probability, GroupsNotInTraining
        )

    def by_support(self, support: Any, what: str) -> Any:
        """Each row in the context that is identified from labelled rows of its group."""
        identified = self.model.identify(support, what, self.images)
        _warn_about_uncertain(identified)
        contexts = identified["context"].to_numpy()
        probability = identified["probability"].to_numpy()
        group, n_rows = self.model.group, len(self.frame)
        if group is not None and group in self.frame.columns and group in support.columns:
            known = identified["group"].to_numpy()
            names = self._group_names(self.what)
            return self._look_up(names, known, contexts, probability, GroupsWithoutLabels)
        if len(identified) > 1:
            raise ValueError(
                f"The labelled rows belong to {len(identified)} groups, but {self.what} has no "
                f"column {group!r}; add it."
            )
        return self._predict(np.full(n_rows, contexts[0]), np.full(n_rows, probability[0]))

    def in_each_context(self) -> Any:
        """The predictions of every context for every row."""
        n_contexts = self.model.estimator_.n_contexts_

        def predict(X: NDArray[Any], _: Rows) -> dict[str, NDArray[Any]]:
            each = self.model.estimator_.predict_each(X)
            columns = {f"prediction_{k}": each[:, k] for k in range(n_contexts)}
            if self.proba:
                probabilities = self._probabilities("predict_proba_each")(X)
                for k in range(n_contexts):
                    columns |= self._name_labels(f"probability_{k}", probabilities[:, k])
            return columns

        return self._by_slices(predict)

    def _predict(self, context: Rows, probability: NDArray[np.float64]) -> Any:
        def predict(X: NDArray[Any], rows: Rows) -> dict[str, NDArray[Any]]:
            columns = {"context": context[rows], "probability": probability[rows]}
            columns["prediction"] = self.model.estimator_.predict(X, context=context[rows])
            if self.proba:
                probabilities = self._probabilities("predict_proba")(X, context=context[rows])
                columns |= self._name_labels("probability", probabilities)
            return columns

        return self._by_slices(predict)

    def _by_slices(self, predict: Callable[[NDArray[Any], Rows], dict[str, NDArray[Any]]]) -> Any:
        import pandas  # type: ignore[import-untyped]

        self.model.warn_about_unfamiliar(self.frame, self.what)
        parts = []
        for start in range(0, len(self.frame), ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, len(self.frame)))
            X = self.model.features_of(self.frame.iloc[rows], self.what, self.images)
            with warned_already():
                parts.append(pandas.DataFrame(predict(X, rows)))
            self.on_row(float(rows[-1] + 1))
        return pandas.concat(parts, ignore_index=True)

    def _group_names(self, what: str) -> NDArray[Any]:
        if self.model.group is None:
            raise MessageError(FittedWithoutGroups())
        find_column(self.frame.columns, self.model.group, what)
        return name_sources(self.frame, self.model.group)

    def _look_up(
        self,
        names: NDArray[Any],
        known: NDArray[Any],
        contexts: Rows,
        probability: NDArray[np.float64],
        if_unknown: Callable[[tuple[str, ...]], Message],
    ) -> Any:
        place = {name: i for i, name in enumerate(known.tolist())}
        unknown = dict.fromkeys(str(name) for name in names.tolist() if name not in place)
        if unknown:
            raise MessageError(if_unknown(tuple(unknown)))
        at = np.array([place[name] for name in names.tolist()])
        return self._predict(contexts[at], probability[at])

    def _name_labels(self, prefix: str, probabilities: NDArray[Any]) -> dict[str, NDArray[Any]]:
        labels = self.model.estimator_.classes_.tolist()
        return {f"{prefix}_{label}": probabilities[:, c] for c, label in enumerate(labels)}

    def _probabilities(self, method: str) -> Callable[..., NDArray[np.float64]]:
        if not self.model.target_.is_label:
            raise MessageError(NoProbabilities(self.model.target))
        function: Callable[..., NDArray[np.float64]] = getattr(self.model.estimator_, method)
        return function


def _warn_about_uncertain(identified: Any) -> None:
    """Warn where labelled rows do not determine the context of a group, or fit no context."""
    is_new = identified["is_new"].to_numpy(dtype=bool)
    is_uncertain = (
        identified["probability"].to_numpy() < diagnostic_settings.DIAGNOSTICS.sure_probability
    ) & ~is_new
    for kind, rows in ((UncertainContexts, is_uncertain), (UnknownContexts, is_new)):
        if rows.any():
            groups = tuple(map(str, identified["group"][rows]))
            warnings.warn(TableWarning(kind(groups)), stacklevel=2)
