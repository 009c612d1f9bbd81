"""The first section says how many contexts were found, and which groups are in the smaller ones."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from leaflearn.report.advice import python_advice
from leaflearn.report.findings import describe_findings
from leaflearn.report.rendering import render
from leaflearn.tabular.held_out import HeldOutErrors
from leaflearn.tabular.table_model import TableModel


def make_model(contexts, names=None):
    """A fitted model with the attributes that the section reads."""
    contexts = np.asarray(contexts)
    n_contexts = int(contexts.max()) + 1
    model = TableModel("effect", group="site")
    model.estimator_ = SimpleNamespace(
        contexts_=contexts,
        n_contexts_=n_contexts,
        usage_=np.bincount(contexts) / len(contexts),
        converged_=True,
        groups_=np.array([f"site {i}" for i in range(len(contexts))] if names is None else names),
        probabilities_=np.eye(n_contexts)[contexts],
    )
    model.n_rows_, model.errors_, model.preparation_, model.local_model_ = 100, None, None, "mlp"
    return model


def render_section(model, difference=()):
    return render("findings.html", **describe_findings(model, 0, difference, python_advice(model)))


def read_summary(section):
    """The first paragraph as a reader sees it."""
    return read_words(re.search('<p class="lead">(.*?)</p>', section, re.S).group(1))


def read_words(section):
    """The section as a reader sees it."""
    return " ".join(re.sub("<[^>]+>", "", section).replace("\u00a0", " ").split())


def test_groups_of_smaller_contexts_are_named():
    assert (
        "<p>Context 1 contains <bdi>site 2</bdi>, <bdi>site 4</bdi>. Context 0 contains all "
        "others.</p>" in render_section(make_model([0, 0, 1, 0, 1]))
    )
    assert (
        "Context 1 contains site 3. Context 2 contains site 4. Context 0 contains all others."
        in read_words(render_section(make_model([0, 0, 0, 1, 2])))
    )


def test_many_groups_or_contexts_are_not_named():
    assert " contains " not in render_section(make_model([0] * 20 + [1] * 13))
    assert " contains " not in render_section(make_model([0, 0, 1, 2, 3]))


def test_names_are_text():
    section = render_section(make_model([0, 0, 1], ["a", "b", "<b>&"]))
    assert "Context 1 contains <bdi>&lt;b&gt;&amp;</bdi>." in section


def test_one_context_is_not_reported_as_certain():
    one = make_model([0, 0, 0])
    assert "the groups do not clearly contradict each other" in read_summary(render_section(one))
    one.contexts = 1
    assert read_summary(render_section(one)) == (
        "One context was requested for 3 groups (by site, 100 rows): one model predicts "
        "effect for all."
    )


def test_errors_are_shown_with_intervals_and_an_explanation():
    two = make_model([0, 0, 0, 1, 1, 1])
    two.errors_ = HeldOutErrors(
        "error rate", 0.5, 0.125, 240, 6, (0.4, 0.6), (0.08, 0.2), (0.15, 0.4)
    )
    words = read_words(render_section(two))
    assert (
        "Error of a pooled model50 % of new predictions are wrong 95 % interval: 40 % to 60 %"
        in words
    )
    assert (
        "Error with the contexts12 % of new predictions are wrong 95 % interval: 8 % to 20 %"
        in words
    )
    assert (
        "With the contexts the error is 75 % smaller than that of a pooled model (95 % interval: "
        "60 % to 85 %)." in words
    )
    assert (
        "between the 6 groups with held-out rows. With so few groups it is only approximate."
        in words
    )


def test_the_first_sentence_does_not_contradict_the_errors_below():
    two = make_model([0, 0, 0, 1, 1, 1])
    two.errors_ = HeldOutErrors("RMSE", 4.3, 4.3, 240, 6, (4.0, 4.6), (4.0, 4.6), (0.9, 1.1))
    assert read_summary(render_section(two)) == (
        "2 contexts were found in 6 groups (by site, 100 rows), but a pooled model predicts "
        "held-out rows about as well: the groups may not contradict each other on effect."
    )
    two.errors_ = replace(two.errors_, contexts=1.0, ratio_interval=(0.2, 0.3))
    assert "so no single model can be right" in read_summary(render_section(two))


def test_group_effects_of_one_context_are_shown():
    one = make_model([0, 0, 0])
    one.errors_ = HeldOutErrors("RMSE", 2.0, 1.0, 12, 3, has_effects=True)
    words = read_words(render_section(one))
    assert "one model predicts for all, with effects of each group." in words
    assert "Error with group effects1 typical error" in words
    assert "With group effects the error is 50 % smaller" in words


def test_errors_of_too_few_groups_have_no_interval_and_the_reason_is_given():
    two = make_model([0, 0, 1])
    two.errors_ = HeldOutErrors("RMSE", 2.0, 1.0, 12, 3)
    section = render_section(two)
    assert 'class="ends"' not in section
    assert "The held-out rows come from 3 groups, too few for a 95 % interval" in read_words(
        section
    )


def test_where_the_contexts_differ_follows_the_summary():
    sentences = ["The contexts differ most in \u2068dose\u2069.", "A second sentence."]
    section = render_section(make_model([0, 1]), sentences)
    assert re.search(
        r'</p>\n<p class="where">The contexts differ most in <bdi>dose</bdi>\. A second sentence\. '
        r'<a href="#disagreement">See the charts\.</a></p>',
        section,
    )
    assert 'class="where"' not in render_section(make_model([0, 1]))


def test_the_next_steps_are_python_by_default():
    words = read_words(render_section(make_model([0, 1])))
    assert "model.identify(labelled)model.predict(new, support=labelled)" in words
    assert (
        "Fill in labelled: your table of these rows, with their effect, and with site if they are "
        "from several sources; new: your table of rows to predict; model: this model." in words
    )
    assert "model.predict(new, by_group=True)" in words
    assert "--" not in words
