"""The messages of tables: singular, plural, and JSON."""

import json

import pytest

from leaflearn.messages import (
    ColumnsLeftOut,
    GroupsNotInTraining,
    GroupsWithoutLabels,
    MayNameItems,
    NoColumnsLeft,
    UncertainContexts,
    UnnamedColumns,
    message_from_json,
    message_to_json,
)

SENTENCES = [
    (
        UnnamedColumns(tuple(range(1, 12))),
        "Columns 1, 2, 3, 4, 5, 6, 7, 8 and others have no name and were left out.",
    ),
    (
        GroupsNotInTraining(("A", "B")),
        "Groups 'A', 'B' were not in the training table; pass a few labelled rows of each as "
        "support=, or pass each=True.",
    ),
    (
        GroupsWithoutLabels(("A",)),
        "Group 'A' has no labelled rows; add a few labelled rows of it to support=, or pass "
        "each=True.",
    ),
    (
        MayNameItems("item", ("hint", "seconds")),
        "Column 'item' may name the labelled items, but 'hint', 'seconds' vary between rows of an "
        "item and are associated with the target, so only its most common values get features; to "
        "use all of its values, pass the columns to learn from as features=.",
    ),
    (
        UncertainContexts(("A", "B")),
        "The labelled rows do not determine the context of 'A', 'B', and the most probable one is "
        "used; `identify` reports how many more labelled rows are needed.",
    ),
    (
        NoColumnsLeft(ColumnsLeftOut(("constant", "empty"), (("a", "b"), ("c",)))),
        "No column is left to learn from. Columns were left out: 'a', 'b' (constant); 'c' (empty).",
    ),
]


@pytest.mark.parametrize(("message", "sentence"), SENTENCES)
def test_sentences(message, sentence):
    assert str(message) == sentence


@pytest.mark.parametrize("message", [message for message, _ in SENTENCES])
def test_messages_survive_json(message):
    assert message_from_json(json.loads(json.dumps(message_to_json(message)))) == message
