"""The first section says what was found to somebody who decides: how many contexts, and who is not with the most."""

import re
from types import SimpleNamespace

import numpy as np

from leaflearn.report.findings import tell_findings
from leaflearn.tabular.held_out import HeldOutErrors


def model(contexts, names=None):
    """A fitted model as far as the section asks for it."""
    contexts = np.asarray(contexts)
    n_contexts = int(contexts.max()) + 1
    estimator = SimpleNamespace(
        contexts_=contexts, n_contexts_=n_contexts, usage_=np.bincount(contexts) / len(contexts), converged_=True,
        groups_=np.array([f"site {i}" for i in range(len(contexts))] if names is None else names),
        probabilities_=np.eye(n_contexts)[contexts],
    )  # fmt: skip
    return SimpleNamespace(
        estimator_=estimator, target="effect", group="site", n_rows_=100, errors_=None, contexts="auto", preparation_=None,
        local_model_="mlp",
    )  # fmt: skip


def lead(section):
    """The first paragraph as a reader sees it."""
    return words(re.search("<p class='lead'>(.*?)</p>", section, re.S).group(1))


def words(section):
    """All of it as a reader sees it."""
    return re.sub("<[^>]+>", "", section).replace("\u00a0", " ")


def test_who_is_not_with_the_most_is_named():
    assert (
        "<p>Context 1 holds <bdi>site 2</bdi>, <bdi>site 4</bdi>. Context 0 holds all others.</p>"
        in tell_findings(model([0, 0, 1, 0, 1]), 0)
    )
    assert "Context 1 holds site 3. Context 2 holds site 4. Context 0 holds all others." in words(
        tell_findings(model([0, 0, 0, 1, 2]), 0)
    )


def test_where_they_are_many_they_are_not():
    assert " holds " not in tell_findings(model([0] * 20 + [1] * 13), 0)
    assert " holds " not in tell_findings(model([0, 0, 1, 2, 3]), 0)


def test_names_are_text():
    section = tell_findings(model([0, 0, 1], ["a", "b", "<b>&"]), 0)
    assert "Context 1 holds <bdi>&lt;b&gt;&amp;</bdi>." in section


def test_one_context_is_not_said_to_be_certain():
    one = model([0, 0, 0])
    assert "the groups do not clearly contradict each other" in lead(tell_findings(one, 0))
    one.contexts = 1
    assert (
        lead(tell_findings(one, 0))
        == "One context was asked for in 3 groups (by site, 100 rows): one model answers effect for all of them."
    )


def test_errors_stand_with_their_intervals_and_what_these_are():
    two = model([0, 0, 0, 1, 1, 1])
    two.errors_ = HeldOutErrors(
        "error rate", 0.5, 0.125, 240, 6, (0.4, 0.6), (0.08, 0.2), (0.15, 0.4)
    )
    told = words(tell_findings(two, 0))
    assert (
        "Error of one model for all50 % of new answers are wrong 95 % interval: 40 % to 60 %"
        in told
    )
    assert "Error with the contexts12 % of new answers are wrong 95 % interval: 8 % to 20 %" in told
    assert (
        "With the contexts the error is 75 % smaller than that of one model for all (95 % interval: 60 % to 85 %)."
        in told
    )
    assert "between the 6 groups with held-out rows. With so few groups it is rough." in told


def test_errors_of_too_few_groups_stand_without_and_it_says_why():
    two = model([0, 0, 1])
    two.errors_ = HeldOutErrors("RMSE", 2.0, 1.0, 12, 3)
    told = words(tell_findings(two, 0))
    assert "class='ends'" not in tell_findings(two, 0)
    assert "The held-out rows are of 3 groups, too few for a 95 % interval" in told


def test_where_the_contexts_differ_comes_right_after_how_many():
    section = tell_findings(
        model([0, 1]), 0, ["The contexts differ most in <bdi>dose</bdi>.", "So they do."]
    )
    assert re.search(
        r"</p><p class='where'>The contexts differ most in <bdi>dose</bdi>\. So they do\. <a href='#disagreement'>See the charts\.</a></p>",
        section,
    )
    assert "class='where'" not in tell_findings(model([0, 1]), 0)


def test_commands_name_the_folder_and_what_is_to_be_filled_in():
    told = words(tell_findings(model([0, 1]), 0, place="my model"))
    assert "leaflearn identify &#x27;my model&#x27; FEW.csv" in told
    assert (
        "Fill in FEW.csv: your table of these rows, with their effect, and with site where they are of several sources;"
        in told
    )
    assert "MODEL" not in told
    assert "MODEL: the folder that the model is in." in words(tell_findings(model([0, 1]), 0))
