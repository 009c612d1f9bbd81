"""The words agree with the numbers, also if the contexts were not recovered."""

import dataclasses

import numpy as np
import pytest

from leaflearn.benchmark.comparison import Comparison, Learner
from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.datasets.sampling import sample_groups
from leaflearn.benchmark.evaluation import BestErrors
from leaflearn.benchmark.stories import (
    STORIES,
    describe_errors,
    draw_digits,
    make_section,
    summarize,
)


def make_result(data, errors, agreement=0.996):
    """A comparison with the given errors; LEAF's models are right, but in reverse order."""
    sample, truth = sample_groups(data, n_groups=6, random_state=0)
    n = len(data)
    turned = np.arange(n)[::-1]
    predictions = np.stack([domain.test.y for domain in data], axis=1)[:, turned]
    learners = {
        name: Learner(
            predictions, BestErrors(np.array(values), turned), turned[truth.domain], turned
        )
        for name, values in errors.items()
    }
    learners["ERM"] = dataclasses.replace(
        learners["ERM"], predictions=predictions[:, :1], domains=np.array([-1])
    )
    return Comparison(data, sample, truth, learners, np.tile(truth.domain, (3, 1)), agreement)


@pytest.fixture(scope="module")
def functions():
    return make_result(
        DATASETS["functions"](),
        {"ERM": [1.1, 1.0, 0.9], "LEAF": [0.01, 0.0234, 0.02], "oracle": [0.01, 0.01, 0.011]},
    )


@pytest.fixture(scope="module")
def digits():
    return make_result(
        DATASETS["colored-digits"](),
        {"ERM": [0.6, 0.4], "LEAF": [0.0523, 0.0], "oracle": [0.04, 0.0]},
    )


def test_stories_are_about_registered_data_sets_only():
    assert set(STORIES) <= set(DATASETS)


def test_a_finding_in_regression(functions):
    assert summarize(functions) == (
        "LEAF allocated 99.6% of the 6 groups to the right context without ever seeing it. "
        "Its worst error is 0.023; that of the pooled model is 1.100, that of the oracle 0.011."
    )


def test_a_finding_in_classification(digits):
    assert summarize(digits).endswith(
        "Its worst error is 5.2%; that of the pooled model is 60.0%, that of the oracle 4.0%."
    )


def test_a_failure_is_reported(functions):
    failed = dataclasses.replace(functions, agreement=0.5)
    sentence = "Not recovered: LEAF allocated only 50.0% of the 6 groups to the right context."
    assert summarize(failed) == sentence


def test_the_table_has_a_row_for_each_learner(digits):
    section = make_section(STORIES["colored-digits"], digits)
    assert section.table == (
        ("learner", "digit", "color"),
        ("ERM, pooled model", "60.0%", "40.0%"),
        ("LEAF", "5.2%", "0.0%"),
        ("oracle, given the truth", "4.0%", "0.0%"),
    )
    assert [image.name for image in section.images] == [
        "colored-digits.png",
        "colored-digits-allocation.png",
    ]


def test_errors_by_name(functions):
    assert describe_errors(functions, "LEAF") == {
        "absolute": 0.01,
        "sine": 0.0234,
        "logarithm": 0.02,
    }


def test_predictions_are_those_of_the_context_that_matches_the_domain(digits, monkeypatch):
    seen = {}

    def keep(images, answers, truths, names):
        seen.update(answers=answers, truths=truths)
        raise StopIteration

    monkeypatch.setattr("leaflearn.benchmark.stories.plot_answers", keep)
    with pytest.raises(StopIteration):
        draw_digits(digits)
    assert np.array_equal(seen["answers"], seen["truths"])  # matched models are right
    assert seen["truths"].shape == (24, 2)
    assert seen["truths"][0].tolist() == ["5", "pink"]
