"""`TableModel`: fit contexts to a table, identify the contexts of new groups, predict, save."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leaflearn._renamed import warn_renamed
from leaflearn.core.training import Callback
from leaflearn.diagnostics.required_rows import Sources, count_required_rows
from leaflearn.estimators.classifier import LeafClassifier
from leaflearn.estimators.identification import Identification
from leaflearn.estimators.regressor import LeafRegressor
from leaflearn.messages import ContextNotChosen, Message, MessageError
from leaflearn.tabular.fitting import FittedTable, fit_table, read_features
from leaflearn.tabular.held_out import HeldOutErrors
from leaflearn.tabular.images import ImageFiles
from leaflearn.tabular.predictions import Predictions
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.reading import to_frame
from leaflearn.tabular.rows import keep_rows_with_target, name_sources
from leaflearn.tabular.saving import load_table_model, save_table_model
from leaflearn.tabular.targets import Target
from leaflearn.tabular.unfamiliar_rows import TrainingValues, warn_about_unfamiliar, warned_already
from leaflearn.tabular.warning_log import log_warnings


def ignore(_: Any) -> None:
    """Report nothing: the default of callbacks that show progress."""


class TableModel:
    """Contexts in a table: which groups share one, a model per context, and predictions.

    Parameters
    ----------
    target : str
        The column to predict.
    group : str, default=None
        The column that says which rows are known to share a context: annotator, site, session or
        device.
    contexts : int or "auto", default="auto"
        The number of contexts; "auto" determines it from the data.
    task : {"auto", "classification", "regression"}, default="auto"
        Whether the target is a label or a quantity; "auto" treats text and few different whole
        numbers as labels, and ratings (1 to 4, 1 to 5, -2 to 2, ...) as quantities.
    local_model : str, default=None
        "mlp", "linear", "smooth", "boosting", or "module:PATH.py:FACTORY"; for images also
        "convnet". "linear" and "smooth" models of quantities have group effects, if there are at
        least 20 groups. None is a network that suits the data, or a linear model if each labelled
        item has a feature of its own.
    features : list of str, default=None
        The columns to learn from, all of which are used; by default all but the target and the
        group, without those that are not informative.
    drop : list of str, default=()
        Columns to leave out.
    images : path, default=None
        A folder with images, which are used instead of the columns.
    image_column : str, default=None
        The column that names the image files; by default the first whose values are files in the
        folder.
    random_state : int, default=0
        Seed of everything that is random.

    Attributes
    ----------
    estimator_ : LeafClassifier or LeafRegressor
        Fitted to the features; its groups are named by text.
    preparation_ : Preparation or ImageFiles
        How rows become features, and the column of each feature.
    target_ : Target
        The task, and why it was chosen.
    local_model_ : str
        The name of the local model that was used.
    errors_ : HeldOutErrors or None
        Errors on rows held out within the groups, of the contexts and of a pooled model; None if
        every group has one row.
    group_sizes_ : ndarray of shape (n_groups,)
        Number of rows of each group, in the order of `estimator_.groups_`.
    n_rows_ : int
        Number of rows that were used.
    training_values_ : TrainingValues or None
        Ranges and categories of the columns that were used; None for images, and if version 0.1.0
        saved the model.
    warnings_ : list of leaflearn.messages.Message
        What the fit warned about; `str(message)` is the sentence. Models saved by older versions
        may have none.
    informative_columns_ : list of str
        The columns that were used: those that are associated with the target within the groups,
        differ between groups, or were named in `features`.

    Examples
    --------
    >>> import numpy, pandas
    >>> rng = numpy.random.default_rng(0)
    >>> site = numpy.repeat(numpy.arange(20), 10)
    >>> table = pandas.DataFrame({"site": site, "dose": rng.normal(size=200)})
    >>> table["effect"] = table.dose * numpy.where(site % 2 == 0, 1.0, -1.0)
    >>> model = TableModel("effect", group="site", local_model="linear").fit(table)
    >>> model.estimator_.n_contexts_
    2
    >>> each = model.predict(pandas.DataFrame({"dose": [1.0]}), each=True)
    >>> each.abs().round(1).iloc[0].tolist()
    [1.0, 1.0]
    """

    estimator_: LeafClassifier | LeafRegressor
    preparation_: Preparation | ImageFiles
    target_: Target
    local_model_: str
    errors_: HeldOutErrors | None
    group_sizes_: NDArray[np.intp]
    n_rows_: int
    training_values_: TrainingValues | None
    warnings_: list[Message]

    def __init__(
        self,
        target: str,
        group: str | None = None,
        *,
        contexts: int | str = "auto",
        task: str = "auto",
        local_model: str | None = None,
        features: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        images: str | Path | None = None,
        image_column: str | None = None,
        random_state: int = 0,
    ) -> None:
        self.target = target
        self.group = group
        self.contexts = contexts
        self.task = task
        self.local_model = local_model
        self.features = features
        self.drop = drop
        self.images = None if images is None else Path(images)
        self.image_column = image_column
        self.random_state = random_state

    def fit(
        self,
        frame: Any,
        what: str = "the table",
        on_stage: Callable[[str], None] = ignore,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Find the contexts of the groups and fit a local model for each.

        Parameters
        ----------
        frame : pandas.DataFrame or other table
            A data frame of pandas or polars, a table of pyarrow, a Hugging Face data set, or a
            mapping from names to columns. The other methods take the same tables.
        what : str
            How errors call the table.
        on_stage : callable
            Called with a short description of each stage.
        callbacks : list of leaflearn.core.training.Callback
            Called in every epoch of networks.

        Returns
        -------
        self
            The fitted model.
        """
        with log_warnings() as self.warnings_:
            self._set_fitted(fit_table(self, frame, what, on_stage, callbacks), self.warnings_)
        return self

    def identify(self, frame: Any, what: str = "the table", images: Path | None = None) -> Any:
        """Find the contexts of new groups from a few labelled rows of each.

        Parameters
        ----------
        frame : pandas.DataFrame or other table
            Labelled rows. Without the column of groups, all of them are one group.
        what : str
            How errors call the table.
        images : path
            The folder with the images, if the model was fitted to images.

        Returns
        -------
        pandas.DataFrame
            A row per group: group, context, probability, margin, is_new, and more_rows, the number
            of further labelled rows that would determine the context (missing if more rows would
            not help).
        """
        import pandas  # type: ignore[import-untyped]

        found, X = self.identify_groups(frame, what, images)
        sources = Sources(found.probability, found.is_new, found.effects, found.products)
        is_classifier = hasattr(self.estimator_, "classes_")
        more = count_required_rows(self.estimator_.fitted_state_, sources, X, is_classifier)
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

    def identify_groups(
        self, frame: Any, what: str = "the table", images: Path | None = None
    ) -> tuple[Identification, NDArray[Any]]:
        """Contexts and effects of new groups as the estimator finds them, and the inputs (N, ...).

        The parameters are those of `identify`, which puts the same contexts in a table.
        """
        rows = keep_rows_with_target(to_frame(frame, what), self.target, what)
        names = name_sources(rows, self.group)
        self.warn_about_unfamiliar(rows, what)
        X, y = self.features_of(rows, what, images), self.target_.read(rows[self.target])
        with warned_already():
            return self.estimator_.identify(X, y, groups=names), X

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
        """Predict new rows in one context, in each, or in the contexts of their groups.

        Models with group effects add those of the group: with `by_group`, with `support`, and
        without either if there is one context and the table has the column of groups. Predictions
        are then averaged over the contexts that the group may have. A warning counts the groups
        whose effects are not known.

        Parameters
        ----------
        frame : pandas.DataFrame or other table
            The rows.
        what : str
            How errors call the table.
        context : int
            Predict all rows in this context, without group effects. It is optional if there is
            only one.
        support : pandas.DataFrame or other table
            A few labelled rows of the same groups, from which their contexts and effects are
            identified.
        support_what : str
            How errors call the table of labelled rows.
        each : bool
            Return the predictions of all contexts.
        by_group : bool
            Use the contexts and effects of the training groups.
        proba : bool
            Also return the probability of each label.
        images : path
            The folder with the images, if the model was fitted to images.
        on_row : callable
            Called with the number of rows that are done.

        Returns
        -------
        pandas.DataFrame
            context, probability and prediction of each row; for quantities, where the model has
            group effects, also standard_deviation, of a new row around its prediction. With `each`,
            prediction_0, prediction_1, ...
        """
        rows = Predictions(self, to_frame(frame, what), what, proba, images, on_row)
        if each:
            return rows.in_each_context()
        if by_group:
            return rows.by_training_group()
        if support is not None:
            return rows.by_support(to_frame(support, support_what), support_what)
        if context is None and self.estimator_.n_contexts_ > 1:
            raise MessageError(ContextNotChosen(self.estimator_.n_contexts_))
        if context is None and rows.have_group_effects:
            return rows.by_training_group()
        return rows.in_context(context or 0)

    def features_of(
        self, frame: Any, what: str = "the table", images: Path | None = None
    ) -> NDArray[Any]:
        """The inputs of the estimator: shape (N, F), or (N, 3, height, width) for images."""
        folder = images or self.images
        return read_features(self.preparation_, self.local_model_, frame, folder, what)

    def warn_about_unfamiliar(self, frame: Any, what: str = "the table") -> None:
        """Warn about rows that are unlike the training table, as `predict` and `identify` do.

        Their numbers are beyond the training range by more than its width, or they have a category
        that the training table does not contain. Folders of version 0.1.0 lack what this needs.
        """
        if isinstance(self.preparation_, Preparation):
            columns = self.preparation_.columns
            warn_about_unfamiliar(self.training_values_, frame, columns, what)

    @property
    def informative_columns_(self) -> list[str]:
        """The columns that were used; see the class."""
        return list(dict.fromkeys(self.preparation_.used))

    @property
    def telling_columns_(self) -> list[str]:
        """The former name of `informative_columns_`."""
        warn_renamed("telling_columns_", "informative_columns_")
        return self.informative_columns_

    def save(self, folder: str | Path) -> None:
        """Save the model in a folder that is safe to share.

        An older model in the folder is replaced; other content is an error. `TableModel.load`
        loads the model, `leaflearn.load` its estimator alone.

        Examples
        --------
        >>> import tempfile, pandas
        >>> dose = [0.1 * i for i in range(40)]
        >>> table = pandas.DataFrame({"dose": dose, "effect": [20.0 * x for x in dose]})
        >>> model = TableModel("effect", contexts=1, local_model="linear").fit(table)
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     model.save(f"{parent}/model")
        ...     again = TableModel.load(f"{parent}/model")
        >>> again.predict(table).equals(model.predict(table))
        True
        """
        save_table_model(self, folder)

    @classmethod
    def load(cls, folder: str | Path, local_model: str | None = None) -> Self:
        """Load a saved model; no code in the folder is run.

        Parameters
        ----------
        folder : str or path
            The folder.
        local_model : str
            "module:PATH.py:FACTORY", if the model was fitted with one: the folder holds weights,
            and no code.

        Returns
        -------
        TableModel
            Its predictions are those of the saved model.
        """
        model, fitted, messages = load_table_model(cls, folder, local_model)
        model._set_fitted(fitted, messages)
        return model

    def _set_fitted(self, fitted: FittedTable, messages: list[Message]) -> None:
        for field in fields(fitted):
            setattr(self, f"{field.name}_", getattr(fitted, field.name))
        self.warnings_ = messages

    def add_earlier_warnings(self, messages: Sequence[Message]) -> None:
        """Put warnings from before the fit, such as those of reading a file, before its own."""
        self.warnings_ = [*messages, *self.warnings_]
