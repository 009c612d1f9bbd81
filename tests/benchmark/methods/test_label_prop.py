"""LabelProp: labels spread to similar inputs, and given labels are never lost."""

import dataclasses
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.datasets import make_moons
from torch import nn

from leaflearn.benchmark.methods import Problem, make_method
from leaflearn.benchmark.methods.label_prop import certainties, diffuse, hidden_features
from leaflearn.benchmark.methods.optimizers import sgd
from leaflearn.core.batches import Batches
from leaflearn.engines.networks import mlp


def clusters(seed, n_rows=240):
    """Six clusters in a ring: labels 0 to 5 for the cluster, 6 and 7 for the half of the ring.

    Every row has one of the two given.
    """
    generator = np.random.default_rng(seed)
    cluster = generator.integers(6, size=n_rows)
    angle = 2 * np.pi * cluster / 6
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1) * 3 + generator.normal(
        scale=0.2, size=(n_rows, 2)
    )
    y = torch.from_numpy(np.stack([cluster, 6 + cluster // 3], axis=1))
    return (
        torch.from_numpy(x.astype(np.float32)),
        y,
        torch.from_numpy(generator.integers(2, size=n_rows)),
    )


def problem_of(n_rows=240, seed=0):
    return Problem(
        (2,),
        8,
        True,
        2,
        100,
        n_rows,
        lambda n_outputs: mlp(2, n_outputs, (32,)),
        lambda n_rows: None,
        seed,
    )


def learn_epoch(method, x, y, rows):
    for index in rows.split(40):
        numbers = method.update(Batches(x[index], y[index], torch.arange(len(index)), index=index))
    method.end_epoch()
    return numbers


@pytest.mark.parametrize("seed", range(4))
def test_one_label_per_moon_labels_two_moons(seed):
    x, moon = make_moons(300, noise=0.04, random_state=seed)
    # neighbours in the plane are neighbours in direction
    on_sphere = np.column_stack([x - x.mean(axis=0), np.ones(len(x))])
    labels = np.zeros((300, 2), dtype=bool)
    tops = np.array([[0.0, 1.0], [1.0, -0.5]])  # the middle of each moon
    labels[np.square(x[:, None] - tops).sum(axis=-1).argmin(axis=0), [0, 1]] = True
    assert (
        diffuse(on_sphere, labels, n_neighbors=8, alpha=0.99).argmax(axis=1) == moon
    ).mean() > 0.95


def test_the_diffused_labels_solve_the_system():
    generator = np.random.default_rng(0)
    seen, labels = generator.normal(size=(40, 3)), np.eye(40, 4, dtype=bool)
    cosine = seen @ seen.T / np.linalg.norm(seen, axis=1) / np.linalg.norm(seen, axis=1)[:, None]
    np.fill_diagonal(cosine, -np.inf)
    nearest = cosine >= np.sort(cosine, axis=1)[:, [-6]]  # six each
    ties = np.where(nearest, np.maximum(cosine, 0), 0) ** 3
    ties = ties + ties.T
    scale = np.diag(1 / np.sqrt(ties.sum(axis=1)))
    expected = np.linalg.solve(np.eye(40) - 0.9 * scale @ ties @ scale, labels.astype(float))
    assert diffuse(seen, labels, n_neighbors=6, alpha=0.9) == pytest.approx(expected, abs=1e-5)


def test_a_frequent_label_does_not_dominate_a_rare_one():
    angle = np.concatenate(
        [
            np.random.default_rng(0).normal(0.3, 0.1, 200),
            np.random.default_rng(1).normal(1.3, 0.1, 20),
        ]
    )
    labels = np.zeros((220, 2), dtype=bool)
    labels[:150, 0], labels[200, 1] = True, True
    assert (
        diffuse(np.column_stack([np.cos(angle), np.sin(angle)]), labels, alpha=0.99)[200:]
        .argmax(axis=1)
        .tolist()
        == [1] * 20
    )


def test_a_row_without_features_has_no_edges():
    seen = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 0.0]])
    assert diffuse(seen, np.eye(3, 2, dtype=bool), n_neighbors=2)[0].argmax() == 0
    assert np.isfinite(diffuse(np.zeros((3, 2)), np.eye(3, 2, dtype=bool))).all()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_missing_labels_come_from_similar_inputs(seed):
    x, y, given_column = clusters(seed)
    method = make_method("label-prop", n_neighbors=10)
    method.prepare(
        dataclasses.replace(problem_of(seed=seed), optimizer=partial(sgd, learning_rate=0.2))
    )
    rows, y_given = torch.arange(240), y.gather(1, given_column[:, None])[:, 0]
    for _ in range(20):
        learn_epoch(method, x, y_given, rows)
    sets, missing = method.label_sets(rows), y.gather(1, 1 - given_column[:, None])
    assert sets.gather(1, y_given[:, None]).all()
    assert sets.gather(1, missing).float().mean() > 0.9
    best = method.predict_each(x)[:, 0].topk(2).indices.sort().values
    assert (best == y).float().mean() > 0.9


