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
from leaflearn.estimators.identification import Identification
from leaflearn.estimators.regressor import LeafRegressor
from leaflearn.messages import (
    FittedWithoutGroups,
    GroupsNotInTraining,
    GroupsWithoutLabels,
    MessageError,
    NoProbabilities,
    PredictedWithoutEffects,
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
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Predictions:
    """Predictions of a fitted `TableModel` for the rows of a table."""

    model: TableModel
    frame: Any  # with an index 0, 1, 2, ...
    what: str
    proba: bool
    images: Path | None
    on_row: Callable[[float], None]

    @property
    def have_group_effects(self) -> bool:
        """Whether the model has group effects, and the rows have groups."""
        return self._has_effects and self.model.group in self.frame.columns

    def in_context(self, context: int) -> Any:
        """All rows in a context that the user names, whose probability is therefore 1."""
        n_contexts = self.model.estimator_.n_contexts_
        if not 0 <= context < n_contexts:
            raise ValueError(
                f"There is no context {context}; the model has {n_contexts}, numbered from 0."
            )
        n_rows = len(self.frame)
        return self._predict_in(np.full(n_rows, context), np.ones(n_rows))

    def by_training_group(self) -> Any:
        """Each row in the context of its training group, with the effects of the group."""
        estimator = self.model.estimator_
        names = self._group_names(f"{self.what}, which is needed to look up the contexts")
        place, unknown = _find_places(names, estimator.groups_)
        if self._has_effects:
            self._warn_about_unknown(unknown, place, has_support=False)
            known = estimator.contexts_, estimator.probabilities_
            return self._predict_for(names, place, *known, None)
        if unknown:
            raise MessageError(GroupsNotInTraining(unknown))
        probability = estimator.probabilities_.max(1)
        return self._predict_in(estimator.contexts_[place], probability[place])

    def by_support(self, support: Any, what: str) -> Any:
        """Each row in the context and with the effects that labelled rows of its group suggest."""
        found, _ = self.model.identify_groups(support, what, self.images)
        _warn_about_uncertain(found)
        group, n_rows = self.model.group, len(self.frame)
        if group is not None and group in self.frame.columns and group in support.columns:
            names = self._group_names(self.what)
        elif len(found) > 1:
            raise ValueError(
                f"The labelled rows belong to {len(found)} groups, but {self.what} has no "
                f"column {group!r}; add it."
            )
        else:
            names = np.repeat(found.groups, n_rows)
        place, unknown = _find_places(names, found.groups)
        if self._has_effects:
            self._warn_about_unknown(unknown, place, has_support=True)
            return self._predict_for(names, place, found.context, found.probability, found)
        if unknown:
            raise MessageError(GroupsWithoutLabels(unknown))
        return self._predict_in(found.context[place], found.probability.max(1)[place])

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

    def _predict_in(self, context: Rows, probability: Floats) -> Any:
        """Each row in its context, without group effects."""
        return self._predict(context, probability, lambda rows: {"context": context[rows]})

    def _predict_for(
        self,
        names: NDArray[Any],
        place: Rows,
        contexts: Rows,
        posterior: Floats,
        found: Identification | None,
    ) -> Any:
        """Each row with the effects of its group, averaged over the posterior of its contexts.

        Groups without a place are predicted without effects, averaged over the shares of the
        contexts.
        """
        priors = self.model.estimator_.priors_
        is_unknown = place < 0
        context = np.where(is_unknown, priors.argmax(), contexts[place])
        probability = np.where(is_unknown, priors.max(), posterior.max(1)[place])
        return self._predict(
            context, probability, lambda rows: {"context": found, "groups": names[rows]}
        )

    def _predict(
        self,
        context: Rows,
        probability: Floats,
        arguments_of: Callable[[Rows], dict[str, Any]],
    ) -> Any:
        """The columns of all rows; `arguments_of` are those of the estimator's `predict`."""
        estimator = self.model.estimator_

        def predict(X: NDArray[Any], rows: Rows) -> dict[str, NDArray[Any]]:
            columns = {"context": context[rows], "probability": probability[rows]}
            how = arguments_of(rows)
            if self._has_effects and isinstance(estimator, LeafRegressor):
                mean, deviation = estimator.predict(X, **how, return_std=True)
                columns |= {"prediction": mean, "standard_deviation": deviation}
            else:
                columns["prediction"] = estimator.predict(X, **how)
            if self.proba:
                probabilities = self._probabilities("predict_proba")(X, **how)
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

    @property
    def _has_effects(self) -> bool:
        return self.model.estimator_.fitted_state_.effects is not None

    def _warn_about_unknown(self, unknown: tuple[str, ...], place: Rows, has_support: bool) -> None:
        if unknown:
            message = PredictedWithoutEffects(
                unknown,
                int((place < 0).sum()),
                self.model.estimator_.n_contexts_,
                has_support,
            )
            warnings.warn(TableWarning(message), stacklevel=2)

    def _name_labels(self, prefix: str, probabilities: NDArray[Any]) -> dict[str, NDArray[Any]]:
        labels = self.model.estimator_.classes_.tolist()
        return {f"{prefix}_{label}": probabilities[:, c] for c, label in enumerate(labels)}

    def _probabilities(self, method: str) -> Callable[..., NDArray[np.float64]]:
        if not self.model.target_.is_label:
            raise MessageError(NoProbabilities(self.model.target))
        function: Callable[..., NDArray[np.float64]] = getattr(self.model.estimator_, method)
        return function


def _find_places(names: NDArray[Any], known: NDArray[Any]) -> tuple[Rows, tuple[str, ...]]:
    """The place of each name among the known ones, -1 for others; and the others, in order."""
    places = {name: i for i, name in enumerate(known.tolist())}
    place = np.array([places.get(name, -1) for name in names.tolist()], dtype=np.intp)
    return place, tuple(dict.fromkeys(str(name) for name in names[place < 0].tolist()))


def _warn_about_uncertain(found: Identification) -> None:
    """Warn where labelled rows do not determine the context of a group, or fit no context."""
    is_sure = found.probability.max(1) >= diagnostic_settings.DIAGNOSTICS.sure_probability
    is_uncertain = ~is_sure & ~found.is_new
    for kind, rows in ((UncertainContexts, is_uncertain), (UnknownContexts, found.is_new)):
        if rows.any():
            groups = tuple(map(str, found.groups[rows]))
            warnings.warn(TableWarning(kind(groups)), stacklevel=2)
