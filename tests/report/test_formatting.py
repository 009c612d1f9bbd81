"""Intervals in words, which claim no more than the number of groups allows."""

from dataclasses import replace

import pytest

from leaflearn.report.formatting import describe_gain, explain_intervals, question_gain
from leaflearn.tabular.held_out import ErrorsOfContext, HeldOutErrors

PARTS = tuple(ErrorsOfContext(k, n_rows=120, n_groups=15, own=0.25, one_model=0.5) for k in (0, 1))
ERRORS = HeldOutErrors(
    "error rate", 0.5, 0.25, 240, n_groups=30, ratio_interval=(0.4, 0.625), by_context=PARTS
)


def plain(text):
    return "".join(text).replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("contexts", "ratio", "sentence"),
    [
        (
            0.25,
            (0.4, 0.625),
            "With the contexts the error is 50 % smaller than that of a pooled model (95 % "
            "interval: 38 % to 60 %).",
        ),
        (0.25, None, "With the contexts the error is 50 % smaller than that of a pooled model."),
        (
            0.25,
            (0.2, 1.25),
            "With the contexts the error is 50 % smaller than that of a pooled model, but that "
            "may be "
            "chance: the 95 % interval goes from 80 % smaller to 25 % larger.",
        ),
        (
            0.48,
            (0.9, 1.02),
            "The contexts hardly lower the error: a pooled model does about as well.",
        ),
        (0.0, None, "With the contexts the error is 100 % smaller than that of a pooled model."),
        (
            0.6,
            (1.1, 1.3),
            "With the contexts the error is 20 % larger than that of a pooled model (95 % "
            "interval: 10 % to 30 %).",
        ),
        (
            0.6,
            (0.9, 1.5),
            "With the contexts the error is 20 % larger than that of a pooled model, but that may "
            "be chance: the 95 % interval goes from 10 % smaller to 50 % larger.",
        ),
    ],
)
def test_the_gain_of_the_contexts_in_words(contexts, ratio, sentence):
    assert (
        plain(describe_gain(replace(ERRORS, contexts=contexts, ratio_interval=ratio))) == sentence
    )


def test_group_effects_are_named():
    both = replace(ERRORS, has_effects=True)
    assert plain(describe_gain(both)).startswith("With the contexts and group effects the error is")
    alone = replace(both, by_context=PARTS[:1], contexts=0.5)
    assert plain(describe_gain(alone)) == (
        "Group effects hardly lower the error: a pooled model does about as well."
    )


def test_a_pooled_model_without_errors_cannot_be_beaten():
    none = replace(ERRORS, one_model=0.0, contexts=0.1, ratio_interval=None)
    assert plain(describe_gain(none)) == (
        "With the contexts the error is larger than that of a pooled model, which makes none."
    )
    assert "hardly" in plain(describe_gain(replace(none, contexts=0.0)))


@pytest.mark.parametrize(
    ("contexts", "ratio", "question"),
    [
        (0.25, (0.4, 0.6), ""),
        (0.25, None, ""),
        (0.25, (0.2, 1.2), "on held-out rows, the gain over a pooled model may be chance"),
        (0.49, (0.97, 0.99), "a pooled model predicts held-out rows about as well"),
        (0.6, (1.1, 1.3), "a pooled model predicts held-out rows better"),
    ],
)
def test_a_gain_is_questioned_where_the_figures_do_not_show_it(contexts, ratio, question):
    assert question_gain(replace(ERRORS, contexts=contexts, ratio_interval=ratio)) == question


def test_what_an_interval_means_and_how_it_is_estimated():
    assert plain(explain_intervals(ERRORS)) == (
        "A 95 % interval is where the error would lie on many more groups like these; it misses "
        "about 5 times in 100. It is estimated from how much the error differs between the 30 "
        "groups with held-out rows, taking the contexts as given."
    )
    assert plain(explain_intervals(replace(ERRORS, by_context=PARTS[:1]))).endswith(
        "between the 30 groups with held-out rows."
    )


@pytest.mark.parametrize(
    ("n_groups", "end"),
    [
        (9, " With so few groups it is only approximate."),
        (
            4,
            "The held-out rows come from 4 groups, too few for a 95 % interval: the error on other "
            "groups may be very different.",
        ),
        (
            1,
            "The held-out rows come from 1 group, too few for a 95 % interval: the error on other "
            "groups may be very different.",
        ),
        (0, "The model was saved by a version without intervals; fit it again to get them."),
    ],
)
def test_few_groups_are_mentioned(n_groups, end):
    assert plain(explain_intervals(replace(ERRORS, n_groups=n_groups))).endswith(end)
