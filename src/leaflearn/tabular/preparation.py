"""From the columns of a table to features of about one scale, and from features to their columns.

numbers, dates    standardized; missing values get the median, and an indicator if they are many
categories        an indicator of each common value, and of each item if a column names items
text              the first components of a truncated SVD of the word counts
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from leaflearn.messages import (
    ColumnsLeftOut,
    MessageError,
    NoColumnsLeft,
    TableWarning,
    TooManyFeatures,
)
from leaflearn.tabular import settings
from leaflearn.tabular.column_kinds import (
    ITEM,
    NOT_INFORMATIVE,
    ROW_NUMBERS,
    Column,
    find_kind,
    read_columns,
    read_texts,
)
from leaflearn.tabular.informative_columns import choose_features
from leaflearn.tabular.reading import find_column

# Names of parts, as model folders store them.
INDICATOR = "hole"  # marks missing values
WITH_INDICATOR = "holes"  # which numbers have such an indicator

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Preparation:
    """Turns the rows of a table into features, with transformers that were fitted to a table.

    Parameters
    ----------
    columns
        All columns of the training table, and what they hold.
    parts
        Fitted transformers of scikit-learn, by kind: `"number"` for numbers and dates, `INDICATOR`
        for missing values, `"category"`, and a list of them, `"text"`.
    kept
        Which of the features are used.

    Examples
    --------
    >>> import pandas
    >>> table = pandas.DataFrame({"length": [1.0, 3.0, 2.0, 6.0], "site": ["A", "B", "B", "A"]})
    >>> group = np.zeros(4, dtype=int)
    >>> prepare = Preparation.of(table.assign(unit="cm"), y=np.arange(4.0), group=group, seed=0)
    >>> prepare.feature_names
    ['length', 'site = B']
    >>> prepare(table)[:, 1]
    array([0., 1., 1., 0.])
    """

    columns: tuple[Column, ...]
    parts: dict[str, Any]
    kept: NDArray[np.intp] = field(default_factory=lambda: np.arange(0))

    @classmethod
    def of(
        cls,
        frame: Any,
        y: NDArray[Any],
        group: NDArray[np.intp],
        seed: int,
        keep_named: bool = False,
        known: Sequence[Column] = (),
    ) -> Preparation:
        """Fit transformers to the columns.

        Parameters
        ----------
        frame
            The columns.
        y, group
            Targets and groups of the rows, (N,). The targets matter only if there are too many
            features.
        seed
            Seed of the components of texts.
        keep_named
            Whether the user chose these columns, so that row numbers and names of the group are
            used, too.
        known
            What some columns hold, as far as it is known; see `find_item_columns`.
        """
        by_name = {column.name: column for column in known}
        columns = _limit(
            [by_name.get(name) or find_kind(frame[name], name) for name in frame.columns]
        )
        if keep_named:
            columns = [
                Column(column.name, "number") if column.form == ROW_NUMBERS else column
                for column in columns
            ]
        else:
            columns = [_leave_out_alias(frame, column, group) for column in columns]
        if any(column.kind == "nothing" for column in columns):
            warnings.warn(TableWarning(_list_left_out(columns)), stacklevel=2)
        fitted = cls(tuple(columns), {})._fitted(frame, seed)
        others = np.flatnonzero(~fitted.is_item)
        features, most = fitted(frame)[:, others], settings.TABLES.max_features
        chosen = others[choose_features(features, y, group, most)]
        if len(chosen) < len(others):
            warnings.warn(TableWarning(TooManyFeatures(len(others), len(chosen))), stacklevel=2)
        return fitted.narrowed(frame, np.union1d(chosen, np.flatnonzero(fitted.is_item)), seed)

    def narrowed(self, frame: Any, kept: NDArray[np.intp], seed: int) -> Preparation:
        """Use only these features and their columns; `frame` and `seed` as in `of`."""
        if len(kept) == len(self.kept):
            return self
        names = self._all_names()
        chosen = {names[i] for i in self.kept[kept]}
        needed = {column for column, _ in chosen}
        columns = [
            c
            if c.name in needed or c.kind == "nothing"
            else Column(c.name, "nothing", NOT_INFORMATIVE)
            for c in self.columns
        ]
        fitted = Preparation(tuple(columns), {})._fitted(frame, seed)
        places = [i for i, pair in enumerate(fitted._all_names()) if pair in chosen]
        return replace(fitted, kept=np.array(places, dtype=np.intp))

    @property
    def used(self) -> list[str]:
        """The columns that the model learns from."""
        return [column.name for column in self.columns if column.kind != "nothing"]

    @property
    def feature_names(self) -> list[str]:
        """The name of each feature, which begins with the name of its column."""
        names = self._all_names()
        return [names[i][1] for i in self.kept]

    @property
    def feature_columns(self) -> list[str]:
        """The column that each feature comes from."""
        names = self._all_names()
        return [names[i][0] for i in self.kept]

    @property
    def is_item(self) -> NDArray[np.bool_]:
        """Which features are indicators of a labelled item, shape (F,)."""
        items = {column.name for column in self.columns if column.form == ITEM}
        return np.array([column in items for column in self.feature_columns], dtype=bool)

    def __call__(self, frame: Any, what: str = "the table") -> Floats:
        """The features of the rows, shape (N, F)."""
        present = set(frame.columns)
        for name in self.used:
            if name not in present:
                find_column(frame.columns, name, what)
        return self._all_features(frame)[:, self.kept]

    def to_json(self) -> dict[str, Any]:
        """Everything but the parts, as plain values."""
        return {"columns": [asdict(column) for column in self.columns], "kept": self.kept.tolist()}

    @classmethod
    def from_json(cls, content: dict[str, Any], parts: dict[str, Any]) -> Preparation:
        """The preparation from `to_json` and its parts."""
        columns = tuple(
            Column(c["name"], c["kind"], c["form"], tuple(c["values"])) for c in content["columns"]
        )
        return cls(columns, parts, np.array(content["kept"], dtype=np.intp))

    def _of_kind(self, *kinds: str) -> list[Column]:
        return [column for column in self.columns if column.kind in kinds]

    def _fitted(self, frame: Any, seed: int) -> Preparation:
        """With fitted parts, and all features."""
        if not self.used:
            raise MessageError(NoColumnsLeft(_list_left_out(self.columns)))
        fitted = replace(self, parts=self._fit(frame, seed))
        return replace(fitted, kept=np.arange(len(fitted._all_names())))

    def _fit(self, frame: Any, seed: int) -> dict[str, Any]:
        parts: dict[str, Any] = {
            "text": [
                _fit_text(read_texts(frame[column.name]), seed) for column in self._of_kind("text")
            ]
        }
        numbers = self._numbers(frame)
        if numbers.shape[1]:
            parts["number"] = make_pipeline(
                SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
            ).fit(numbers)
        places = np.flatnonzero(np.isnan(numbers).mean(0) >= settings.TABLES.min_missing_share)
        if len(places):
            parts[INDICATOR] = MissingIndicator(features="all").fit(numbers[:, places])
            parts[WITH_INDICATOR] = places
        categories = self._of_kind("category")
        if categories:
            values = [np.array(column.values, dtype=object) for column in categories]
            parts["category"] = OneHotEncoder(
                categories=values, handle_unknown="ignore", sparse_output=False
            ).fit(self._categories(frame))
        return parts

    def _all_features(self, frame: Any) -> Floats:
        features, numbers = [], self._numbers(frame)
        if "number" in self.parts:
            features.append(self.parts["number"].transform(numbers))
        if INDICATOR in self.parts:
            is_missing = self.parts[INDICATOR].transform(numbers[:, self.parts[WITH_INDICATOR]])
            features.append(is_missing.astype(np.float64))
        if "category" in self.parts:
            features.append(self.parts["category"].transform(self._categories(frame)))
        for column, part in zip(self._of_kind("text"), self.parts["text"], strict=True):
            features.append(part.transform(read_texts(frame[column.name])))
        return np.concatenate(features, axis=1)

    def _all_names(self) -> list[tuple[str, str]]:
        """The column and the name of each feature, in the order of `_all_features`."""
        numbers, categories = self._of_kind("number", "date"), self._of_kind("category")
        texts = zip(self._of_kind("text"), self.parts["text"], strict=True)
        with_indicator = [numbers[i].name for i in self.parts.get(WITH_INDICATOR, [])]
        return [
            *((column.name, column.name) for column in numbers),
            *((name, f"{name} is missing") for name in with_indicator),
            *(
                (column.name, f"{column.name} = {value}" if value else f"{column.name} is missing")
                for column in categories
                for value in column.values
            ),
            *(
                (column.name, f"{column.name}, direction {i + 1}")
                for column, part in texts
                for i in range(part[-1].n_components)
            ),
        ]

    def _numbers(self, frame: Any) -> Floats:
        return read_columns(frame, self._of_kind("number", "date"))

    def _categories(self, frame: Any) -> NDArray[Any]:
        columns = [
            np.array(read_texts(frame[column.name]), dtype=object)
            for column in self._of_kind("category")
        ]
        return np.stack(columns, axis=1)


def _fit_text(texts: list[str], seed: int) -> Pipeline:
    """A truncated SVD of TF-IDF weights of words, or of character n-grams of short texts."""
    n_words = np.median([len(text.split()) for text in texts if text])
    by_word = n_words >= settings.TABLES.prose_words
    kind = (
        {"analyzer": "word", "token_pattern": r"(?u)\b\w+\b"}
        if by_word
        else {"analyzer": "char_wb", "ngram_range": (2, 4)}
    )
    words = make_pipeline(
        HashingVectorizer(
            n_features=settings.TABLES.n_hashed_words, norm=None, alternate_sign=False, **kind
        ),
        TfidfTransformer(sublinear_tf=True),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # identical texts have components of length zero
        table = words.fit_transform(texts)
        n_components = min(
            settings.TABLES.max_text_components, len(texts), len(np.unique(table.indices)) or 1
        )
        directions = TruncatedSVD(n_components, random_state=seed).fit(table)
    return Pipeline([("words", words), ("directions", directions)])


def _limit(columns: list[Column]) -> list[Column]:
    """Limit the number of values of categories, and of columns of text."""
    limits = settings.TABLES
    n_categories = max(1, sum(column.kind == "category" for column in columns))
    most = max(1, limits.max_indicators // n_categories)
    limited, n_texts = [], 0
    for column in columns:
        if column.kind == "category" and column.form != ITEM:
            column = replace(column, values=column.values[:most])
        n_texts += column.kind == "text"
        if column.kind == "text" and n_texts > limits.max_text_columns:
            reason = f"more than {limits.max_text_columns} columns of text"
            column = Column(column.name, "nothing", reason)
        limited.append(column)
    return limited


def _leave_out_alias(frame: Any, column: Column, group: NDArray[np.intp]) -> Column:
    """Leave out a column that names the group: it would explain every conflict between groups."""
    if column.kind not in ("category", "text") or len(np.unique(group)) < 3:
        return column
    texts = np.array(read_texts(frame[column.name]), dtype=object)
    pairs = {(int(number), text) for number, text in zip(group, texts, strict=True)}
    n_groups = len({number for number, _ in pairs})
    is_alias = (
        len(pairs) == n_groups < len(group) and len({text for _, text in pairs}) > n_groups / 2
    )
    return Column(column.name, "nothing", "another name of the group") if is_alias else column


def _list_left_out(columns: Sequence[Column]) -> ColumnsLeftOut:
    """The columns that were left out, by reason."""
    by_reason: dict[str, list[str]] = {}
    for column in columns:
        if column.kind == "nothing":
            by_reason.setdefault(column.reason, []).append(column.name)
    return ColumnsLeftOut(tuple(by_reason), tuple(map(tuple, by_reason.values())))
