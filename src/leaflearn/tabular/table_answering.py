"""Asking a fitted table model: which context a new source is in, and what the contexts answer for new rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.diagnostics.required_rows import count_required_rows
from leaflearn.tabular.frames import to_frame
from leaflearn.tabular.images import ImageFiles
from leaflearn.tabular.local_model_names import FROM_FILE
from leaflearn.tabular.predictions import Answers
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.rows import keep_rows_with_target, name_sources
from leaflearn.tabular.targets import Target


def ignore(_: Any) -> None:
    """Who has nothing to show need not be told."""


class AnsweringTables:
    """What a `TableModel` answers once it is fitted."""

    # What the user said, and what a fit leaves behind.
    target: str
    group: str | None
    images: Path | None
    estimator_: Any
    preparation_: Preparation | ImageFiles
    target_: Target
    local_model_: str

    def identify(self, frame: Any, what: str = "the table", images: Path | None = None) -> Any:
        """Find the context of new sources from a few labelled rows of each.

        Parameters
        ----------
        frame : pandas.DataFrame
            Labelled rows. Without the column of the groups, all of them are one source.
        what : str
            What it is called in errors.
        images : path
            The folder with the pictures, for a model of pictures.

        Returns
        -------
        pandas.DataFrame
            A row for each source: group, context, probability, margin, is_new, and more_rows, the number of further labelled rows that
            would settle it (missing where more rows would not).
        """
        import pandas  # type: ignore[import-untyped]

        rows = keep_rows_with_target(to_frame(frame, what), self.target, what)
        names = name_sources(rows, self.group)
        X, y = self.features_of(rows, what, images), self.target_.read(rows[self.target])
        found = self.estimator_.identify(X, y, groups=names)
        more = count_required_rows(
            self.estimator_.fitted_state_.local_models,
            X,
            np.searchsorted(found.groups, names),
            found.probability,
            found.margin,
            found.is_new,
            evidence_unit=self.estimator_.fitted_state_.evidence_unit,
            is_classifier=hasattr(self.estimator_, "classes_"),
        )
        return pandas.DataFrame(
            {
                "group": found.groups,
                "context": found.context,
                "probability": found.probability.max(1),
                "margin": found.margin,
                "is_new": found.is_new,
                "more_rows": pandas.array(more, dtype="Int64"),
            }
        )

    def predict(
        self,
        frame: Any,
        what: str = "the table",
        *,
        context: int | None = None,
        support: Any = None,
        support_what: str = "the table of labelled rows",
        each: bool = False,
        by_group: bool = False,
        proba: bool = False,
        images: Path | None = None,
        on_row: Callable[[float], None] = ignore,
    ) -> Any:
        """Answer new rows: in a context, in the contexts that a few labelled rows tell, in each, or in those of the training groups.

        Parameters
        ----------
        frame : pandas.DataFrame
            The rows.
        what : str
            What it is called in errors.
        context : int
            Answer all rows in this context. It may be left out where there is only one.
        support : pandas.DataFrame
            A few labelled rows of the same sources, which tell their contexts.
        support_what : str
            What these are called in errors.
        each : bool
            Give the answers of all contexts.
        by_group : bool
            Take the contexts that the groups had in training.
        proba : bool
            Give the probability of each label, too.
        images : path
            The folder with the pictures, for a model of pictures.
        on_row : callable
            Told how many rows are done.

        Returns
        -------
        pandas.DataFrame
            context, probability and prediction of each row, or prediction_0, prediction_1, ... with `each`.
        """
        answers = Answers(self, to_frame(frame, what), what, proba, images, on_row)
        if each:
            return answers.of_each_context()
        if by_group:
            return answers.by_training_group()
        if support is not None:
            return answers.by_support(to_frame(support, support_what), support_what)
        if context is None and self.estimator_.n_contexts_ > 1:
            raise ValueError(
                f"The model has {self.estimator_.n_contexts_} contexts; say in which of them, or in each, rows are answered."
            )
        return answers.in_context(context or 0)

    def features_of(
        self, frame: Any, what: str = "the table", images: Path | None = None
    ) -> NDArray[Any]:
        """The rows as the estimator takes them, shape (N, F), or (N, 3, height, width) for pictures."""
        if isinstance(self.preparation_, Preparation):
            return self.preparation_(frame, what)
        folder = images or self.images
        if folder is None:
            raise ValueError(
                "The model learnt from pictures; say with --images in which folder the new ones are."
            )
        return self._flat(self.preparation_.read(frame, folder, what))

    def _flat(self, X: NDArray[Any]) -> NDArray[Any]:
        """Pictures as rows of numbers, for local models that take no others."""
        takes_pictures = self.local_model_ == "convnet" or self.local_model_.startswith(FROM_FILE)
        return X if takes_pictures else X.reshape(len(X), -1)
