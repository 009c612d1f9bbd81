"""Groups that come in later: what is learnt from them, what opens, and what stays."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression

from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.core.training import Callback
from leaflearn.engines import settings
from leaflearn.updates import partial_fit
from leaflearn.updates import settings as update_settings

LINEAR = {"local_model": LinearRegression(), "random_state": 0}
SLOPES = np.array([-2.0, 2.0, 9.0])


def lines(contexts, first=0, size=10, seed=0):
    """A group for each entry of `contexts`, on the line of that number.

    Groups are numbered from `first`.
    """
    rng = np.random.default_rng([seed, first])
    truth = np.asarray(contexts)
    group = np.repeat(np.arange(len(truth)), size)
    X = rng.normal(size=(len(group), 1))
    return X, SLOPES[truth[group]] * X[:, 0] + rng.normal(0, 0.1, len(group)), group + first


@pytest.fixture
def leaf():
    return LeafRegressor(2, **LINEAR).fit(*lines([0, 1] * 10))


def snapshot(leaf):
    return pickle.dumps({name: value for name, value in vars(leaf).items() if name != "callbacks"})


@pytest.mark.parametrize("seed", range(5))
def test_a_context_opens_for_groups_that_none_explains(seed):
    leaf = LeafRegressor(2, **{**LINEAR, "random_state": seed}).fit(*lines([0, 1] * 10, seed=seed))
    assert leaf.partial_fit(*lines([2] * 8, first=20, seed=seed)) is leaf
    assert leaf.n_contexts_ == len(leaf.local_models_) == 3
    assert allocation_agreement(leaf.contexts_, [0, 1] * 10 + [2] * 8) == 1.0
    assert sorted(model.coef_[0].round() for model in leaf.local_models_) == [-2.0, 2.0, 9.0]
    assert leaf.n_contexts == 2, "what was asked for stays"


@pytest.mark.parametrize("seed", range(5))
def test_groups_of_known_contexts_open_nothing(seed):
    leaf = LeafRegressor(2, **{**LINEAR, "random_state": seed}).fit(*lines([0, 1] * 10, seed=seed))
    leaf.partial_fit(*lines([0] * 30 + [1] * 30, first=20, seed=seed))
    assert leaf.n_contexts_ == 2
    assert allocation_agreement(leaf.contexts_, [0, 1] * 10 + [0] * 30 + [1] * 30) == 1.0
    assert leaf.groups_.tolist() == list(range(80))


def test_one_large_group_is_enough_and_few_rows_are_not(leaf):
    leaf.partial_fit(*lines([2], first=20))
    assert leaf.n_contexts_ == 2, "ten rows are too few"
    slopes = [model.coef_[0] for model in leaf.local_models_]
    assert sorted(np.round(slopes)) == [-2.0, 2.0], "and teach nobody"
    leaf.partial_fit(*lines([2], first=21))
    assert leaf.n_contexts_ == 3, "but they are kept in mind"
    assert leaf.contexts_[20] == leaf.contexts_[21] == 2
    assert (
        LeafRegressor(2, **LINEAR)
        .fit(*lines([0, 1] * 10))
        .partial_fit(*lines([2], first=20, size=60))
        .n_contexts_
        == 3
    )


def test_several_contexts_can_open_at_once():
    leaf = LeafRegressor(1, **LINEAR).fit(*lines([2] * 12))
    leaf.partial_fit(*lines([0, 1] * 12, first=12))
    assert leaf.n_contexts_ == 3
    assert allocation_agreement(leaf.contexts_, [2] * 12 + [0, 1] * 12) > 0.95


def test_noise_opens_nothing(leaf):
    X, y, groups = lines([0] * 20, first=20)
    y = np.random.default_rng(1).permutation(
        4 * y
    )  # worse than anything seen, and nothing to be learnt from it
    assert leaf.partial_fit(X, y, groups).n_contexts_ == 2


def test_what_is_said_of_contexts_stays_consistent(leaf):
    leaf.partial_fit(*lines([2] * 30, first=20))
    assert leaf.usage_.tolist() == [0.6, 0.2, 0.2], "the new one is the most used now"
    assert leaf.predict([[1.0]])[0] == pytest.approx(9.0, abs=0.1)
    assert leaf.probabilities_.shape == (50, 3)
    assert leaf.probabilities_.sum(1) == pytest.approx(np.ones(50))
    assert leaf.history_["usage"].shape == (len(leaf.history_["epoch"]), 3)
    assert sorted(leaf.context_order_) == [0, 1, 2]
    assert leaf.context_order_[0] == 2
    assert leaf.empirical_error_ == pytest.approx(0.01, rel=0.2)
    found = leaf.identify(*lines([2, 0], first=90))
    assert leaf.predict([[1.0]], context=int(found.context[0]))[0] == pytest.approx(9.0, abs=0.1)
    assert not found.is_new.any()


def test_more_rows_of_a_known_group_are_the_same_group(leaf):
    X, y, _ = lines([1] * 3, first=20)
    leaf.partial_fit(X, y, np.repeat([3, 5, 21], 10))
    assert leaf.groups_.tolist() == [*range(20), 21]
    assert allocation_agreement(leaf.contexts_, [*[0, 1] * 10, 1]) == 1.0
    assert np.sum(leaf.replay_buffer_.group == 3) == 20


def test_the_evidence_of_a_known_group_adds_up():
    X, y, groups = lines([0, 1] * 10)
    leaf = LeafRegressor(2, **LINEAR).fit(X, y, groups)
    new_X, new_y, _ = lines([1] * 3, first=30)
    leaf.partial_fit(
        new_X, new_y, np.zeros(30, dtype=int)
    )  # group 0 was of the other line, with fewer rows
    assert leaf.contexts_[0] == leaf.contexts_[1]


def test_groups_may_have_any_names():
    X, y, groups = lines([0, 1] * 10)
    leaf = LeafRegressor(2, **LINEAR).fit(X, y, [f"site {g:02}" for g in groups])
    X, y, groups = lines([2] * 4, first=20)
    leaf.partial_fit(X, y, [f"a rather long name {g}" for g in groups])
    assert leaf.groups_[:2].tolist() == ["a rather long name 20", "a rather long name 21"]
    assert leaf.contexts_[:4].tolist() == [2, 2, 2, 2]
    leaf.partial_fit(X, y, groups)  # numbers beside names
    assert {"site 00", 20} < set(leaf.groups_.tolist())
    with pytest.raises(
        ValueError,
        match=(
            r"^groups is None, but the groups of this model have names; pass groups= to say which"
            r" row belongs"
        ),
    ):
        leaf.partial_fit(X, y)


@pytest.mark.filterwarnings("ignore::leaflearn.RecoveryWarning")
def test_without_groups_every_row_is_a_new_one():
    X, y, _ = lines([0] * 4)
    leaf = LeafRegressor(1, **LINEAR).fit(X, y).partial_fit(X[:5], y[:5])
    assert leaf.groups_.tolist() == list(range(45))


def test_the_first_call_is_a_fit():
    X, y, groups = lines([0, 1] * 10)
    first, fitted = (LeafRegressor(2, **LINEAR) for _ in range(2))
    first.partial_fit(X, y, groups)
    assert first.predict_each(X).tolist() == fitted.fit(X, y, groups).predict_each(X).tolist()
    assert vars(first).keys() == vars(fitted).keys()


def opposites(n_groups, first, seed):
    rng = np.random.default_rng(seed)
    X, group = rng.normal(size=(n_groups * 10, 2)), np.repeat(np.arange(n_groups), 10)
    return X, np.where((X[:, 0] > 0) == (group % 2 == 0), "yes", "no"), group + first


def test_all_labels_can_be_named_before_they_come():
    X, y, groups = opposites(20, 0, 0)
    leaf = LeafClassifier(2, local_model=LogisticRegression(), random_state=0)
    leaf.partial_fit(X, y, groups, classes=["yes", "perhaps", "no"])
    assert leaf.classes_.tolist() == ["no", "perhaps", "yes"]
    assert leaf.predict_proba(X).shape == (200, 3)
    X, _, groups = opposites(4, 20, 1)
    leaf.partial_fit(X, np.repeat("perhaps", 40), groups, classes=["no", "perhaps", "yes"])
    assert leaf.n_contexts_ == 3
    assert (leaf.predict(X, context=int(leaf.contexts_[-1])) == "perhaps").all()


def test_labels_that_were_not_named_are_refused():
    X, y, groups = opposites(20, 0, 0)
    leaf = LeafClassifier(2, local_model=LogisticRegression(), random_state=0)
    with pytest.raises(
        ValueError,
        match=r"^y holds 'no', but classes=\['perhaps', 'yes'\]; name all labels in classes\.$",
    ):
        leaf.partial_fit(X, y, groups, classes=["yes", "perhaps"])
    assert not hasattr(leaf, "classes_")
    leaf.fit(X, y, groups)
    text = (
        "y holds 'perhaps', a label that was not there before; known are ['no', 'yes']. "
        "Name all labels with classes= in the first call of partial_fit."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        leaf.partial_fit(X, np.where(y == "no", "perhaps", y), groups)
    with pytest.raises(
        ValueError,
        match=r"^classes=\['a'\] differs from the first call, which has to name all labels\.$",
    ):
        leaf.partial_fit(X, y, groups, classes=["a"])


def test_what_fails_changes_nothing(leaf, monkeypatch):
    before = snapshot(leaf)
    new = lines([2] * 8, first=20)

    def fail(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(partial_fit, "fill_replay_buffer", fail)  # the last thing that happens
    with pytest.raises(KeyboardInterrupt):
        leaf.partial_fit(*new)
    assert snapshot(leaf) == before
    for X, y in (
        (np.ones((2, 3)), [1.0, 2.0]),
        ([[1.0], [np.nan]], [1.0, 2.0]),
        ([[1.0]], [1.0, 2.0]),
    ):
        with pytest.raises(ValueError, match=r"features|NaN|inconsistent"):
            leaf.partial_fit(X, y)
        assert snapshot(leaf) == before
    leaf.replay_buffer_ = None
    with pytest.raises(ValueError, match=r"^replay_buffer_ is empty"):
        leaf.partial_fit(*new)


def test_the_memory_is_bounded_and_remembers_rare_contexts(leaf):
    for i in range(2):
        leaf.partial_fit(*lines([0] * 150, first=20 + 150 * i))
    assert len(leaf.replay_buffer_.y) <= update_settings.UPDATES.max_rows
    assert set(leaf.contexts_[leaf.replay_buffer_.group]) == {0, 1}
    assert len(leaf.groups_) == len(leaf.contexts_) == 320
    assert sorted(model.coef_[0].round() for model in leaf.local_models_) == [
        -2.0,
        2.0,
    ], "the other line is not forgotten"


@pytest.mark.parametrize(
    "container",
    [sparse.csr_matrix, lambda X: pd.DataFrame({"x": X[:, 0]}), lambda X: torch.as_tensor(X)],
)
def test_rows_come_in_any_container(container):
    X, y, groups = lines([0, 1] * 10)
    leaf = LeafRegressor(2, **LINEAR).fit(container(X), y, groups)
    X, y, groups = lines([2] * 4, first=20)
    assert leaf.partial_fit(container(X), y, groups).n_contexts_ == 3
    assert leaf.prune().n_contexts_ == 3


def test_networks_open_contexts_and_keep_the_others(monkeypatch):
    monkeypatch.setattr(settings, "TRAINING", replace(settings.TRAINING, fine_tuning_steps=60))
    leaf = LeafRegressor(2, max_epochs=100, n_init=1, learning_rate=0.01, random_state=0).fit(
        *lines([0, 1] * 16, size=8)
    )
    untouched = leaf.predict_each([[1.0]])[0, 1]
    leaf.partial_fit(*lines([2] * 12 + [int(leaf.predict([[1.0]])[0] > 0)] * 4, first=32, size=8))
    assert leaf.n_contexts_ == 3
    assert sorted(leaf.predict_each([[1.0]])[0].round()) == [-2.0, 2.0, 9.0]
    assert untouched in leaf.predict_each([[1.0]])[0], "a context without new groups stays as it is"
    assert (
        pickle.loads(pickle.dumps(leaf)).partial_fit(*lines([2] * 2, first=90, size=8)).n_contexts_
        == 3
    )


def test_callbacks_hear_of_it():
    class Stages(Callback):
        heard = []

        def on_epoch(self, training):
            self.heard.append(training.stage)

    leaf = LeafRegressor(1, max_epochs=2, callbacks=[Stages()], random_state=0).fit(*lines([0] * 4))
    leaf.partial_fit(*lines([0] * 2, first=4))
    assert Stages.heard == ["training", "training", "fine-tuning", "fine-tuning"]


def test_a_clone_remembers_nothing(leaf):
    assert not hasattr(clone(leaf), "replay_buffer_")


@pytest.mark.filterwarnings("ignore:X .* feature names:UserWarning")  # scikit-learn says so itself
@pytest.mark.parametrize(
    "first", [np.asarray, sparse.csr_matrix, lambda X: pd.DataFrame(X, columns=["a"])]
)
@pytest.mark.parametrize(
    "second", [np.asarray, sparse.csr_matrix, lambda X: pd.DataFrame(X, columns=["a"])]
)
def test_later_rows_may_come_in_another_container(first, second):
    (X, y, groups), (new_X, new_y, new_groups) = lines([0, 1] * 4), lines([0, 1], first=20)
    leaf = (
        LeafRegressor(2, **LINEAR)
        .fit(first(X), y, groups)
        .partial_fit(second(new_X), new_y, new_groups)
    )
    assert type(leaf.replay_buffer_.X) is type(first(X))
    assert allocation_agreement(leaf.contexts_, [0, 1] * 5) == 1.0


@pytest.mark.filterwarnings("ignore::leaflearn.RecoveryWarning")
def test_a_row_that_is_far_off_does_not_decide_for_groups_that_come_later():
    """Trimmed scores choose the contexts of later groups too.

    Whether their models have changed or not.
    """
    leaf = LeafRegressor(2, trim=0.2, **LINEAR).fit(*lines([0, 1] * 20))
    X, y, groups = lines([0, 1] * 2, first=50)
    X[::10], y[::10] = (
        3.0,
        SLOPES[[1, 0] * 2] * 3.0,
    )  # one row of each group is of the other context, and far out
    X[np.arange(len(X)) % 10 != 0] *= 0.1
    y[np.arange(len(X)) % 10 != 0] *= 0.1
    leaf.partial_fit(X, y, groups)
    assert allocation_agreement(leaf.contexts_, [0, 1] * 22) == 1.0


def test_groups_that_only_pruned_contexts_knew_keep_a_probability(monkeypatch):
    """A context that opened later knows nothing of groups that have left the memory.

    When it is the only one left, they go there.
    """
    small = replace(update_settings.UPDATES, max_rows=60)
    monkeypatch.setattr(update_settings, "UPDATES", small)
    leaf = (
        LeafRegressor(2, **LINEAR).fit(*lines([0, 1] * 10)).partial_fit(*lines([2] * 50, first=20))
    )
    assert leaf.n_contexts_ == 3
    leaf.prune(min_usage=0.5, redundant=False)
    assert leaf.n_contexts_ == 1
    assert leaf.probabilities_.tolist() == [[1.0]] * 70
    assert np.isfinite(leaf.empirical_error_)
