"""Messages on the command line: advice names options, and everything else stays the same."""

import re

import pytest

from leaflearn import messages as m
from leaflearn.cli.messages import render

LOCAL_MODEL = "; give more rows, or try --local-model linear or boosting."
RENDERED = [  # the message, and how its command-line text ends
    (m.TryMoreContexts(3, n_fitted=2), " significantly better than 2; try --contexts 3."),
    (m.NoBetterThanPooled(2), "; there may be no conflict: try --contexts 1."),
    (m.OtherAllocationBetter(5.2), " 5 times better; try another --seed."),
    (m.Collapsed(3), " significantly better than 1; try another --seed."),
    (m.StillMoving(), " when the fit ended; try another --seed."),
    (m.NoBetterThanConstant(0.12), f" leave 12 % of that loss{LOCAL_MODEL}"),
    (m.SurrogateGap((0, 2), 0.5), f" between the training rows{LOCAL_MODEL}"),
    (
        m.SingleRowGroups(is_classifier=True),
        " labels of its own; pass --group (annotator, site, session, ...) so that rows known to "
        "share a context stay together.",
    ),
    (
        m.MayNameItems("film", ("day",)),
        "; to use all of its values, name the columns to learn from with --features.",
    ),
    (
        m.NoGroupColumn(),
        "pass --group (annotator, site, session, ...) so that rows known to share a "
        "context stay together.",
    ),
    (m.LinearModelBetter("RMSE", 1.0, 2.0), " (RMSE 1 instead of 2); try --local-model linear."),
    (
        m.UncertainContexts(("a",)),
        "; `leaflearn identify` reports how many more labelled rows are needed.",
    ),
    (
        m.ContextNotChosen(2),
        "The model has 2 contexts; choose how to predict: --context K, --support FEW, "
        "--each or --by-group.",
    ),
    (m.FittedWithoutGroups(), "; use --context K or --each."),
    (
        m.GroupsNotInTraining(("a", "b")),
        "; pass a few labelled rows of each with --support, or use --each.",
    ),
    (
        m.GroupsWithoutLabels(("a",)),
        "; add a few labelled rows of it to the --support table, or use --each.",
    ),
    (m.NoProbabilities("dose"), "; leave out --proba."),
    (
        m.LocalModelCodeMissing("module:a.py:make"),
        " with --local-model module:a.py:make, which is code and not in the folder; pass it again.",
    ),
    (m.LocalModelInFolder(), "; leave out --local-model."),
    (m.ImageFolderMissing(), "; pass the folder of the new images with --images."),
    (m.NoImageColumn("images"), "; pass the column that does with --image-column."),
]


@pytest.mark.parametrize(("message", "end"), RENDERED)
def test_advice_names_options(message, end):
    text = render(message)
    assert text.endswith(end)
    assert not re.search(r"\w=", text)


@pytest.mark.parametrize("message", [message for message, _ in RENDERED])
def test_only_the_advice_differs_from_python(message):
    """Both texts have the same beginning, up to the last clause."""
    text, python = render(message), str(message)
    if isinstance(message, m.LocalModelCodeMissing):  # it names the option earlier
        return
    finding = re.split(r"; |, pass", text)[0]
    assert python.startswith(finding)


def test_problems_of_a_fit_are_rendered_one_by_one():
    message = m.FitMayBeWrong((m.StillMoving(), m.StartsDisagree(0.5)))
    assert render(message) == (
        "The fit may not be right. Groups were still changing contexts when the fit ended; try "
        f"another --seed. {m.StartsDisagree(0.5)}"
    )


@pytest.mark.parametrize("message", [m.SavedText("Column 'a' is empty."), "Column 'a' is empty."])
def test_other_messages_stay_the_same(message):
    assert render(message) == "Column 'a' is empty."
