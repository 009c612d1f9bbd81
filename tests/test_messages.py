"""Every message has one sentence for Python, and is stored and read without loss."""

import json
import pickle
import warnings

import numpy as np
import pytest

from leaflearn import messages
from leaflearn.messages import (
    MESSAGES,
    Collapsed,
    FitMayBeWrong,
    LabelsDisagree,
    Message,
    NoBetterThanConstant,
    NoBetterThanPooled,
    OtherAllocationBetter,
    OutlierRowsDecide,
    RecoveryWarning,
    SavedText,
    SingleRowGroups,
    StartsDisagree,
    StillMoving,
    SurrogateGap,
    TooFewAnswers,
    TryMoreContexts,
    message_from_json,
    message_to_json,
)

ABOUT_THE_FIT = [
    (
        FitMayBeWrong((StillMoving(), TryMoreContexts(3, 2))),
        "The fit may not be right. Groups were still changing contexts when the fit ended; raise "
        "max_epochs. 3 contexts predict held-out rows significantly better than 2; try "
        "n_contexts=3.",
    ),
    (
        SingleRowGroups(is_classifier=True),
        "Every group has a single row, and contexts cannot be identified from single rows, unless "
        "every context has labels of its own; pass groups= (annotator, site, session, ...) so that "
        "rows known to share a context stay together. In a pipeline or search, groups are passed "
        "on only with sklearn.set_config(enable_metadata_routing=True).",
    ),
    (
        StillMoving(),
        "Groups were still changing contexts when the fit ended; raise max_epochs.",
    ),
    (
        StartsDisagree(0.5),
        "Starts that explain the groups equally well agree on 50 % of them only; give more rows "
        "per group, or more groups.",
    ),
    (
        OtherAllocationBetter(4.6),
        "Another allocation explains held-out groups 5 times better; set init='conflict', or raise "
        "n_init.",
    ),
    (
        TryMoreContexts(2, 1),
        "2 contexts predict held-out rows significantly better than 1; try n_contexts=2.",
    ),
    (
        NoBetterThanPooled(2),
        "2 contexts predict held-out rows no better than one does; there may be no conflict: try "
        "n_contexts=1.",
    ),
    (
        Collapsed(3),
        "All groups are in one context, but 3 contexts predict held-out rows significantly better "
        "than 1; set init='conflict', or raise n_init.",
    ),
    (
        NoBetterThanConstant(0.034),
        "The local models explain the groups no better than a constant does, while smooth "
        "surrogate models leave 3.4 % of that loss; give more rows, raise max_epochs, or try "
        "another local_model.",
    ),
    (
        OutlierRowsDecide(0.1, 0.25),
        "10 % of the rows seem to belong to another context than their group's, and without them "
        "25 % of the groups would change theirs; set init='conflict', which excludes such rows, or "
        "raise trim.",
    ),
    (
        SurrogateGap((0, 2), 0.4),
        "The local models of contexts 0, 2 are up to 40 % of the targets' standard deviation away "
        "from smooth surrogate models that predict held-out groups, so they may fit poorly between "
        "the training rows; give more rows, raise max_epochs, or try another local_model.",
    ),
    (
        LabelsDisagree(0.3),
        "The labels alone imply another context for 30 % of the rows; set init='conflict', which "
        "starts from them.",
    ),
    (
        TooFewAnswers("workers", "worker", 2, 3, 5),
        "Half of the workers gave at most 2 answers. From yes or no alone, 3 contexts cannot be "
        "identified with fewer than 5 per worker; collect more answers, or ask for fewer contexts.",
    ),
]


@pytest.mark.parametrize(("message", "sentence"), ABOUT_THE_FIT)
def test_every_message_about_a_fit_has_its_sentence(message, sentence):
    assert str(message) == sentence


@pytest.mark.parametrize("message", [message for message, _ in ABOUT_THE_FIT])
def test_messages_are_stored_and_read_without_loss(message):
    assert message_from_json(json.loads(json.dumps(message_to_json(message)))) == message


def test_numpy_numbers_are_stored_as_plain_ones():
    stored = message_to_json(SurrogateGap((np.int64(1),), np.float64(0.5)))
    assert json.dumps(stored) == '{"code": "surrogate-gap", "contexts": [1], "largest": 0.5}'


def test_sentences_of_version_0_1_0_are_kept():
    assert message_from_json("An old sentence.") == SavedText("An old sentence.")


def test_every_code_belongs_to_one_class():
    kinds = [kind for kind in vars(messages).values() if isinstance(kind, type)]
    for kind in kinds:
        if issubclass(kind, Message) and kind is not Message:
            assert MESSAGES[kind.code] is kind


def test_a_warning_holds_its_messages_and_shows_their_sentences():
    with pytest.warns(RecoveryWarning, match=r"^Groups were still changing contexts") as caught:
        warnings.warn(RecoveryWarning(StillMoving()), stacklevel=1)
    (warning,) = caught
    assert warning.message.messages == (StillMoving(),)
    assert pickle.loads(pickle.dumps(warning.message)).messages == (StillMoving(),)


def test_a_warning_of_plain_text_holds_it_as_a_message():
    warning = RecoveryWarning("A sentence.")
    assert str(warning) == "A sentence."
    assert warning.messages == (SavedText("A sentence."),)
