"""Real tables in which rows come in groups, as numbers.

The files are those of the public sources named below. Those of `TABLES` are in the folder `real` of
the data folder and were used during development. Those of `EXTRA_TABLES` are in `real-extra` and
were not; they are run only if they are named.

Every method learns from the same matrix: numbers as they are, categories as indicator columns
without the first value, missing values replaced by the mean of their column.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.benchmark.datasets.store import VARIABLE, MissingDataError, data_folder
from leaflearn.benchmark.real.settings import REAL

FOLDER, EXTRA_FOLDER = "real", "real-extra"  # inside the data folder
ROW_NUMBER = "rownames"  # the column that the collection Rdatasets adds to tables of R packages


@dataclass(frozen=True, eq=False)
class RealData:
    """A table as arrays: N rows, d columns, m groups.

    Examples
    --------
    >>> RealData("pets", np.zeros((2, 1)), np.zeros(2), np.arange(2), ("weight",)).n_classes
    0
    """

    name: str
    X: NDArray[np.float64]  #                                                       (N, d)
    y: NDArray[Any]  # values, or class numbers                                     (N,)
    group: NDArray[np.intp]  # 0 to m - 1                                           (N,)
    columns: tuple[str, ...]
    classes: tuple[str, ...] = ()  # empty in regression

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 in regression."""
        return len(self.classes)


@dataclass(frozen=True)
class RealTable:
    """Where a table comes from, and what its columns are.

    Parameters
    ----------
    name, file
        The name on the command line, and the file in its folder.
    target, group
        The columns with the target and with the group of each row.
    left_out
        Columns that no method is given: other measurements of the target, and other groupings.
    source
        Who published it.
    folder
        The folder of the file inside the data folder.

    Examples
    --------
    >>> TABLES["sleepstudy"].source
    'the R package lme4'
    """

    name: str
    file: str
    target: str
    group: str
    left_out: tuple[str, ...]
    source: str
    folder: str = FOLDER

    @property
    def path(self) -> Path:
        """Where the file is expected."""
        return data_folder() / self.folder / self.file

    def check(self) -> None:
        """Raise an error that names the source if the file is missing."""
        if not self.path.is_file():
            raise MissingDataError(
                f"The table '{self.name}' needs '{self.path}', which does not exist; "
                f"get it from its public source ({self.source}) or set {VARIABLE}."
            )

    def load(self) -> RealData:
        """Read the table and encode its columns as numbers."""
        import pandas as pd  # type: ignore[import-untyped]

        self.check()
        frame = pd.read_csv(self.path)
        absent = [name for name in (self.target, self.group) if name not in frame]
        if absent:
            raise ValueError(
                f"'{self.path}' has no column '{absent[0]}'; "
                f"get the file from its public source ({self.source})."
            )
        y = frame[self.target]
        inputs = frame.drop(
            columns=[self.target, self.group, *self.left_out, ROW_NUMBER], errors="ignore"
        )
        columns = _encode(inputs)
        X = np.column_stack(list(columns.values()))
        _, group = np.unique(frame[self.group].to_numpy(), return_inverse=True)
        if y.dtype.kind in "fi":
            return RealData(self.name, X, y.to_numpy(float), group, tuple(columns))
        classes, labels = np.unique(y.astype(str).to_numpy(), return_inverse=True)
        return RealData(self.name, X, labels, group, tuple(columns), tuple(map(str, classes)))


def _encode(frame: Any) -> dict[str, NDArray[np.float64]]:
    """The columns of a data frame as numbers, without constant ones."""
    columns: dict[str, NDArray[np.float64]] = {}
    for name in frame:
        column = frame[name]
        if column.dtype.kind in "fiub":
            numbers = column.astype(float)
            columns[str(name)] = numbers.fillna(numbers.mean()).to_numpy()
        else:
            values = sorted(map(str, column.dropna().unique()))[: REAL.max_values]
            for value in values[1:]:
                columns[f"{name}={value}"] = (column.astype(str) == value).to_numpy(float)
    return {name: column for name, column in columns.items() if column.std() > 0}


