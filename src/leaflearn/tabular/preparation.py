"""From the columns of a table to features, which are numbers of about one size, and from each feature back to its column.

numbers, dates    the number itself, or the day, in standard units; holes get the median, and where they are many a column of their own
categories        a column of zeros and ones for each common value, and for each item where a column names what was labelled
text              a few directions in which the texts differ most, by their words
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

from leaflearn.tabular.column_kinds import (
    MANY_HOLES,
    MANY_WORDS,
    ROW_NUMBERS,
    Column,
    find_kind,
    read_columns,
    read_texts,
)
from leaflearn.tabular.feature_choice import choose_features
from leaflearn.tabular.items import ITEM
from leaflearn.tabular.reading import find_column, list_names
from leaflearn.tabular.text_encoding import warn

MOST_DIRECTIONS = 8  # of one column of text
MOST_TEXT_COLUMNS = 50
MOST_ZERO_ONE = 2000  # columns of zeros and ones in all
MOST_FEATURES = 100
TELLS_NOTHING = "tells nothing of the target"
N_WORDS = 2**13  # places that words are hashed into

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Preparation:
    """What was learnt about the columns of a table, to turn rows into features.

    Parameters
    ----------
    columns
        All columns that were looked at, and what they hold.
    parts
        Fitted transformers of scikit-learn, by kind: "number" for numbers and dates, "hole", "category", and a list, "text".
    kept
        Which of the features are used.

    Examples
    --------
    >>> import pandas
    >>> table = pandas.DataFrame({"length": [1.0, 3.0, 2.0, 6.0], "site": ["A", "B", "B", "A"], "unit": ["cm"] * 4})
    >>> prepare = Preparation.of(table, y=np.arange(4.0), group=np.zeros(4, dtype=int), seed=0)
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
        cls, frame: Any, y: NDArray[Any], group: NDArray[np.intp], seed: int, keep_named: bool = False, known: Sequence[Column] = ()
    ) -> Preparation:  # fmt: skip
        """Look at the columns and learn from them. The targets `y` (N,) are asked only where there are too many features.

        With `keep_named` somebody chose these columns, and row numbers or names of the group are not taken for a mistake. Of some
        columns it may be `known` what they hold, see `data/items.py`.
        """
        told = {column.name: column for column in known}
        columns = _bound([told.get(name) or find_kind(frame[name], name) for name in frame.columns])
        if keep_named:
            columns = [
                Column(column.name, "number") if column.form == ROW_NUMBERS else column
                for column in columns
            ]
        else:
            columns = [_leave_out_alias(frame, column, group) for column in columns]
        _tell_left_out(columns)
        found = cls(tuple(columns), {})._fitted(frame, seed)
        others = np.flatnonzero(~found.is_item)
        chosen = others[choose_features(found(frame)[:, others], y, group, MOST_FEATURES)]
        if len(chosen) < len(others):
            warn(
                f"The columns give {len(others):,} features; the {len(chosen)} were kept that go with the target inside the groups."
            )
        return found.narrowed(frame, np.union1d(chosen, np.flatnonzero(found.is_item)), seed)

    def narrowed(self, frame: Any, kept: NDArray[np.intp], seed: int) -> Preparation:
        """Only these of the features, and only the columns that they come from; `frame` and `seed` as in `of`."""
        if len(kept) == len(self.kept):
            return self
        names = self._all_names()
        chosen = {names[i] for i in self.kept[kept]}
        needed = {column for column, _ in chosen}
        columns = [
            c
            if c.name in needed or c.kind == "nothing"
            else Column(c.name, "nothing", TELLS_NOTHING)
            for c in self.columns
        ]
        found = Preparation(tuple(columns), {})._fitted(frame, seed)
        return replace(
            found,
            kept=np.array(
                [i for i, pair in enumerate(found._all_names()) if pair in chosen], dtype=np.intp
            ),
        )

    @property
    def used(self) -> list[str]:
        """The columns that are learnt from."""
        return [column.name for column in self.columns if column.kind != "nothing"]

    @property
    def feature_names(self) -> list[str]:
        """A name for each feature, which begins with that of its column."""
        names = self._all_names()
        return [names[i][1] for i in self.kept]

    @property
    def feature_columns(self) -> list[str]:
        """The column that each feature comes from."""
        names = self._all_names()
        return [names[i][0] for i in self.kept]

    @property
    def is_item(self) -> NDArray[np.bool_]:
        """Which features each stand for one item that was labelled, shape (F,)."""
        items = {column.name for column in self.columns if column.form == ITEM}
        return np.array([column in items for column in self.feature_columns], dtype=bool)

    def __call__(self, frame: Any, what: str = "the table") -> Floats:
        """The features of the rows, shape (N, F)."""
        there = set(frame.columns)
        for name in self.used:
            if name not in there:
                find_column(frame.columns, name, what)
        return self._all_features(frame)[:, self.kept]

    def to_json(self) -> dict[str, Any]:
        """All but the parts."""
        return {"columns": [asdict(column) for column in self.columns], "kept": self.kept.tolist()}

    @classmethod
    def from_json(cls, content: dict[str, Any], parts: dict[str, Any]) -> Preparation:
        """What `to_json` gave, with its parts."""
        columns = tuple(
            Column(c["name"], c["kind"], c["form"], tuple(c["values"])) for c in content["columns"]
        )
        return cls(columns, parts, np.array(content["kept"], dtype=np.intp))

    def _of_kind(self, *kinds: str) -> list[Column]:
        return [column for column in self.columns if column.kind in kinds]

    def _fitted(self, frame: Any, seed: int) -> Preparation:
        """With its parts, and all features kept."""
        if not self.used:
            raise ValueError(f"No column is left to learn from. {_list_left_out(self.columns)}.")
        found = replace(self, parts=self._fit(frame, seed))
        return replace(found, kept=np.arange(len(found._all_names())))

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
        holes = np.flatnonzero(np.isnan(numbers).mean(0) >= MANY_HOLES)
        if len(holes):
            parts["hole"] = MissingIndicator(features="all").fit(numbers[:, holes])
            parts["holes"] = holes
        categories = self._of_kind("category")
        if categories:
            values = [np.array(column.values, dtype=object) for column in categories]
            parts["category"] = OneHotEncoder(
                categories=values, handle_unknown="ignore", sparse_output=False
            ).fit(self._categories(frame))
        return parts

    def _all_features(self, frame: Any) -> Floats:
        found, numbers = [], self._numbers(frame)
        if "number" in self.parts:
            found.append(self.parts["number"].transform(numbers))
        if "hole" in self.parts:
            found.append(
                self.parts["hole"].transform(numbers[:, self.parts["holes"]]).astype(np.float64)
            )
        if "category" in self.parts:
            found.append(self.parts["category"].transform(self._categories(frame)))
        for column, part in zip(self._of_kind("text"), self.parts["text"], strict=True):
            found.append(part.transform(read_texts(frame[column.name])))
        return np.concatenate(found, axis=1)

    def _all_names(self) -> list[tuple[str, str]]:
        """The column and the name of each feature, in the order of `_all_features`."""
        numbers, categories = self._of_kind("number", "date"), self._of_kind("category")
        found = [(column.name, column.name) for column in numbers]
        found += [
            (numbers[i].name, f"{numbers[i].name} is missing") for i in self.parts.get("holes", [])
        ]
        found += [
            (column.name, f"{column.name} = {value}" if value else f"{column.name} is missing")
            for column in categories
            for value in column.values
        ]
        for column, part in zip(self._of_kind("text"), self.parts["text"], strict=True):
            found += [
                (column.name, f"{column.name}, direction {i + 1}")
                for i in range(part[-1].n_components)
            ]
        return found

    def _numbers(self, frame: Any) -> Floats:
        return read_columns(frame, self._of_kind("number", "date"))

    def _categories(self, frame: Any) -> NDArray[Any]:
        columns = [
            np.array(read_texts(frame[column.name]), dtype=object)
            for column in self._of_kind("category")
        ]
        return np.stack(columns, axis=1)


