"""From a table to answers: the columns, how they become features, and the fitted estimator, as one object that can be kept in a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from leaflearn.core.training import Callback
from leaflearn.data.feature_choice import find_telling_features
from leaflearn.data.frames import to_frame
from leaflearn.data.picture_files import PictureFiles, find_picture_column
from leaflearn.data.preparation import Preparation
from leaflearn.data.table_rows import (
    choose_columns,
    keep_rows_with_group,
    keep_rows_with_target,
    name_groups,
    name_sources,
    warn_about_groups,
)
from leaflearn.data.table_target import Target, find_target
from leaflearn.data.table_text import warn
from leaflearn.data.tables import find_column
from leaflearn.estimators.classifier import LeafClassifier
from leaflearn.estimators.few_answers import count_answers_needed, warn_of_few_answers
from leaflearn.estimators.kept_warnings import keeping_warnings
from leaflearn.estimators.named_local_models import FROM_FILE, make_named
from leaflearn.estimators.one_model import HeldOutErrors, are_missed, compare_with_one_model
from leaflearn.estimators.regressor import LeafRegressor
from leaflearn.estimators.settling import count_rows_to_settle
from leaflearn.estimators.table_answers import Answers
from leaflearn.estimators.table_items import find_item_columns
from leaflearn.estimators.table_saving import load_table_model, save_table_model

BETTER = 0.8  # of the error, or less: then another local model is worth a word

Rows = NDArray[np.intp]


def _ignore(_: Any) -> None:
    """Who has nothing to show need not be told."""


class TableModel:
    """Contexts in a table: which rows share one, a model for each, and answers for new rows.

    Parameters
    ----------
    target : str
        The column to foretell.
    group : str, default=None
        The column that says which rows are known to share a context: the annotator, site, session or device.
    contexts : int or "auto", default="auto"
        How many contexts there are; "auto" reads it off the data.
    task : {"auto", "classification", "regression"}, default="auto"
        Whether the target is a label or a quantity; "auto" takes text and few whole numbers for labels.
    local_model : str, default=None
        "mlp", "linear", "boosting", or "module:PATH.py:FACTORY"; for pictures also "convnet". None is a network that suits the data, and
        straight lines where the data are answers to items that have to be told apart one by one.
    features : list of str, default=None
        The columns to learn from, all of which are then kept; by default all but the target and the group, without those that tell nothing.
    drop : list of str, default=()
        Columns not to learn from.
    images : path, default=None
        A folder with pictures, which are then learnt from instead of the columns.
    image_column : str, default=None
        The column that names the files; by default the first whose values are files in the folder.
    random_state : int, default=0
        Same seed, same machine, same fit.

    Attributes
    ----------
    estimator_ : LeafClassifier or LeafRegressor
        Fitted to the features; its groups are named by text.
    preparation_ : Preparation or PictureFiles
        How rows become features, and which column each feature comes from.
    target_ : Target
        The task, and why.
    local_model_ : str
        The name of the local model that was used.
    errors_ : HeldOutErrors or None
        On rows held out inside the groups, with the contexts, and with one model for all; None where every group is one row.
    group_sizes_ : ndarray of shape (n_groups,)
        Rows of each group, in the order of `estimator_.groups_`.
    n_rows_ : int
        Rows that were learnt from.
    warnings_ : list of str
        What the fit warned of, in its own words; empty in models that were saved before warnings were kept.
    telling_columns_ : list of str
        The columns that were learnt from: those that go with the target inside the groups, or tell groups apart, or were named.

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
    >>> model.predict(pandas.DataFrame({"dose": [1.0]}), each=True).abs().round(1).iloc[0].tolist()
    [1.0, 1.0]
    """

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
        self.estimator_: Any
        self.preparation_: Preparation | PictureFiles
        self.target_: Target
        self.local_model_: str
        self.errors_: HeldOutErrors | None
        self.group_sizes_: NDArray[np.intp]
        self.n_rows_: int
        self.warnings_: list[str]

    def fit(
        self, frame: Any, what: str = "the table", on_stage: Callable[[str], None] = _ignore, callbacks: Sequence[Callback] = ()
    ) -> Self:  # fmt: skip
        """Find the contexts of the groups and learn a model for each.

        Parameters
        ----------
        frame : pandas.DataFrame, or another kind of table
            The table: also a frame of polars, a table of pyarrow, a Hugging Face data set, or a mapping from names to columns. So it is
            wherever a table is asked for.
        what : str
            What it is called in errors.
        on_stage : callable
            Told in a few words what is being done.
        callbacks : list of leaflearn.core.training.Callback
            Told of every epoch of networks.

        Returns
        -------
        self
            The fitted model.
        """
        with keeping_warnings() as self.warnings_:
            self._fit(frame, what, on_stage, callbacks)
        return self

    @property
    def telling_columns_(self) -> list[str]:
        """The columns that were learnt from; see the class."""
        return list(dict.fromkeys(self.preparation_.used))

    def _fit(self, frame: Any, what: str, on_stage: Callable[[str], None], callbacks: Sequence[Callback]) -> None:
        on_stage("looking at the columns")
        frame = to_frame(frame, what)
        columns = choose_columns(list(frame.columns), self.target, self.group, self.features, self.drop, what)
        rows = keep_rows_with_group(keep_rows_with_target(frame, self.target, what), self.group, what)
        self.target_ = find_target(rows[self.target], self.task)
        y = self.target_.read(rows[self.target])
        names = name_groups(rows, self.group)
        known, group = np.unique(names, return_inverse=True)
        if not isinstance(self.contexts, str) and self.contexts > len(known):
            raise ValueError(f"There are {len(known)} groups, fewer than the {self.contexts} contexts that were asked for; ask for fewer.")
        X = self._prepare(rows[columns], y, group, what)
        warn_about_groups(self.group, len(known), len(rows))
        on_stage("looking for contexts")
        self.estimator_ = self._make_estimator(callbacks)
        X = self._fit_estimator(X, y, names, group, rows)
        self.estimator_.set_params(callbacks=None)  # they belong to this run
        on_stage("comparing with one model")
        self.errors_ = compare_with_one_model(self.estimator_, X, y, group, self.estimator_.contexts_, self.random_state)
        self._advise_straight_lines(X, y, group)
        self.n_rows_, self.group_sizes_ = len(rows), np.bincount(group)
        self._warn_of_few_answers()

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
        more = count_rows_to_settle(self.estimator_, X, found, np.searchsorted(found.groups, names))
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
        on_row: Callable[[float], None] = _ignore,
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
            raise ValueError(f"The model has {self.estimator_.n_contexts_} contexts; say in which of them, or in each, rows are answered.")
        return answers.in_context(context or 0)

    def features_of(self, frame: Any, what: str = "the table", images: Path | None = None) -> NDArray[Any]:
        """The rows as the estimator takes them, shape (N, F), or (N, 3, height, width) for pictures."""
        if isinstance(self.preparation_, Preparation):
            return self.preparation_(frame, what)
        folder = images or self.images
        if folder is None:
            raise ValueError("The model learnt from pictures; say with --images in which folder the new ones are.")
        return self._flat(self.preparation_.read(frame, folder, what))

    def save(self, folder: str | Path) -> None:
        """Keep the model in a folder that is safe to share; an older model there is replaced, anything else is refused.

        `TableModel.load` reads it again, `leaflearn.load` the estimator alone.

        Examples
        --------
        >>> import tempfile, pandas
        >>> table = pandas.DataFrame({"dose": [0.1 * i for i in range(40)], "effect": [2.0 * i for i in range(40)]})
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
        """Load a model that was saved; no code in the folder is run.

        Parameters
        ----------
        folder : str or path
            The folder.
        local_model : str
            "module:PATH.py:FACTORY", where one was used: the folder holds weights, and no code.

        Returns
        -------
        TableModel
            It answers like the one that was saved.
        """
        found: Self = load_table_model(cls, folder, local_model)
        return found

    # ---- the steps of fit -------------------------------------------------------------------------------------------------------------

    def _prepare(self, frame: Any, y: NDArray[Any], group: Rows, what: str) -> NDArray[Any]:
        if self.images is None:
            is_named = self.features is not None
            n_contexts = None if self.contexts == "auto" else int(self.contexts)
            known = find_item_columns(frame, y, group, self.group, n_contexts, is_named, self.local_model == "linear")
            self.preparation_ = Preparation.of(frame, y, group, self.random_state, is_named, known)
            self.local_model_ = self.local_model or ("linear" if self._has_items else "mlp")
            return self.preparation_(frame, what)
        named = self.image_column is not None
        self.preparation_ = PictureFiles(
            find_column(frame.columns, str(self.image_column), what) if named else find_picture_column(frame, self.images)
        )
        self.local_model_ = self.local_model or ("convnet" if self.target_.is_label else "mlp")  # only the second standardises quantities
        return self._flat(self.preparation_.read(frame, self.images, what))

    def _flat(self, X: NDArray[Any]) -> NDArray[Any]:
        """Pictures as rows of numbers, for local models that take no others."""
        takes_pictures = self.local_model_ == "convnet" or self.local_model_.startswith(FROM_FILE)
        return X if takes_pictures else X.reshape(len(X), -1)

    def _make_estimator(self, callbacks: Sequence[Callback]) -> Any:
        kind = LeafClassifier if self.target_.is_label else LeafRegressor
        local_model = make_named(self.local_model_, self.target_.is_label, of_items=self._has_items)
        return kind(self.contexts, local_model=local_model, random_state=self.random_state, callbacks=list(callbacks) or None)

    @property
    def _has_items(self) -> bool:
        """Are these answers to items that are told apart one by one?"""
        return isinstance(self.preparation_, Preparation) and bool(self.preparation_.is_item.any())

    def _fit_estimator(self, X: NDArray[Any], y: NDArray[Any], names: NDArray[Any], group: Rows, frame: Any) -> NDArray[Any]:
        """Fit to the features that tell something, and to all of them where the others are missed; gives back the features.

        Columns that have nothing to do with the target hide the contexts from the search, and networks learn them by heart.
        """
        telling = np.arange(X.shape[1])
        if isinstance(self.preparation_, Preparation) and self.features is None and not self._has_items:
            telling = find_telling_features(X, y, group, self.random_state)
        self.estimator_.fit(X[:, telling], y, groups=names)
        if len(telling) == X.shape[1]:
            return X
        if are_missed(X, telling, y, group, self.estimator_.contexts_, self.random_state):
            self.estimator_.set_params(n_contexts=self.estimator_.n_contexts_).fit(X, y, groups=names)
            self.estimator_.set_params(n_contexts=self.contexts)
            return X
        assert isinstance(self.preparation_, Preparation)
        self.preparation_ = self.preparation_.narrowed(frame, telling, self.random_state)
        return X[:, telling]

    def _warn_of_few_answers(self) -> None:
        """Say so where yes or no to items is all that is known, and it is too little to tell contexts apart."""
        is_yes_or_no = self.target_.is_label and len(self.estimator_.classes_) == 2
        if self._has_items and is_yes_or_no and len(self.telling_columns_) == 1 and self.contexts != 1:
            n_contexts = max(2, self.estimator_.n_contexts_)
            warn_of_few_answers(self.group_sizes_, n_contexts, count_answers_needed(n_contexts), f"groups in {self.group!r}", "group")

    def _advise_straight_lines(self, X: NDArray[Any], y: NDArray[Any], group: Rows) -> None:
        """Networks learn small tables by heart; where straight lines do better on held-out rows, say so."""
        if self.local_model_ != "mlp" or self.errors_ is None:
            return
        lines = clone(self.estimator_).set_params(local_model=make_named("linear", self.target_.is_label))
        errors = compare_with_one_model(lines, X, y, group, self.estimator_.contexts_, self.random_state)
        if errors is not None and errors.contexts < BETTER * self.errors_.contexts:
            warn(
                f"Straight lines foretell held-out rows better than networks here ({errors.metric} {errors.contexts:.3g} instead of "
                f"{self.errors_.contexts:.3g}); try the local model 'linear'."
            )
