"""From a table to answers: the columns, how they become features, and the fitted estimator, as one object that can be kept in a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leaflearn.core.training import Callback
from leaflearn.tabular.fitting import fit_table
from leaflearn.tabular.held_out_errors import HeldOutErrors
from leaflearn.tabular.saving import load_table_model, save_table_model
from leaflearn.tabular.table_answering import AnsweringTables, ignore
from leaflearn.tabular.warning_log import log_warnings


class TableModel(AnsweringTables):
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
    preparation_ : Preparation or ImageFiles
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
    informative_columns_ : list of str
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
        self.errors_: HeldOutErrors | None
        self.group_sizes_: NDArray[np.intp]
        self.n_rows_: int
        self.warnings_: list[str]

    def fit(
        self, frame: Any, what: str = "the table", on_stage: Callable[[str], None] = ignore, callbacks: Sequence[Callback] = ()
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
        with log_warnings() as self.warnings_:
            fit_table(self, frame, what, on_stage, callbacks)
        return self

    @property
    def informative_columns_(self) -> list[str]:
        """The columns that were learnt from; see the class."""
        return list(dict.fromkeys(self.preparation_.used))

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
