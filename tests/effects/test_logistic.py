"""Effects on log-odds agree with numerical integration and lme4, and depend on nothing else."""

import shutil
import subprocess

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from leaflearn.effects.group_effects import LogisticEffects
from leaflearn.effects.logistic import Answers, fit_by_laplace, fit_logistic, integrate_effects
from leaflearn.moments.features import FeatureMap

INTERCEPT, BOTH = np.array([0]), np.array([0, 1])
NONE = np.zeros(2, dtype=bool)


def draw(seed, m, n, deviations=(1.0, 0.5), coefficients=(0.3, 1.0)):
    """Answers of m groups with effects on the constant and on one column."""
    rng = np.random.default_rng(seed)
    group, x = np.repeat(np.arange(m), n), rng.normal(size=m * n)
    design = np.c_[np.ones(m * n), x]
    effects = rng.normal(size=(m, 2)) * deviations
    eta = design @ coefficients + (design * effects[group]).sum(1)
    return design, (rng.random(m * n) < expit(eta)).astype(float), group


def marginal_likelihood(design, y, group, coefficients, root, weight=None, n_points=61):
    """Log marginal likelihood of each group on a fine grid of effects, (m,)."""
    nodes, mass = np.polynomial.hermite_e.hermegauss(n_points)
    q = root.shape[0]
    grid = np.stack(np.meshgrid(*[nodes] * q, indexing="ij"), -1).reshape(-1, q)
    masses = np.stack(np.meshgrid(*[mass / mass.sum()] * q, indexing="ij"), -1).reshape(-1, q)
    effects = grid @ root.T  #                                                      (G, q)
    eta = (design @ coefficients)[:, None] + design[:, :q] @ effects.T
    loss = np.logaddexp(0, np.where(y[:, None] > 0.5, -eta, eta))
    loss = loss if weight is None else loss * weight[:, None]
    by_group = np.stack([loss[group == g].sum(0) for g in range(group.max() + 1)])
    return logsumexp(np.log(masses.prod(1)) - by_group, axis=1)


@pytest.mark.parametrize("q", [1, 2])
def test_the_marginal_likelihood_is_near_its_numerical_integral(q):
    design, y, group = draw(0, 12, 15)
    root, mean = np.array([[0.9, 0.0], [0.3, 0.6]])[:q, :q], design @ [0.3, 1.0]
    found = integrate_effects(Answers.of(y, group, 12), design[:, :q], mean, root)[2]
    exact = marginal_likelihood(design, y, group, [0.3, 1.0], root)
    np.testing.assert_allclose(found, exact, atol=0.08)
    assert abs((found - exact).mean()) < 0.04


def test_the_variance_is_near_the_most_probable_one():
    design, y, group = draw(1, 120, 10, (1.2, 0.0))
    found = fit_by_laplace(Answers.of(y, group, 120), design, INTERCEPT, NONE).model
    tried = np.linspace(0.4, 2.2, 37)
    total = [
        marginal_likelihood(design, y, group, found.coefficients, np.array([[each]])).sum()
        for each in tried
    ]
    assert found.root[0, 0] == pytest.approx(tried[int(np.argmax(total))], rel=0.25)
    # In log-likelihood, hardly anything is lost.
    own = marginal_likelihood(design, y, group, found.coefficients, found.root).sum()
    assert max(total) - own < 1.0


def test_agrees_with_glmer_of_lme4(tmp_path):
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    design, y, group = draw(2, 80, 12, (1.0, 0.0))
    table = tmp_path / "table.csv"
    np.savetxt(table, np.c_[y, design[:, 1], group], delimiter=",", header="y,x,g", comments="")
    script = (
        "if (!requireNamespace('lme4', quietly = TRUE)) quit(status = 3);"
        f"d <- read.csv('{table}');"
        "f <- lme4::glmer(y ~ x + (1 | g), data = d, family = binomial);"
        "cat(lme4::fixef(f), sqrt(unlist(lme4::VarCorr(f))))"
    )
    run = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=False)
    if run.returncode == 3:
        pytest.skip("lme4 is not installed")
    constant, slope, deviation = map(float, run.stdout.split())
    found = fit_by_laplace(Answers.of(y, group, 80), design, INTERCEPT, NONE).model
    np.testing.assert_allclose(found.coefficients, [constant, slope], atol=0.1)
    assert found.root[0, 0] == pytest.approx(deviation, rel=0.2)


