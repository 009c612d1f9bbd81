"""Warnings of the fit and of the data are shown once, with advice that suits them."""

import copy

import numpy as np
import pytest

from leaflearn.messages import (
    ColumnsLeftOut,
    FitMayBeWrong,
    LinearModelBetter,
    NoGroupColumn,
    OneRowPerGroup,
    SavedText,
    TargetMissing,
    TryMoreContexts,
)
from leaflearn.report.advice import python_advice
from leaflearn.report.model_report import render_report
from leaflearn.report.notices import ADVICE, collect_notices
from leaflearn.report.origin import Origin
from leaflearn.report.rendering import isolate
from leaflearn.tabular.held_out import HeldOutErrors
from report_models import fit_quantity

MAY_BE_WRONG = FitMayBeWrong((TryMoreContexts(3, 2),))


@pytest.fixture
def model():
    model = copy.copy(fit_quantity(tame=True)[0])
    model.estimator_ = copy.copy(model.estimator_)
    return model


def collect(model):
    return collect_notices(model, None, python_advice(model))


def test_stored_warnings_replace_the_general_one(model):
    model.estimator_.converged_ = False
    model.warnings_ = [MAY_BE_WRONG]
    page = render_report(model, None, Origin())
    assert "3 contexts predict held-out rows significantly better than 2; try n_contexts=3." in page
    assert "The diagnostics of the fit contradict" not in page


def test_stored_warnings_are_shown_once_each_with_the_advice_that_suits_them(model):
    model.warnings_ = [
        OneRowPerGroup("site"),
        LinearModelBetter("RMSE", 0.5, 1.0),
        TargetMissing("effect", 2, 120),
        TargetMissing("effect", 2, 120),
        ColumnsLeftOut(("the same everywhere",), (("day",),)),
        MAY_BE_WRONG,
    ]
    model.group_sizes_ = np.ones_like(model.group_sizes_)
    assert [(notice.problem, notice.about, notice.advice) for notice in collect(model)] == [
        (isolate(model.warnings_[0], 1000), "fit", ADVICE["fit"]),
        (isolate(model.warnings_[5], 1000), "fit", ADVICE["fit"]),
        (isolate(model.warnings_[1], 1000), "data", ""),
        (isolate(model.warnings_[2], 1000), "data", ADVICE["cells"]),
    ]


def test_single_rows_are_a_problem_of_the_fit_if_contexts_were_found_in_them(model):
    model.warnings_ = [NoGroupColumn()]
    assert [notice.about for notice in collect(model)] == ["data"]
    model.group_sizes_ = np.ones_like(model.group_sizes_)
    assert [notice.about for notice in collect(model)] == ["fit"]


def test_models_without_stored_warnings_are_checked_for_single_rows(model):
    model.group_sizes_ = np.ones_like(model.group_sizes_)
    (notice,) = collect(model)
    assert notice.problem.startswith("Every group is a single row")
    assert notice.advice.startswith("Name with `group=` a column")
    assert notice.about == "fit"


@pytest.mark.parametrize("saved", ["Column 'a' is empty.", SavedText("Column 'a' is empty.")])
def test_sentences_of_older_models_are_remarks_on_the_data(model, saved):
    model.warnings_ = [saved]
    (notice,) = collect(model)
    assert notice.problem == isolate("Column 'a' is empty.")
    assert (notice.about, notice.advice) == ("data", "")


def test_auto_is_not_advised_to_users_who_set_it(model):
    model.estimator_.converged_ = False
    advice = {}
    for model.contexts in (2, "auto"):
        advice[model.contexts] = collect(model)[0].advice
    assert advice[2].startswith(
        "Fit again with `contexts='auto'` or another `random_state=` and compare;"
    )
    assert advice["auto"].startswith("Fit again with another `random_state=` and compare;")


def test_unstable_starts_are_reported(model):
    model.estimator_.stability_ = 0.5
    (notice,) = collect(model)
    assert notice.problem.replace("\u00a0", " ").endswith("agree on only 50 % of them.")


def test_contexts_that_do_not_lower_the_error_are_reported(model):
    model.errors_ = HeldOutErrors("RMSE", one_model=1.0, contexts=1.0, n_rows=90)
    (notice,) = collect(model)
    assert notice.problem == "The contexts predict held-out rows no better than a pooled model."
    assert notice.advice == "Fit with `contexts=1`, or provide more rows per group."
