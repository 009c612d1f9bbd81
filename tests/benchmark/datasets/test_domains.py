"""Sources draw the right examples, and invalid domain sets are refused."""

import dataclasses
import inspect

import numpy as np
import pandas as pd
import pytest

from leaflearn.benchmark.datasets.domains import Domain, DomainSet, Truth
from leaflearn.benchmark.datasets.sampling import GroupedSample
from leaflearn.benchmark.datasets.sources import Examples, Function
from leaflearn.core.batches import Batches

TABLE = Examples(np.arange(10.0)[:, None], np.arange(10))


def make_set(**changes):
    settings = {
        "name": "test",
        "domains": (Domain("a", TABLE, TABLE), Domain("b", TABLE, TABLE)),
        "n_groups": 5,
        "group_size": 2,
    }
    return DomainSet(**{**settings, **changes})


def test_a_table_draws_its_own_rows_and_keeps_inputs_with_targets():
    drawn = TABLE.draw(200, np.random.default_rng(0))
    assert np.array_equal(drawn.x[:, 0], drawn.y)
    assert set(drawn.y) == set(range(10))


def test_examples_need_one_target_for_each_input():
    with pytest.raises(
        ValueError, match=r"^x has 2 rows and y has 3; every input needs one target\.$"
    ):
        Examples(np.zeros((2, 1)), np.zeros(3))


def test_a_function_covers_its_interval_and_adds_noise_of_the_right_scale():
    source = Function(lambda x: 3 * x, low=-1.0, high=2.0, noise=0.1)
    drawn = source.draw(4000, np.random.default_rng(0))
    assert drawn.x.min() >= -1
    assert drawn.x.max() <= 2
    assert np.ptp(drawn.x) > 2.9
    assert np.std(drawn.y - 3 * drawn.x[:, 0]) == pytest.approx(0.1, rel=0.1)


def test_a_grid_has_both_ends_and_no_noise():
    grid = Function(np.square, low=-1.0, high=1.0, noise=5.0).grid(3)
    assert grid.x.tolist() == [[-1.0], [0.0], [1.0]]
    assert grid.y.tolist() == [1.0, 0.0, 1.0]


def test_probabilities_are_shares_of_one():
    assert make_set().probabilities.tolist() == [0.5, 0.5]
    assert make_set(shares=(6, 2)).probabilities.tolist() == [0.75, 0.25]


@pytest.mark.parametrize("shares", [(1.0,), (1.0, -1.0), (0.0, 0.0)])
def test_bad_shares_are_refused(shares):
    with pytest.raises(ValueError, match="needs one number of 0 or more for each of 2 domains"):
        make_set(shares=shares)


def test_domains_need_different_names():
    with pytest.raises(ValueError, match=r"a different name for each; it got \['a', 'a'\]"):
        make_set(domains=(Domain("a", TABLE, TABLE), Domain("a", TABLE, TABLE)))


def test_domains_need_inputs_of_one_shape():
    wide = Examples(np.zeros((2, 3)), np.zeros(2))
    with pytest.raises(ValueError, match=r"inputs of one shape; they have \[\(1,\), \(3,\)\]"):
        make_set(domains=(Domain("a", TABLE, TABLE), Domain("b", wide, wide)))


def test_training_inputs_need_the_same_shape_too():
    wide = Examples(np.zeros((2, 3)), np.zeros(2))
    with pytest.raises(ValueError, match=r"inputs of one shape; they have \[\(1,\), \(3,\)\]"):
        make_set(domains=(Domain("a", TABLE, TABLE), Domain("b", wide, TABLE)))


def test_an_empty_table_is_refused():
    empty = Examples(np.zeros((0, 1)), np.zeros(0))
    with pytest.raises(
        ValueError,
        match=r"^Every domain of 'test' needs training and test examples; a table is empty\.$",
    ):
        make_set(domains=(Domain("a", empty, TABLE),))


@pytest.mark.parametrize("y", [np.array([0, 5]), np.array([-1, 0]), np.array([0.0, 1.0])])
def test_labels_are_numbers_of_classes(y):
    table = Examples(np.zeros((2, 1)), y)
    with pytest.raises(
        ValueError,
        match=r"^'test' has 3 classes, so labels must be integers from 0 to 2; they are ",
    ):
        make_set(domains=(Domain("a", table, table),), classes=("x", "y", "z"))


@pytest.mark.parametrize("x", [[[1.0], [2.0]], pd.DataFrame({0: [1.0, 2.0]})])
def test_tables_are_arrays(x):
    with pytest.raises(
        TypeError,
        match=r"^x is a (list|DataFrame), but a numpy array was expected; pass np.asarray\(x\)\.$",
    ):
        Examples(x, np.array([0, 1]))


def test_shares_that_are_not_numbers_are_refused():
    with pytest.raises(ValueError, match="needs one number of 0 or more"):
        make_set(shares=(float("nan"), 1.0))


def test_learners_have_no_access_to_the_truth():
    """No input of a learner has a field for the domain, and a Truth is immutable."""
    assert GroupedSample._fields == ("x", "y", "groups")
    assert not any(
        "domain" in field.name or "truth" in field.name for field in dataclasses.fields(Batches)
    )
    assert "truth" not in inspect.signature(Examples).parameters
    with pytest.raises(dataclasses.FrozenInstanceError):
        Truth(np.array([0]), ("a",)).domain = np.array([1])