_TABLES = (
    RealTable(
        "parkinsons", "parkinsons.csv", "total_UPDRS", "subject#", ("motor_UPDRS",),
        "UCI, Parkinsons Telemonitoring",
    ),
    RealTable(
        "school", "school.csv", "score", "school", (),
        "the Inner London Education Authority, as in MALSAR",
    ),
    RealTable("hsb82", "Hsb82.csv", "mAch", "school", (), "the R package mlmRev"),
    RealTable(
        "growth-child", "egsingle.csv", "math", "childid", ("schoolid",), "the R package mlmRev"
    ),
    RealTable(
        "growth-school", "egsingle.csv", "math", "schoolid", ("childid",), "the R package mlmRev"
    ),
    RealTable("wages", "wages.csv", "lnw", "id", (), "the R package HLMdiag"),
    RealTable("males", "Males.csv", "wage", "nr", (), "the R package plm"),
    RealTable("cigar", "Cigar.csv", "sales", "state", (), "the R package plm"),
    RealTable(
        "bdf", "bdf.csv", "langPOST", "schoolNR", ("pupilNR", "classNR", "aritPOST", "aritdiff"),
        "the R package nlme",
    ),
    RealTable("sleepstudy", "sleepstudy.csv", "Reaction", "Subject", (), "the R package lme4"),
    RealTable("orthodont", "Orthodont.csv", "distance", "Subject", (), "the R package nlme"),
    RealTable("verbagg", "VerbAgg.csv", "r2", "id", ("resp",), "the R package lme4"),
    RealTable("toenail", "toenail.csv", "outcome", "patientID", (), "the R package lme4"),
    RealTable("catsup", "Catsup.csv", "choice", "id", (), "the R package Ecdat"),
    RealTable("yogurt", "Yogurt.csv", "choice", "id", (), "the R package Ecdat"),
)  # fmt: skip
TABLES: dict[str, RealTable] = {table.name: table for table in _TABLES}

_EXTRA_TABLES = (
    RealTable("milk", "Milk.csv", "protein", "Cow", (), "the R package nlme", EXTRA_FOLDER),
    RealTable(
        "oxboys", "Oxboys.csv", "height", "Subject", ("Occasion",), "the R package nlme",
        EXTRA_FOLDER,
    ),
    RealTable(
        "spruce", "Spruce.csv", "logSize", "Tree", ("plot",), "the R package nlme", EXTRA_FOLDER
    ),
    RealTable("soybean", "Soybean.csv", "weight", "Plot", (), "the R package nlme", EXTRA_FOLDER),
    RealTable(
        "dietox", "dietox.csv", "Weight", "Pig", ("Litter",), "the R package geepack", EXTRA_FOLDER
    ),
    RealTable(
        "guns", "Guns.csv", "violent", "state", ("murder", "robbery"), "the R package AER",
        EXTRA_FOLDER,
    ),
    RealTable("psid-wages", "Wages.csv", "lwage", "person", (), "the R package plm", EXTRA_FOLDER),
    RealTable(
        "unemployment", "Produc.csv", "unemp", "state", ("region",), "the R package plm",
        EXTRA_FOLDER,
    ),
    RealTable(
        "scots-schools", "ScotsSec.csv", "attain", "primary", ("second",), "the R package mlmRev",
        EXTRA_FOLDER,
    ),
    RealTable(
        "albumin", "pbcseq.csv", "albumin", "id", ("futime", "status"), "the R package survival",
        EXTRA_FOLDER,
    ),
    RealTable(
        "contraception", "Contraception.csv", "use", "district", ("woman",),
        "the R package mlmRev", EXTRA_FOLDER,
    ),
    RealTable(
        "immunization", "guImmun.csv", "immun", "comm", ("kid", "mom"), "the R package mlmRev",
        EXTRA_FOLDER,
    ),
)  # fmt: skip
EXTRA_TABLES: dict[str, RealTable] = {table.name: table for table in _EXTRA_TABLES}


def all_tables() -> dict[str, RealTable]:
    """The tables of both registries by name.

    Examples
    --------
    >>> all_tables()["milk"].folder, all_tables()["cigar"].folder
    ('real-extra', 'real')
    """
    return TABLES | EXTRA_TABLES
