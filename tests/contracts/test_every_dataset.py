"""Properties of every registered data set: shapes, labels, conflict, fixed samples, no leaks.

Data sets that need files are tested on small files of the same format, and on the published files
if LEAFLEARN_DATA points to them.
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
MAX_ROWS = 600  # to limit the time of nearest neighbors


def make(name):
    """The domain set, with raw images as inputs where there is a choice."""
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
    """Train and test examples of each domain; a thousand draws if the source is infinite."""
    for domain in data:
        train = (
            domain.train
            if isinstance(domain.train, Examples)
            else domain.train.draw(1000, np.random.default_rng(0))
        )
        yield train, domain.test


def some(examples):
    """Flat inputs and targets of at most MAX_ROWS random rows."""
    rows = np.random.default_rng(0).permutation(len(examples))[:MAX_ROWS]
    return examples.x[rows].reshape(len(rows), -1), examples.y[rows]


def test_shapes_agree(data):
    for train, test in parts(data):
        assert train.x.shape[1:] == test.x.shape[1:] == data.input_shape
        assert train.y.shape[1:] == test.y.shape[1:] == data.domains[0].test.y.shape[1:]
        assert np.isfinite(some(train)[0]).all()
        assert np.isfinite(train.y).all()


def test_inputs_have_a_scale_that_suits_networks(data):
    for train, _ in parts(data):
        x, _ = some(train)
        assert 0.01 < x.std() < 20
        assert abs(x.mean()) < 20


def test_labels_are_class_numbers_and_every_class_occurs(data):
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


def test_the_domains_conflict(data):
    """Domains with the same inputs have different targets.

    Where inputs differ, a model of one domain has a larger error on the others than their own.
    """
    if data.shares_inputs:
        targets = [train.y for train, _ in parts(data)]
        assert all(np.mean(one != other) > 0.3 for one, other in itertools.combinations(targets, 2))
        return
    learner = KNeighborsRegressor(3) if data.classes is None else KNeighborsClassifier(1)
    samples = [(some(train), some(test)) for train, test in parts(data)]
    error = np.empty((len(samples), len(samples)))
    for d, (train, _) in enumerate(samples):
        learner.fit(*train)
        for other, (_, (x, y)) in enumerate(samples):
            prediction = learner.predict(x)
            error[d, other] = (
                np.sqrt(np.mean((prediction - y) ** 2))
                if data.classes is None
                else np.mean(prediction != y)
            )
    for d in range(len(samples)):
        others = np.delete(error[:, d], d)  # of models of the other domains on this one
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


def test_the_data_set_is_the_same_each_time_it_is_made(data):
    """Random splits and colours are part of the data."""
    again = make(data.name.split(" ")[0])
    for (train, test), (train_again, test_again) in zip(parts(data), parts(again), strict=True):
        assert all(
            np.array_equal(a, b) for a, b in zip(some(train), some(train_again), strict=True)
        )
        assert all(np.array_equal(a, b) for a, b in zip(some(test), some(test_again), strict=True))


def test_no_test_input_is_in_the_training_part(data):
    """Compared by content, over all domains."""
    if not all(isinstance(domain.train, Examples) for domain in data):
        return  # drawn from an interval, tested on a grid
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


def test_samples_and_batches_hold_no_true_domains(data):
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


def test_the_registry_describes_the_data_set(data):
    entry = DATASETS[data.name.split(" ")[0]]
    assert entry.summary.endswith(".")
    if entry.files:
        assert entry.files.by_hand
        assert entry.files.remote[0].url.startswith("https://")
        assert entry.files.terms
