"""Predictions of table models with group effects, for known, identified and unknown groups."""

import warnings

import numpy as np
import pandas
import pytest

from leaflearn.messages import PredictedWithoutEffects, TableWarning
from leaflearn.tabular.table_model import TableModel

N_SITES = 24
OFFSETS = np.random.default_rng(5).normal(0.0, 2.0, N_SITES)


def make_table(name="site", seed=0, n_rows=12):
    """Sites with an offset of their own, in two contexts with opposite slopes."""
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(N_SITES), n_rows)
    dose = rng.normal(size=len(site))
    slope = np.where(site % 3 == 0, -3.0, 3.0)
    effect = slope * dose + OFFSETS[site] + rng.normal(0.0, 0.3, len(site))
    names = [f"{name} {i}" for i in site]
    return pandas.DataFrame({"site": names, "dose": dose, "effect": effect})


TABLE, LATER = make_table(), make_table(seed=1, n_rows=3)


def fit(target="effect", **options):
    table = TABLE.assign(verdict=np.where(TABLE["effect"] > 0, "good", "bad"))
    options = {"local_model": "linear", "features": ["dose"], **options}
    return TableModel(target, "site", **options).fit(table)


@pytest.fixture(scope="module")
def model():
    return fit(contexts=2)


@pytest.fixture(scope="module")
def one_context():
    return fit(contexts=1)


def rmse(answers):
    return float(np.sqrt(np.mean((answers["prediction"] - LATER["effect"]) ** 2)))


def test_known_groups_are_predicted_with_their_effects(model):
    answers = model.predict(LATER.drop(columns="effect"), by_group=True)
    assert list(answers.columns) == ["context", "probability", "prediction", "standard_deviation"]
    X = model.features_of(LATER)
    expected = model.estimator_.predict(X, groups=LATER["site"].to_numpy())
    np.testing.assert_allclose(answers["prediction"], expected)
    is_third = LATER["site"].str.split().str[1].astype(int) % 3 == 0
    assert (answers["context"] == is_third.astype(int)).all()
    assert rmse(answers) < 0.5  # the noise is 0.3, and offsets are 2
    np.testing.assert_allclose(answers["standard_deviation"], 0.31, atol=0.04)


@pytest.mark.filterwarnings("ignore::leaflearn.messages.TableWarning")  # a group is not sure
def test_new_groups_get_the_effects_that_labelled_rows_suggest(model):
    few, new = (
        make_table("new", seed=2, n_rows=5),
        LATER.assign(site=make_table("new")["site"][::4].to_numpy()),
    )
    answers = model.predict(new, support=few)
    assert rmse(answers) < 0.6
    assert rmse(model.predict(LATER, context=0)) > 2.0
    alone = new["site"] == "new 7"
    unnamed = model.predict(
        new[alone].drop(columns="site"), support=few[few["site"] == "new 7"].drop(columns="site")
    )
    np.testing.assert_allclose(unnamed["prediction"], answers["prediction"][alone])


def test_one_context_needs_no_option_for_effects_of_known_groups(one_context):
    by_group = one_context.predict(LATER, by_group=True)
    pandas.testing.assert_frame_equal(one_context.predict(LATER), by_group)
    without = one_context.predict(LATER.drop(columns="site"))
    pandas.testing.assert_frame_equal(without, one_context.predict(LATER, context=0))
    assert rmse(without) > 1.3 * rmse(by_group)
    assert (without["standard_deviation"] > by_group["standard_deviation"]).all()


def test_unknown_groups_are_averaged_over_the_contexts_and_counted_once(model, monkeypatch):
    monkeypatch.setattr("leaflearn.tabular.predictions.ROWS_AT_ONCE", 5)
    rows = LATER.copy()
    rows.loc[:10, "site"], rows.loc[11:13, "site"] = "elsewhere", "far away"
    with pytest.warns(TableWarning) as caught:
        answers = model.predict(rows, by_group=True)
    (warning,) = caught
    assert warning.message.messages == (
        PredictedWithoutEffects(("elsewhere", "far away"), 14, 2, has_support=False),
    )
    assert str(warning.message) == (
        "2 groups ('elsewhere', 'far away') were not in the training table; 14 rows were predicted "
        "without group effects and averaged over the contexts. A few labelled rows of each in "
        "support= improve the predictions."
    )
    priors = model.estimator_.priors_
    each = model.predict(rows, each=True)
    np.testing.assert_allclose(answers["prediction"][:14], each[:14] @ priors)
    assert (answers["probability"][:14] == priors.max()).all()
    np.testing.assert_allclose(
        answers["prediction"][14:], model.predict(LATER, by_group=True)["prediction"][14:]
    )


def test_groups_without_labelled_rows_are_counted(one_context):
    few = TABLE[TABLE["site"] != "site 3"]
    with pytest.warns(
        TableWarning,
        match=r"^1 group \('site 3'\) has no labelled rows; 3 rows were predicted without group "
        r"effects\. A few labelled rows of it in support= improve the predictions\.$",
    ):
        one_context.predict(LATER, support=few)


def test_labels_have_effects_in_their_probabilities():
    model = fit("verdict", contexts=1)
    new = pandas.DataFrame({"site": [f"site {i}" for i in range(N_SITES)], "dose": 0.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answers = model.predict(new, proba=True)
    assert list(answers.columns) == [
        *("context", "probability", "prediction", "probability_bad", "probability_good"),
    ]
    highest, lowest = OFFSETS.argmax(), OFFSETS.argmin()
    assert answers["probability_good"][highest] > 0.8 > 0.2 > answers["probability_good"][lowest]
    assert (answers["prediction"][highest], answers["prediction"][lowest]) == ("good", "bad")
