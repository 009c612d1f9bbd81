"""A source of an unknown context is found, and few sources of known contexts are called new."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsRegressor

from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.engines.novelty import HeldOut, choose_held_out
from leaflearn.engines.settings import HELD_OUT
from leaflearn.persistence.values import from_json, to_json


class Sites:
    """Many sources of two known lines and of an unknown one."""

    def __init__(self, n_groups=60, size=10, seed=0, noise=0.3):
        self.rng, self.size, self.noise = np.random.default_rng(seed), size, noise
        self.X, self.y, self.groups = self.draw([2.0, -2.0], n_groups)

    def draw(self, slopes, n_groups, size=None):
        size = size or self.size
        X, groups = self.rng.normal(size=(n_groups * size, 1)), np.repeat(np.arange(n_groups), size)
        slope = np.resize(slopes, n_groups)[groups]
        return X, slope * X[:, 0] + self.rng.normal(0, self.noise, len(X)), groups


@pytest.fixture(scope="module")
def sites():
    return Sites()


@pytest.fixture(scope="module")
def fitted(sites):
    return LeafRegressor(2, local_model=LinearRegression(), random_state=0).fit(
        sites.X, sites.y, sites.groups
    )


@pytest.mark.parametrize("size", [2, 10, 200])
def test_few_known_sources_are_called_new(fitted, sites, size):
    alarms = fitted.identify(*sites.draw([2.0, -2.0], 2000, size)).is_new.mean()
    assert alarms <= 4 * HELD_OUT.alarm_rate


def test_the_alarm_rate_is_about_as_stated():
    rng = np.random.default_rng(0)
    held_out = HeldOut.of(rng.chisquare(1, (2000, 1)), np.arange(2000) // 10, constant_loss=1.0)
    group = np.repeat(np.arange(20_000), 10)
    novelty = held_out.novelty(
        rng.chisquare(1, (len(group), 1)), group, np.zeros(20_000, dtype=int)
    )
    alarms = np.mean(novelty > HELD_OUT.novelty_limit)
    assert 0.2 * HELD_OUT.alarm_rate < alarms < 2 * HELD_OUT.alarm_rate


def test_sources_that_differ_from_each_other_are_not_all_new():
    """In each source all losses are large, or all are small: sources differ more than rows."""
    rng = np.random.default_rng(0)

    def draw(n_groups):
        group = np.repeat(np.arange(n_groups), 50)
        return (rng.uniform(0.1, 2.0, n_groups)[group] * rng.chisquare(1, len(group)))[
            :, None
        ], group

    held_out = HeldOut.of(*draw(40), constant_loss=1.0)
    novelty = held_out.novelty(*draw(2000), np.zeros(2000, dtype=int))
    assert np.mean(novelty > HELD_OUT.novelty_limit) < 4 * HELD_OUT.alarm_rate
    assert held_out.spread > 0.05


def test_an_unknown_context_is_found_and_more_rows_make_it_clearer(fitted, sites):
    new = [fitted.identify(*sites.draw([0.5], 200, size)) for size in (1, 3, 10, 50)]
    typical = [float(np.median(found.novelty)) for found in new]
    assert typical == sorted(typical)
    assert not new[0].is_new.any()  # a single row may always be an error
    assert new[3].is_new.mean() > 0.95
    known = fitted.identify(*sites.draw([2.0, -2.0], 200))
    assert (
        roc_auc_score(np.repeat([0, 1], 200), np.concatenate([known.novelty, new[2].novelty]))
        > 0.95
    )


def test_neither_the_order_of_rows_nor_of_groups_matters(fitted, sites):
    X, y, groups = sites.draw([2.0, 0.5], 20)
    order = np.random.default_rng(1).permutation(len(y))
    found, shuffled = (
        fitted.identify(X, y, groups),
        fitted.identify(X[order], y[order], groups[order]),
    )
    np.testing.assert_allclose(shuffled.novelty, found.novelty)
    renamed = fitted.identify(X, y, 19 - groups)
    np.testing.assert_allclose(renamed.novelty[::-1], found.novelty)


def test_abstaining_gives_new_sources_no_context(fitted, sites):
    X, y, groups = sites.draw([2.0, -2.0, 9.0], 30, 20)
    found = fitted.identify(X, y, groups, abstain=True)
    assert (found.context[2::3] == -1).all()
    assert np.mean(found.context == -1) < 0.45
    assert (fitted.identify(X, y, groups).context >= 0).all()


def test_overfitted_networks_do_not_call_everything_new():
    sites = Sites(n_groups=80, size=4)
    leaf = LeafRegressor(2, max_epochs=60, n_init=1, init="conflict", random_state=0).fit(
        sites.X, sites.y, sites.groups
    )
    assert leaf.identify(*sites.draw([2.0, -2.0], 500, 10)).is_new.mean() < 0.1
    assert leaf.identify(*sites.draw([9.0], 100, 10)).is_new.mean() > 0.9


def test_mislabelled_rows_do_not_make_a_known_source_new():
    rng = np.random.default_rng(0)

    def draw(n_groups):
        X, groups = rng.normal(size=(n_groups * 10, 2)), np.repeat(np.arange(n_groups), 10)
        return X, (X[:, 0] > 0) != (groups % 2 == 0), groups

    leaf = LeafClassifier(2, local_model=LogisticRegression(), random_state=0)
    leaf.fit(*draw(60))
    X, y, groups = draw(200)
    y[::10] ^= True
    y[1::10] ^= True
    assert leaf.identify(X, y, groups).is_new.mean() < 0.05


def test_unseen_labels_are_new(classifier, conflict):
    X, labels = conflict.X[:12], np.array(["ugly"] * 6 + conflict.labels[6:12].tolist())
    groups = np.repeat(["new", "known"], 6)
    groups[6] = "new"  # a mixture of both
    found = classifier.identify(X, labels, np.where(np.arange(12) < 1, "single", groups))
    by_name = dict(zip(found.groups.tolist(), range(3), strict=True))
    assert found.is_new[by_name["single"]]
    assert not found.is_new[by_name["known"]]
    assert np.isfinite(found.novelty).all()
    np.testing.assert_allclose(found.probability[by_name["single"]], 0.5)
    assert found.novelty[by_name["new"]] > found.novelty[by_name["known"]]


def test_one_unseen_label_does_not_make_a_source_new(classifier, conflict):
    labels = conflict.labels[:10].tolist()
    found = classifier.identify(conflict.X[:10], ["ugly", *labels[1:]])
    assert found.context == classifier.identify(conflict.X[:10], labels).context
    assert not found.is_new[0]


@pytest.mark.parametrize("slope", [0.0, 1.0], ids=["constant targets", "no noise"])
@pytest.mark.parametrize("n_contexts", [1, 2])
def test_degenerate_data_give_finite_numbers(slope, n_contexts):
    X, groups = np.linspace(-1, 1, 60)[:, None], np.arange(60) // 3
    y = slope * X[:, 0] if n_contexts == 1 else slope * np.where(groups % 2, -1.0, 1.0) * X[:, 0]
    leaf = LeafRegressor(n_contexts, local_model=LinearRegression(), random_state=0).fit(
        X, y, groups
    )
    known, new = leaf.identify(X, y, groups), leaf.identify(X, y + 3.0)
    assert np.isfinite(known.novelty).all()
    assert not known.is_new.any()  # losses of rounding errors count as equal
    assert new.is_new.all()


def test_where_nothing_can_be_held_out_nothing_is_new():
    X, y, groups = np.arange(4.0)[:, None], np.array([0.0, 1.0, 9.0, 8.0]), [0, 0, 1, 1]
    leaf = LeafRegressor(2, local_model=LinearRegression(), random_state=0).fit(X, y, groups)
    found = leaf.identify(X, y + 100, groups)
    assert found.novelty.tolist() == [0.0, 0.0]
    assert not found.is_new.any()


def test_whole_groups_are_held_out_and_their_copies_are_left_out_of_training():
    rng = np.random.default_rng(0)
    X, group = rng.integers(300, size=(400, 1)).astype(float), np.arange(400) // 4
    contexts = np.arange(100) % 2
    train, held = choose_held_out(X, group, contexts, rng)
    assert not np.isin(group[train], group[held]).any()
    assert len(held) == 80
    for k in (0, 1):
        own_train, own_held = (
            train[contexts[group[train]] == k],
            held[contexts[group[held]] == k],
        )
        assert not np.isin(X[own_train, 0], X[own_held, 0]).any()


def test_few_groups_hold_out_rows_and_few_different_inputs_keep_their_copies():
    train, held = choose_held_out(
        np.arange(40) % 2 * np.ones((1, 40)).T,
        np.arange(40) // 20,
        np.array([0, 1]),
        np.random.default_rng(0),
    )
    assert (len(train), len(held)) == (32, 8)


def test_a_local_model_that_needs_all_rows_does_not_break_the_fit():
    X, y, groups = (
        np.random.default_rng(0).normal(size=(60, 1)),
        np.arange(60.0),
        np.arange(60) // 5,
    )
    neighbours = KNeighborsRegressor(n_neighbors=55)
    leaf = LeafRegressor(1, local_model=neighbours, random_state=0).fit(X, y, groups)
    assert leaf.identify(X, y + 1e6).novelty.tolist() == [0.0]


@pytest.mark.parametrize("name", ["doubt", "evidence_factor"])
def test_the_evidence_factor_keeps_its_first_name_in_model_folders(name):
    classes = {"HeldOut": HeldOut}
    stored = to_json(HeldOut([], 0.05, 0.0, evidence_factor=3.0), None, classes)
    content = {"losses": [], "spread": 0.05, "least": 0.0, "doubt": 3.0}
    assert stored == {"$object": ["HeldOut", content]}
    content[name] = content.pop("doubt")
    assert from_json({"$object": ["HeldOut", content]}, None, classes).evidence_factor == 3.0