def test_only_given_labels_are_used_until_the_first_round():
    x, y, given_column = clusters(0)
    method = make_method("label-prop", rounds_every=3, n_neighbors=10)
    method.prepare(problem_of())
    rows, y_given = torch.arange(240), y.gather(1, given_column[:, None])[:, 0]
    certainty = [learn_epoch(method, x, y_given, rows)["certainty"] for _ in range(4)]
    assert certainty[:3] == [0, 0, 0]
    assert certainty[3] > 0


def test_rows_outside_the_graph_keep_their_given_labels_only():
    x, y, given_column = clusters(0)
    method = make_method("label-prop", most_rows=100, n_neighbors=10)
    method.prepare(problem_of())
    y_given = y.gather(1, given_column[:, None])[:, 0]
    learn_epoch(method, x, y_given, torch.randperm(240, generator=torch.Generator().manual_seed(0)))
    sizes = method.label_sets(torch.arange(240)).sum(1)
    assert len(method.inputs) == 100
    assert torch.equal(method.inputs, x[method.rows])
    assert (sizes == 2).sum() == 100
    assert (sizes == 1).sum() == 140
    assert method.label_sets(torch.arange(240)).gather(1, y_given[:, None]).all()


def test_all_given_labels_are_kept_even_if_there_are_too_many():
    x, _, _ = clusters(0)
    method = make_method("label-prop", n_neighbors=10)
    method.prepare(problem_of())
    rows = torch.arange(240)
    for label in (0, 5, 7):
        learn_epoch(method, x, torch.full((240,), label), rows)
    assert method.label_sets(rows)[:, [0, 5, 7]].all()
    assert (method.label_sets(rows).sum(1) == 3).all()


def test_a_method_resumes_from_its_state():
    x, y, _ = clusters(0)
    rows = torch.arange(240)
    first, second = (
        make_method("label-prop", n_neighbors=10, rounds_every=2, most_rows=150) for _ in range(2)
    )
    first.prepare(problem_of())
    second.prepare(problem_of(seed=1))
    learn_epoch(first, x, y[:, 0], rows)
    # in the middle of an epoch
    first.update(Batches(x[:40], y[:40, 1], rows[:40], index=rows[:40]))
    second.load_state_dict(first.state_dict())
    for method in (first, second):
        learn_epoch(method, x, y[:, 0], rows[40:])
        method.update(Batches(x, y[:, 1], rows, index=rows))
    assert torch.equal(first.label_sets(rows), second.label_sets(rows))
    assert torch.equal(first.predict_each(x), second.predict_each(x))


def test_features_are_the_inputs_of_the_last_layer_also_in_a_nested_sequence():
    inner = nn.Sequential(nn.Linear(4, 7), nn.ReLU(), nn.Linear(7, 2))
    network = nn.Sequential(nn.Flatten(), inner)
    x = torch.randn(5, 2, 2, generator=torch.Generator().manual_seed(0))
    assert torch.equal(hidden_features(network, x), torch.relu(inner[0](x.flatten(1))).detach())


def test_certainty_is_measured_against_the_number_of_missing_labels():
    spread = torch.tensor([[1.0, 1.0, 0.0, 0.0]])
    alone, two, none = (float(certainties(spread, torch.tensor([n]))) for n in (1, 2, 0))
    assert alone == pytest.approx(0.5)
    assert two == 1.0
    assert none == 0.0


def test_inputs_of_unlimited_sources_are_refused():
    problem = dataclasses.replace(problem_of(), n_rows=None)
    with pytest.raises(
        ValueError,
        match=r"^label-prop stores .*; choose a data set with a fixed training set\.$",
    ):
        make_method("label-prop").prepare(problem)
