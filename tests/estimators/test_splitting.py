import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaflearn import WithinGroupKFold


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=10).filter(lambda s: max(s) > 1),
    n_splits=st.integers(2, 6),
    shuffle=st.booleans(),
)
@settings(deadline=None)
def test_every_row_is_tested_once_and_its_group_stays_known(sizes, n_splits, shuffle):
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    tested = []
    for train, test in WithinGroupKFold(n_splits, shuffle=shuffle, random_state=0).split(
        np.zeros((len(groups), 1)), groups=groups
    ):
        assert sorted([*train, *test]) == list(range(len(groups)))
        assert set(groups[test]) <= set(groups[train])
        tested += test.tolist()
    alone = [i for i, g in enumerate(groups) if sizes[g] == 1]
    assert sorted(tested + alone) == list(range(len(groups)))


def test_shuffling_is_reproducible_and_spreads_small_groups():
    groups = np.repeat(np.arange(100), 2)
    X = np.zeros((200, 1))
    one, two = (
        [
            test.tolist()
            for _, test in WithinGroupKFold(4, shuffle=True, random_state=3).split(X, groups=groups)
        ]
        for _ in range(2)
    )
    assert one == two
    assert min(len(test) for test in one) > 25
    assert [len(test) for _, test in WithinGroupKFold(4).split(X, groups=groups)] == [
        50,
        50,
        50,
        50,
    ]


@pytest.mark.parametrize(
    ("n_splits", "groups", "message"),
    [
        (
            5,
            None,
            (
                "groups is None, but WithinGroupKFold holds out rows of every group and needs the"
                " group of each row."
            ),
        ),
        (1, [0, 0, 1], "n_splits=1, but at least 2 folds are needed."),
        (
            2,
            [0, 1, 2],
            (
                "every group has a single row, so nothing can be held out within groups; use KFold"
                " instead."
            ),
        ),
    ],
)
def test_what_cannot_be_split_gets_one_sentence(n_splits, groups, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        next(WithinGroupKFold(n_splits).split(np.zeros((3, 1)), groups=groups))
    assert str(error.value) == message
