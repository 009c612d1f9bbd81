"""Columns become features, and each feature names its column."""

from dataclasses import replace

import numpy as np
import pandas
import pytest

from leaflearn.messages import ColumnsLeftOut, TableWarning, TooManyFeatures
from leaflearn.persistence import pack_objects, unpack_objects
from leaflearn.tabular import settings
from leaflearn.tabular.column_kinds import NOT_INFORMATIVE
from leaflearn.tabular.preparation import Preparation

pytestmark = pytest.mark.filterwarnings("ignore::leaflearn.messages.TableWarning")


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    words = ["slow", "warm", "cold", "long", "dull", "fine", "bright"]
    return pandas.DataFrame(
        {
            "price": rng.gamma(2.0, 10.0, 80).round(2),
            "genre": rng.choice(["crime", "poetry", "travel"], 80),
            "day": pandas.date_range("2024-01-01", periods=80).astype(str),
            "text": [" ".join(rng.choice(words, 6)) + f" number {i}" for i in range(80)],
            "gaps": np.where(rng.random(80) < 0.3, np.nan, rng.normal(size=80)),
            "mixed": [i % 3 if i % 2 else "x" for i in range(80)],
            "id": [f"id{i}" for i in range(80)],
        }
    )


GROUP = np.repeat(np.arange(8), 10)


def prepare(table, y=None, **options):
    return Preparation.of(
        table, np.arange(len(table)) * 1.0 if y is None else y, GROUP[: len(table)], 0, **options
    )


def test_features_are_finite_of_one_scale_and_name_their_columns(table):
    found = prepare(table)
    features = found(table)
    assert np.isfinite(features).all()
    assert np.abs(features).max() < 10
    assert features.shape == (80, len(found.feature_names))
    assert set(found.feature_columns) == set(table.columns) - {"id"}
    assert all(
        name.startswith(column)
        for name, column in zip(found.feature_names, found.feature_columns, strict=True)
    )
    assert {"price", "day", "genre = crime", "gaps is missing", "text, direction 1"} <= set(
        found.feature_names
    )


def test_columns_without_information_are_left_out_with_one_warning(table):
    table = table.assign(empty=None, unit="cm")
    with pytest.warns(TableWarning) as caught:
        prepare(table)
    (warning,) = caught
    reasons = ("a different text in every row", "empty", "constant")
    assert warning.message.messages == (ColumnsLeftOut(reasons, (("id",), ("empty",), ("unit",))),)
    assert str(warning.message) == (
        "Columns were left out: 'id' (a different text in every row); 'empty' (empty); 'unit' "
        "(constant)."
    )


def test_a_table_without_usable_columns_is_an_error():
    with pytest.raises(
        ValueError,
        match=r"^No column is left to learn from. Columns were left out: 'a' \(constant\)\.$",
    ):
        prepare(pandas.DataFrame({"a": [1] * 80}))


def test_other_names_of_the_group_are_left_out_but_not_its_properties():
    table = pandas.DataFrame(
        {
            "name": [f"Dr {i}" for i in GROUP],
            "country": np.where(GROUP < 4, "DE", "FR"),
            "x": np.sin(np.arange(80)),
        }
    )
    found = prepare(table)
    assert found.used == ["country", "x"]
    assert {c.name: c.form for c in found.columns}["name"] == "another name of the group"
    assert prepare(table, keep_named=True).used == ["name", "country", "x"]


def test_column_order_and_further_columns_do_not_matter(table):
    found = prepare(table)
    np.testing.assert_array_equal(found(table[table.columns[::-1]].assign(more=1)), found(table))


def test_new_missing_and_unreadable_values_are_accepted(table):
    found = prepare(table)
    new = pandas.DataFrame(
        {
            "price": ["abc"],
            "genre": ["opera"],
            "day": ["someday"],
            "text": [None],
            "gaps": [None],
            "mixed": [None],
            "id": ["z"],
        }
    )
    assert np.isfinite(found(new)).all()


def test_a_missing_column_is_an_error(table):
    with pytest.raises(
        ValueError,
        match=r"^There is no column 'genre' in new.csv; did you mean 'genres'\? There are: "
        r"'price', ",
    ):
        prepare(table)(table.rename(columns={"genre": "genres"}), "new.csv")


def test_it_is_saved_and_loaded_without_pickle(table):
    found = prepare(table)
    again = Preparation.from_json(
        found.to_json(), unpack_objects(pack_objects(found.parts, "the parts"), "the parts")
    )
    assert again.feature_names == found.feature_names
    np.testing.assert_array_equal(again(table), found(table))


def test_narrowed_features_are_the_same_and_need_no_other_columns(table):
    found = prepare(table)
    kept = np.array(
        [i for i, column in enumerate(found.feature_columns) if column in ("gaps", "genre")]
    )
    narrow = found.narrowed(table, kept, 0)
    np.testing.assert_allclose(narrow(table[["gaps", "genre"]]), found(table)[:, kept], rtol=1e-12)
    assert {c.form for c in narrow.columns if c.name == "text"} == {NOT_INFORMATIVE}
    assert narrow.parts["text"] == []


def test_the_number_of_features_is_limited():
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(rng.normal(size=(80, 3000))).rename(columns=lambda i: f"c{i}")
    y = np.where(GROUP % 2, 1.0, -1.0) * table["c1234"].to_numpy()
    with pytest.warns(
        TableWarning,
        match=r"^The columns give 3,000 features; the 100 that are most strongly associated with "
        r"the target within the groups are used\.$",
    ) as caught:
        found = prepare(table, y)
    assert caught[0].message.messages == (TooManyFeatures(3000, 100),)
    assert len(found.feature_names) == settings.TABLES.max_features
    assert "c1234" in found.feature_names
    assert found(table[found.used]).shape == (80, settings.TABLES.max_features)


def test_the_number_of_categories_and_texts_is_limited(monkeypatch):
    limited = replace(settings.TABLES, max_indicators=10, max_text_columns=1)
    monkeypatch.setattr(settings, "TABLES", limited)
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({f"c{i}": rng.choice(list("abcdefgh"), 80) for i in range(5)})
    for i in range(2):
        table[f"t{i}"] = [f"so many words in row {j} of {i}" for j in range(80)]
    found = prepare(table)
    assert sum(name.startswith("c") for name in found.feature_names) == 10
    assert {c.name: c.form for c in found.columns}["t1"] == "more than 1 columns of text"
