"""Answers for the rows of a table, as columns to put beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.estimators.identification import SURE
from leaflearn.tabular.reading import find_column, list_names
from leaflearn.tabular.rows import name_sources
from leaflearn.tabular.text_encoding import warn

ROWS_AT_ONCE = 50_000


@dataclass(frozen=True)
class Answers:
    """What a table model says of some rows."""

    model: Any  # a TableModel
    frame: Any  # numbered from 0
    what: str
    proba: bool
    images: Path | None
    on_row: Callable[[float], None]

    def in_context(self, context: int) -> Any:
        """All rows in one context, which somebody named: it is sure."""
        self._check_context(context)
        return self._answer(np.full(len(self.frame), context), np.ones(len(self.frame)))

    def by_training_group(self) -> Any:
        """Each row in the context that its group had in training."""
        estimator = self.model.estimator_
        names = self._names(f"{self.what}, which --by-group needs")
        return self._join(
            names,
            estimator.groups_,
            estimator.contexts_,
            estimator.probabilities_.max(1),
            "was not there in training",
        )

    def by_support(self, support: Any, what: str) -> Any:
        """Each row in the context that a few labelled rows of its source tell."""
        found = self.model.identify(support, what, self.images)
        _warn_of_guesses(found)
        contexts, sure = found["context"].to_numpy(), found["probability"].to_numpy()
        has_groups = (
            self.model.group is not None
            and self.model.group in self.frame.columns
            and self.model.group in support.columns
        )
        if not has_groups and len(found) > 1:
            raise ValueError(
                f"The labelled rows are of {len(found)} groups, but {self.what} has no column {self.model.group!r}; add it."
            )
        if not has_groups:
            return self._answer(
                np.full(len(self.frame), contexts[0]), np.full(len(self.frame), sure[0])
            )
        return self._join(
            self._names(self.what),
            found["group"].to_numpy(),
            contexts,
            sure,
            "has no labelled rows",
        )

    def of_each_context(self) -> Any:
        """The answer of every context to every row."""
        n_contexts = self.model.estimator_.n_contexts_

        def answer(X: NDArray[Any], _: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
            each = self.model.estimator_.predict_each(X)
            columns = {f"prediction_{k}": each[:, k] for k in range(n_contexts)}
            if self.proba:
                probabilities = self._probabilities("predict_proba_each")(X)
                for k in range(n_contexts):
                    columns |= {
                        f"probability_{k}_{label}": probabilities[:, k, c]
                        for c, label in enumerate(self._labels())
                    }
            return columns

        return self._by_slices(answer)

    def _answer(self, context: NDArray[np.intp], sure: NDArray[np.float64]) -> Any:
        def answer(X: NDArray[Any], rows: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
            columns = {"context": context[rows], "probability": sure[rows]}
            columns["prediction"] = self.model.estimator_.predict(X, context=context[rows])
            if self.proba:
                probabilities = self._probabilities("predict_proba")(X, context=context[rows])
                columns |= {
                    f"probability_{label}": probabilities[:, c]
                    for c, label in enumerate(self._labels())
                }
            return columns

        return self._by_slices(answer)

    def _by_slices(
        self, answer: Callable[[NDArray[Any], NDArray[np.intp]], dict[str, NDArray[Any]]]
    ) -> Any:
        import pandas  # type: ignore[import-untyped]

        parts = []
        for start in range(0, len(self.frame), ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, len(self.frame)))
            X = self.model.features_of(self.frame.iloc[rows], self.what, self.images)
            parts.append(pandas.DataFrame(answer(X, rows)))
            self.on_row(float(rows[-1] + 1))
        return pandas.concat(parts, ignore_index=True)

    def _names(self, what: str) -> NDArray[Any]:
        model = self.model
        if model.group is None:
            raise ValueError(
                "The model was fitted without groups, so rows cannot be answered by their group; name a context, or ask each."
            )
        find_column(self.frame.columns, model.group, what)
        return name_sources(self.frame, model.group)

    def _join(
        self, names: NDArray[Any], known: NDArray[Any], contexts: NDArray[np.intp], sure: NDArray[np.float64], fault: str
    ) -> Any:  # fmt: skip
        place = {name: i for i, name in enumerate(known.tolist())}
        strangers = list(dict.fromkeys(name for name in names.tolist() if name not in place))
        if strangers:
            many = len(strangers) > 1
            fault = fault.replace("was", "were").replace("has", "have") if many else fault
            cure = f"give a few labelled rows of {'each' if many else 'it'} with --support, or ask --each context"
            raise ValueError(f"Group{'s' if many else ''} {list_names(strangers)} {fault}; {cure}.")
        at = np.array([place[name] for name in names.tolist()])
        return self._answer(contexts[at], sure[at])

    def _check_context(self, context: int) -> None:
        n_contexts = self.model.estimator_.n_contexts_
        if not 0 <= context < n_contexts:
            raise ValueError(
                f"There is no context {context}; the model has {n_contexts}, numbered from 0."
            )

    def _labels(self) -> list[str]:
        return [str(label) for label in self.model.estimator_.classes_.tolist()]

    def _probabilities(self, method: str) -> Callable[..., NDArray[np.float64]]:
        if not self.model.target_.is_label:
            raise ValueError(
                f"The target {self.model.target!r} is a quantity, which has no probabilities of labels; leave out --proba."
            )
        found: Callable[..., NDArray[np.float64]] = getattr(self.model.estimator_, method)
        return found


def _warn_of_guesses(found: Any) -> None:
    """Say so where labelled rows leave the context of a source open, or fit none: its rows are answered all the same."""
    is_new = found["is_new"].to_numpy(dtype=bool)
    is_open = (found["probability"].to_numpy() < SURE) & ~is_new
    if is_open.any():
        names = list_names(found["group"][is_open])
        warn(
            f"The labelled rows leave the context of {names} open, and the likeliest one is taken; `leaflearn identify` says what to label."
        )
    if is_new.any():
        names = list_names(found["group"][is_new])
        warn(
            f"The labelled rows of {names} fit no known context, so the answers may be wrong; fit again with more of such rows."
        )
