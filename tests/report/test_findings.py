"""The first section says what was found to somebody who decides: how many contexts, and who is not with the most."""

import re
from types import SimpleNamespace

import numpy as np

from leaflearn.report.findings import tell_findings


def model(contexts, names=None):
    """A fitted model as far as the section asks for it."""
    contexts = np.asarray(contexts)
    n_contexts = int(contexts.max()) + 1
    estimator = SimpleNamespace(
        contexts_=contexts, n_contexts_=n_contexts, usage_=np.bincount(contexts) / len(contexts), converged_=True,
        groups_=np.array([f"site {i}" for i in range(len(contexts))] if names is None else names),
        probabilities_=np.eye(n_contexts)[contexts],
    )  # fmt: skip
    return SimpleNamespace(estimator_=estimator, target="effect", group="site", n_rows_=100, errors_=None, contexts="auto")


def lead(section):
    """The first paragraph as a reader sees it."""
    return re.sub("<[^>]+>", "", re.search("<p class='lead'>(.*?)</p>", section, re.S).group(1))


def test_who_is_not_with_the_most_is_named():
    assert lead(tell_findings(model([0, 0, 1, 0, 1]), 0)).endswith("can be right for all of them. Context 1 holds site 2, site 4.")
    assert lead(tell_findings(model([0, 0, 0, 1, 2]), 0)).endswith(" Context 1 holds site 3. Context 2 holds site 4.")


def test_where_they_are_many_they_are_not():
    assert lead(tell_findings(model([0] * 20 + [1] * 13), 0)).endswith("can be right for all of them.")
    assert lead(tell_findings(model([0, 0, 1, 2, 3]), 0)).endswith("can be right for all of them.")


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