def _fit_text(texts: list[str], seed: int) -> Pipeline:
    """Words, or pieces of words where there are no spaces, weighed by how rare they are, seen in few directions."""
    by_word = np.median([len(text.split()) for text in texts if text]) >= MANY_WORDS
    kind = (
        {"analyzer": "word", "token_pattern": r"(?u)\b\w+\b"}
        if by_word
        else {"analyzer": "char_wb", "ngram_range": (2, 4)}
    )
    words = make_pipeline(
        HashingVectorizer(n_features=N_WORDS, norm=None, alternate_sign=False, **kind),
        TfidfTransformer(sublinear_tf=True),
    )
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # texts without any difference have directions of length zero
        table = words.fit_transform(texts)
        n_directions = min(MOST_DIRECTIONS, len(texts), len(np.unique(table.indices)) or 1)
        directions = TruncatedSVD(n_directions, random_state=seed).fit(table)
    return Pipeline([("words", words), ("directions", directions)])


def _bound(columns: list[Column]) -> list[Column]:
    """The same with less work, where there are thousands of categories or texts."""
    n_categories = max(1, sum(column.kind == "category" for column in columns))
    most = max(1, MOST_ZERO_ONE // n_categories)
    found, n_texts = [], 0
    for column in columns:
        if column.kind == "category" and column.form != ITEM:
            column = Column(column.name, column.kind, column.form, column.values[:most])
        n_texts += column.kind == "text"
        too_many = column.kind == "text" and n_texts > MOST_TEXT_COLUMNS
        found.append(
            Column(column.name, "nothing", f"more than {MOST_TEXT_COLUMNS} columns of text")
            if too_many
            else column
        )
    return found


def _leave_out_alias(frame: Any, column: Column, group: NDArray[np.intp]) -> Column:
    """A column that names the group would tell every model whose rows these are, and there would be nothing left to find."""
    if column.kind not in ("category", "text") or len(np.unique(group)) < 3:
        return column
    texts = np.array(read_texts(frame[column.name]), dtype=object)
    pairs = {(int(number), text) for number, text in zip(group, texts, strict=True)}
    n_groups = len({number for number, _ in pairs})
    is_alias = (
        len(pairs) == n_groups < len(group) and len({text for _, text in pairs}) > n_groups / 2
    )
    return Column(column.name, "nothing", "another name of the group") if is_alias else column


def _tell_left_out(columns: Sequence[Column]) -> None:
    if any(column.kind == "nothing" for column in columns):
        warn(f"{_list_left_out(columns)}.")


def _list_left_out(columns: Sequence[Column]) -> str:
    """By reason, which columns were left out."""
    reasons: dict[str, list[str]] = {}
    for column in columns:
        if column.kind == "nothing":
            reasons.setdefault(column.form, []).append(column.name)
    return "Columns were left out: " + "; ".join(
        f"{list_names(names)} ({reason})" for reason, names in reasons.items()
    )
