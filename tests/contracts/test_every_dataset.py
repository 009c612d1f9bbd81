"""What holds for every data set of the registry: shapes, labels, conflict, repeatable samples, a clean test part, no truth in the batches.

Sets that need files are tested on small files of the same layout, and on the publishers' own where LEAFLEARN_DATA points to them.
"""

import dataclasses
import inspect
import itertools

import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

import stand_ins
from leaflearn.benchmark.datasets import DATASETS, store
from leaflearn.benchmark.datasets.sampling import GroupedSample, sample_groups
from leaflearn.benchmark.datasets.sources import Examples, Images
from leaflearn.benchmark.datasets.streaming import BilevelSampler
from leaflearn.core.batches import Batches

KINDS = ["stand-in", "published"]
MAX_ROWS = 600  # for what is slow: neighbours among images


def make(name):
    """The domain set, by images where it could also be features."""
    entry = DATASETS[name]
    options = (
        {"inputs": "images"} if "inputs" in inspect.signature(entry.factory).parameters else {}
    )
    return entry(**options)


@pytest.fixture(scope="module")
def stand_in_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    stand_ins.write_all(folder)
    return folder


@pytest.fixture(
    scope="module",
    params=[
        (name, kind)
        for kind in KINDS
        for name in DATASETS
        if kind == KINDS[0] or DATASETS[name].files
    ],
    ids=" ".join,
)
def data(request, stand_in_folder):
    name, kind = request.param
    files = DATASETS[name].files
    with pytest.MonkeyPatch.context() as patch:
        if kind == "stand-in":
            patch.setenv(store.VARIABLE, str(stand_in_folder))
        elif store.missing(files):
            pytest.skip(
                f"{files.title} is not in the data folder; set {store.VARIABLE} to where it is."
            )
        yield make(name)


def parts(data):
    """Train and test examples of each domain; of a source without end, a thousand draws."""
    for domain in data:
        train = (
            domain.train
            if isinstance(domain.train, Examples)
            else domain.train.draw(1000, np.random.default_rng(0))
        )
        yield train, domain.test


def some(examples):
    """Inputs, flat, and targets of at most MAX_ROWS rows, spread over the table."""
    rows = np.random.default_rng(0).permutation(len(examples))[:MAX_ROWS]
    return examples.x[rows].reshape(len(rows), -1), examples.y[rows]


def test_shapes_agree(data):
    for train, test in parts(data):
        assert train.x.shape[1:] == test.x.shape[1:] == data.input_shape
        assert train.y.shape[1:] == test.y.shape[1:] == data.domains[0].test.y.shape[1:]
        assert np.isfinite(some(train)[0]).all()
        assert np.isfinite(train.y).all()


def test_inputs_have_a_scale_that_networks_can_learn_from(data):
    for train, _ in parts(data):
        x, _ = some(train)
        assert 0.01 < x.std() < 20
        assert abs(x.mean()) < 20


def test_labels_are_numbers_of_classes_and_every_class_is_in_use(data):
    if data.classes is None:
        assert all(np.issubdtype(train.y.dtype, np.floating) for train, _ in parts(data))
        return
    used = np.unique(
        np.concatenate([np.concatenate([train.y, test.y]) for train, test in parts(data)])
    )
    assert np.array_equal(used, np.arange(len(data.classes)))
    assert len(set(data.classes)) == len(data.classes)
    for train, test in parts(data):
        assert set(np.unique(test.y)) <= set(np.unique(train.y))


def test_the_domains_really_conflict(data):
    """The same input has another answer; where no two domains share an input, whoever has learnt one is wrong about the others."""
    if data.shares_inputs:
        answers = [train.y for train, _ in parts(data)]
        assert all(np.mean(one != other) > 0.3 for one, other in itertools.combinations(answers, 2))
        return
    learner = KNeighborsRegressor(3) if data.classes is None else KNeighborsClassifier(1)
    samples = [(some(train), some(test)) for train, test in parts(data)]
    error = np.empty((len(samples), len(samples)))
    for d, (train, _) in enumerate(samples):
        learner.fit(*train)
        for other, (_, (x, y)) in enumerate(samples):
            answers = learner.predict(x)
            error[d, other] = (
                np.sqrt(np.mean((answers - y) ** 2))
                if data.classes is None
                else np.mean(answers != y)
            )
    for d in range(len(samples)):
        others = np.delete(error[:, d], d)  # what learners of other domains make of this one
        assert others.min() > 1.25 * error[d, d] + 0.02


def test_the_same_seed_gives_the_same_sample(data):
    draws = [
        sample_groups(data, n_groups=20, group_size=3, random_state=seed) for seed in (5, 5, 6)
    ]
    (first, truth), (again, truth_again), (other, _) = draws
    assert np.array_equal(first.x, again.x)
    assert np.array_equal(first.y, again.y)
    assert np.array_equal(truth.domain, truth_again.domain)
    assert not np.array_equal(first.x, other.x)


def test_the_data_set_itself_never_changes(data):
    """A split or a colour that is drawn is part of the data: made again, it is the same."""
    again = make(data.name.split(" ")[0])
    for (train, test), (train_again, test_again) in zip(parts(data), parts(again), strict=True):
        assert all(
            np.array_equal(a, b) for a, b in zip(some(train), some(train_again), strict=True)
        )
        assert all(np.array_equal(a, b) for a, b in zip(some(test), some(test_again), strict=True))


def test_no_test_input_was_trained_on(data):
    """By content, over all domains."""
    if not all(isinstance(domain.train, Examples) for domain in data):
        return  # drawn from an interval: the grid that it is tested on has no share in that
    trained = {
        fingerprint
        for train in distinct(domain.train.x for domain in data)
        for fingerprint in fingerprints(train)
    }
    tested = {
        fingerprint
        for test in distinct(domain.test.x for domain in data)
        for fingerprint in fingerprints(test)
    }
    assert trained
    assert not trained & tested


def distinct(arrays):
    return {id(array): array for array in arrays}.values()


def fingerprints(x):
    stored = x.stored if isinstance(x, Images) else x
    return (hash(row.tobytes()) for row in stored)


def test_the_truth_is_absent_from_what_a_learner_gets(data):
    sample, _ = sample_groups(data, n_groups=5, random_state=0)
    assert type(sample) is GroupedSample
    assert sample._fields == ("x", "y", "groups")
    batches, truth = next(BilevelSampler(data, groups_per_step=4).epoch(0))
    assert type(batches) is Batches
    assert {field.name for field in dataclasses.fields(batches)} == {
        "x",
        "y",
        "group",
        "group_id",
        "index",
        "weight",
        "n_groups",
    }
    assert batches.x.dtype == torch.float32
    assert len(truth.domain) == batches.n_groups == 4


def test_it_says_what_it_is(data):
    entry = DATASETS[data.name.split(" ")[0]]
    assert entry.summary.endswith(".")
    if entry.files:
        assert entry.files.by_hand
        assert entry.files.remote[0].url.startswith("https://")
        assert entry.files.terms
