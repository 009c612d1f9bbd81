"""PseudoLabel: missing labels are filled by confidence, and given labels are never lost."""

import dataclasses
from functools import partial

import numpy as np
import pytest
import torch

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.sources import Examples
from leaflearn.benchmark.datasets.streaming import BilevelSampler
from leaflearn.benchmark.evaluation import label_set_errors
from leaflearn.benchmark.methods import describe, make_method, train
from leaflearn.benchmark.methods.label_sets import fill
from leaflearn.benchmark.methods.optimizers import sgd
from leaflearn.core.batches import Batches
from leaflearn.engines.networks import mlp

N_CLUSTERS = 6  # in a ring: one domain labels clusters, the other halves of the ring
CLASSES = ("a", "b", "c", "d", "e", "f", "near", "far")


def clusters(seed, n_rows=360):
    generator = np.random.default_rng(seed)
    cluster = generator.integers(N_CLUSTERS, size=n_rows)
    angle = 2 * np.pi * cluster / N_CLUSTERS
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1) * 3 + generator.normal(
        scale=0.2, size=(n_rows, 2)
    )
    return x.astype(np.float32), np.stack([cluster, N_CLUSTERS + cluster // 3], axis=1)


def one_label_each(seed):
    """A training set where every input has one label, for ever, and its whole label sets."""
    x, y = clusters(seed)
    given = np.random.default_rng([seed, 1]).integers(2, size=len(x))
    return torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(given)


def problem_of(x, n_epochs=20):
    sampler = BilevelSampler(two_domains(0))
    problem = describe(sampler, lambda n_outputs: mlp(2, n_outputs, (32,)), n_epochs)
    return dataclasses.replace(problem, n_rows=len(x))


def two_domains(seed):
    (x, y), (x_test, y_test) = clusters(seed), clusters(seed + 100)
    domains = tuple(
        Domain(name, Examples(x, y[:, d]), Examples(x_test, y_test[:, d]))
        for d, name in enumerate(("cluster", "half"))
    )
    return DomainSet("clusters", domains, n_groups=100, group_size=1, classes=CLASSES)


def learn_epoch(method, x, y, rows):
    for index in rows.split(40):
        numbers = method.update(Batches(x[index], y[index], torch.arange(len(index)), index=index))
    method.end_epoch()
    return numbers


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_missing_labels_are_filled_from_informative_inputs(seed):
    x, y, given = one_label_each(seed)
    method = make_method("pseudo-label")
    method.prepare(problem_of(x))
    rows, y_given = (
        torch.randperm(len(x), generator=torch.Generator().manual_seed(seed)),
        y.gather(1, given[:, None])[:, 0],
    )
    at_first = method.label_sets().gather(1, y.gather(1, 1 - given[:, None])).float().mean()
    changed = [learn_epoch(method, x, y_given, rows)["changed"] for _ in range(40)]
    missing = method.label_sets().gather(1, y.gather(1, 1 - given[:, None])).float().mean()
    assert at_first < 0.5
    assert missing > 0.9
    assert changed[-1] < 0.1
    assert method.label_sets().gather(1, y_given[:, None]).all()
    assert (method.label_sets().sum(1) == 2).all()


def test_the_predictions_are_the_labels_of_both_domains():
    domains = two_domains(3)
    sampler = BilevelSampler(domains, groups_per_step=40)
    problem = describe(
        sampler,
        lambda n_outputs: mlp(2, n_outputs, (32,)),
        n_epochs=20,
        optimizer=partial(sgd, learning_rate=0.2),
    )
    method = make_method("pseudo-label")
    train(method, sampler, problem, n_epochs=20)
    scores = method.predict_each(torch.from_numpy(np.asarray(domains.domains[0].test.x)))
    assert scores.shape == (360, 1, 8)
    assert (
        label_set_errors(scores[:, 0], [domain.test.y for domain in domains], n_domains=2).max()
        < 0.1
    )


def test_all_given_labels_are_kept_even_if_there_are_too_many():
    x, _, _ = one_label_each(0)
    method = make_method("pseudo-label")
    method.prepare(problem_of(x))
    rows = torch.arange(len(x))
    for label in (0, 5, 7):
        learn_epoch(method, x, torch.full((len(x),), label), rows)
    assert method.label_sets()[:, [0, 5, 7]].all()
    assert (method.label_sets().sum(1) == 3).all()


def test_only_inputs_of_the_epoch_are_labelled_again():
    x, y, _ = one_label_each(0)
    method = make_method("pseudo-label", warm_up=0)
    method.prepare(problem_of(x))
    before = method.label_sets()
    for _ in range(3):
        learn_epoch(method, x, y[:, 0], torch.arange(200))
    assert (method.label_sets()[200:] == before[200:]).all()
    assert (method.label_sets()[:200] != before[:200]).any()


def test_a_method_resumes_from_its_state():
    x, y, _ = one_label_each(0)
    rows = torch.arange(len(x))
    first, second = make_method("pseudo-label", warm_up=0), make_method("pseudo-label", warm_up=0)
    first.prepare(problem_of(x))
    second.prepare(dataclasses.replace(problem_of(x), seed=1))
    learn_epoch(first, x, y[:, 0], rows)
    # in the middle of an epoch
    first.update(Batches(x[:40], y[:40, 1], rows[:40], index=rows[:40]))
    second.load_state_dict(first.state_dict())
    for method in (first, second):
        learn_epoch(method, x, y[:, 0], rows[40:])
    assert torch.equal(first.label_sets(), second.label_sets())
    assert torch.equal(first.predict_each(x), second.predict_each(x))


def test_random_labels_are_kept_during_the_warm_up():
    x, y, _ = one_label_each(0)
    method, rows = make_method("pseudo-label"), torch.arange(len(x))
    method.prepare(dataclasses.replace(problem_of(x), n_steps=36))  # four epochs of nine steps
    learn_epoch(method, x, y[:, 0], rows)
    at_first = method.label_sets()
    assert learn_epoch(method, x, y[:, 0], rows)["changed"] == 1.0
    # half of the run is over, and the labels are chosen for the first time
    assert not torch.equal(method.label_sets(), at_first)
    other = make_method("pseudo-label", warm_up=0.9)
    other.prepare(dataclasses.replace(problem_of(x), n_steps=36))
    for _ in range(3):
        learn_epoch(other, x, y[:, 0], rows)
    assert torch.equal(other.label_sets(), at_first)


def test_fill_takes_no_more_labels_than_there_are():
    assert fill(torch.zeros(1, 2, dtype=torch.bool), torch.zeros(1, 2), n_labels=3).all()


def test_inputs_of_unlimited_sources_are_refused():
    problem = dataclasses.replace(problem_of(torch.zeros(3, 2)), n_rows=None)
    with pytest.raises(
        ValueError,
        match=r"^pseudo-label stores .*; choose a data set with a fixed training set\.$",
    ):
        make_method("pseudo-label").prepare(problem)