def test_the_order_of_rows_does_not_matter():
    design, y, group = draw(3, 20, 8)
    order = np.random.default_rng(0).permutation(len(y))
    fits = []
    for rows in (np.arange(len(y)), order):
        answers = Answers.of(y[rows], group[rows], 20)
        fits.append(fit_by_laplace(answers, design[rows][answers.order], BOTH, NONE).model)
    np.testing.assert_allclose(fits[0].coefficients, fits[1].coefficients, rtol=1e-4)
    np.testing.assert_allclose(fits[0].root, fits[1].root, rtol=1e-3, atol=1e-6)


def test_exchanging_the_answers_turns_the_signs():
    design, y, group = draw(4, 20, 8)
    yes, no = (
        fit_by_laplace(Answers.of(each, group, 20), design, BOTH, NONE).model for each in (y, 1 - y)
    )
    np.testing.assert_allclose(yes.coefficients, -no.coefficients, rtol=1e-4)
    np.testing.assert_allclose(yes.root, no.root, rtol=1e-3, atol=1e-6)
    mean, root = design @ [0.3, 1.0], np.diag([1.0, 0.5])
    yes, no = (
        integrate_effects(Answers.of(each, group, 20), design, sign * mean, root)
        for each, sign in ((y, 1), (1 - y, -1))
    )
    np.testing.assert_allclose(yes[0], -no[0])
    np.testing.assert_allclose(yes[2], no[2])


def test_a_weight_of_two_is_a_row_given_twice():
    design, y, group = draw(5, 20, 8)
    twice = np.repeat(np.arange(len(y)), 2)
    weighted = Answers.of(y, group, 20, np.full(len(y), 2.0))
    repeated = Answers.of(y[twice], group[twice], 20)
    for fit in (fit_logistic, fit_by_laplace):
        one, other = (
            fit(answers, rows, BOTH, NONE).model
            for answers, rows in ((weighted, design), (repeated, design[twice]))
        )
        np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=1e-6)
        np.testing.assert_allclose(one.root, other.root, rtol=1e-5, atol=1e-8)


def test_a_group_without_rows_has_no_effects_and_no_evidence():
    design, y, group = draw(6, 5, 8)
    answers = Answers.of(y, 2 * group, 10)  # every second group is empty
    effects, products, likelihood = integrate_effects(answers, design, np.zeros(40), np.eye(2))
    assert not effects[1::2].any()
    assert not products[1::2].any()
    assert not likelihood[1::2].any()
    assert (likelihood[::2] < 0).all()


def effects_of(roots):
    features = FeatureMap.of(np.array([[-1.0], [1.0]]))
    K, D = roots.shape[:2]
    priors = np.full(K, 1 / K)
    return LogisticEffects.without_groups(features, BOTH, roots, np.ones((K, D)), priors)


def test_rows_in_two_parts_say_about_the_same_as_at_once():
    design, y, group = draw(7, 30, 20)
    roots = np.array([[[[1.0, 0.0], [0.2, 0.5]]], [[[0.5, 0.0], [0.0, 1.0]]]])
    model, X = effects_of(roots), design[:, 1:]
    means = np.stack([design @ [0.3, 1.0], design @ [0.3, -1.0]], 1)[:, :, None]
    rows = X, means, y[:, None], group
    at_once, scores = model.of_groups(*rows, 30)
    first, later = (np.arange(len(y)) % 20 < 10), (np.arange(len(y)) % 20 >= 10)
    in_parts, before = model.of_groups(*(part[first] for part in rows), 30)
    in_parts, added = in_parts.with_further_rows(*(part[later] for part in rows))
    np.testing.assert_allclose(in_parts.effects, at_once.effects, atol=0.25)
    assert np.abs(in_parts.effects - at_once.effects).mean() < 0.05
    margins = [np.diff(each, axis=1) for each in (scores, before + added)]
    assert np.abs(margins[0] - margins[1]).mean() < 0.2


def test_further_rows_of_an_unknown_group_are_its_first_ones():
    design, y, group = draw(8, 6, 5)
    model = effects_of(np.eye(2)[None, None] * 0.8)
    rows = design[:, 1:], (design @ [0.3, 1.0])[:, None, None], y[:, None], group
    expected, scores = model.of_groups(*rows, 6)
    nothing = np.zeros((6, 1, 1, 2)), np.zeros((6, 1, 1, 2, 2))
    unknown = LogisticEffects(
        model.features, BOTH, model.roots, model.noise, model.priors, *nothing
    )
    found, added = unknown.with_further_rows(*rows)
    np.testing.assert_allclose(found.effects, expected.effects)
    np.testing.assert_allclose(found.products, expected.products)
    np.testing.assert_allclose(added, scores)
    few = group < 3
    found, added = found.with_further_rows(*(part[few] for part in rows))
    np.testing.assert_array_equal(
        found.effects[3:], unknown.with_further_rows(*rows)[0].effects[3:]
    )
    assert not added[3:].any()
