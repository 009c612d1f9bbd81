"""Real tables are read from the data folder and encoded as numbers."""

import re
from dataclasses import replace

import numpy as np
import pytest

from leaflearn.benchmark.datasets.store import MissingDataError
from leaflearn.benchmark.real.tables import EXTRA_TABLES, TABLES, all_tables


def test_columns_become_numbers(pets):
    data = pets.load()
    assert data.columns == ("age", "kind=cat", "kind=dog")
    assert data.X.shape == (120, 3)
    assert data.X[:3].tolist() == [[0, 1, 0], [1, 0, 1], [2, 0, 0]]
    assert (data.n_classes, data.classes) == (0, ())
    assert data.group.tolist() == np.repeat(np.arange(10), 12).tolist()


def test_other_measurements_of_the_target_and_row_numbers_are_left_out(pets):
    assert not {"length", "rownames", "owner", "weight"} & set(pets.load().columns)


def test_a_target_of_text_has_classes(pets):
    data = replace(pets, target="kind").load()
    assert data.classes == ("ant", "cat", "dog")
    assert data.y[:3].tolist() == [1, 2, 0]
    assert "weight" in data.columns


def test_missing_values_become_means_and_constant_columns_go(pets):
    pets.path.write_text("owner,weight,age,sort,same\n1,2,4,b,7\n1,3,,a,7\n2,4,8,,7\n")
    data = pets.load()
    assert data.columns == ("age", "sort=b")
    assert data.X.tolist() == [[4, 1], [6, 0], [8, 0]]


def test_rare_values_of_a_category_are_encoded_like_the_first(pets):
    lines = [f"{i % 9},{i},v{i % 50:02d}" for i in range(100)]
    pets.path.write_text("\n".join(["owner,weight,code", *lines]))
    data = pets.load()
    assert data.X.shape == (100, 39)
    assert data.X[[0, 40, 49]].sum() == 0


def test_a_missing_file_is_one_sentence_with_its_source(pets):
    pets.path.unlink()
    sentence = (
        f"The table 'pets' needs '{pets.path}', which does not exist; "
        "get it from its public source (a friend) or set LEAFLEARN_DATA."
    )
    with pytest.raises(MissingDataError, match=f"^{re.escape(sentence)}$"):
        pets.load()


def test_a_file_without_the_target_is_one_sentence(pets):
    pets.path.write_text("owner,age\n1,2\n")
    sentence = (
        f"'{pets.path}' has no column 'weight'; get the file from its public source (a friend)."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        pets.load()


def test_every_table_has_a_source_and_its_own_name():
    assert all(table.source and name == table.name for name, table in TABLES.items())
    assert len(TABLES) == 15


def test_extra_tables_have_their_own_folder_and_names():
    assert len(EXTRA_TABLES) == 12
    assert len(all_tables()) == len(TABLES) + len(EXTRA_TABLES)
    assert {table.path.parent.name for table in EXTRA_TABLES.values()} == {"real-extra"}
    assert {table.path.parent.name for table in TABLES.values()} == {"real"}
