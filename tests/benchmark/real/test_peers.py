"""Peers use groups as their textbooks say; neither R nor optional packages are needed here."""

import logging
import shutil
import subprocess
import sys
from importlib.resources import files
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize

from leaflearn.benchmark.real import r_programs
from leaflearn.benchmark.real.contract import MissingProgramError, NotApplicableError, Rows
from leaflearn.benchmark.real.mixed import (
    Design,
    Mixed,
    Scaling,
    choose_slopes,
    gaussian_mode,
    logistic_mode,
)
from leaflearn.benchmark.real.peers import PEERS, Mixture
from leaflearn.benchmark.real.settings import REAL

PLAIN = (
    "pooled linear",
    "pooled boosting",
    "one model a group",
    "target-encoded boosting",
)


def make_rows(n_groups=30, n=10, n_classes=0, seed=0):
    """Rows of groups with very different intercepts."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), n)
    X = rng.normal(size=(len(group), 2))
    y = X[:, 0] + 5 * np.linspace(-1, 1, n_groups)[group] + 0.1 * rng.normal(size=len(group))
    if n_classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    return Rows(X, y, group, n_classes)


@pytest.fixture
def no_r(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)


@pytest.fixture
def mixed():
    rng = np.random.default_rng(3)
    root = rng.normal(size=(3, 3))
    design = Design(Scaling(np.zeros(4), np.ones(4)), slopes=np.array([2, 0]))
    return Mixed(lambda X: X @ np.arange(4.0), design, root @ root.T, 0.7, {})


def test_there_are_the_eight_peers():
    assert set(PEERS) == {*PLAIN, "lme4", "gpboost", "gpboost slopes", "merf", "flexmix"}


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_plain_peers_predict_known_and_new_groups(name, n_classes):
    rows = make_rows(n_classes=n_classes)
    fitted = PEERS[name](rows)
    labelled = Rows(rows.X[:3], rows.y[:3], np.array([90, 90, 91]), n_classes)
    shape = (5, n_classes) if n_classes else (5,)
    known = fitted.known(rows.X[:5], rows.group[:5])
    new = fitted.new(labelled, rows.X[:5], np.array([90, 91, 90, 91, 90]))
    assert known.shape == new.shape == shape
    if n_classes:
        assert known.sum(1) == pytest.approx(1)
        assert new.sum(1) == pytest.approx(1)


def test_only_peers_with_groups_learn_their_intercepts():
    rows, other = make_rows(), make_rows(seed=1)

    def error(name):
        found = PEERS[name](rows).known(other.X, other.group)
        return np.sqrt(np.mean((found - other.y) ** 2))

    assert error("pooled linear") > 2
    assert error("one model a group") < 0.3
    assert error("target-encoded boosting") < 1


def test_a_group_with_few_rows_gets_its_mean():
    labelled = Rows(np.arange(4.0)[:, None], np.array([1.0, 2.0, 3.0, 6.0]), np.zeros(4, int))
    fitted = PEERS["one model a group"](
        Rows(np.random.default_rng(0).normal(size=(20, 1)), np.zeros(20), np.arange(20) // 2)
    )
    assert fitted.new(labelled, np.array([[9.0]]), np.array([0])).tolist() == [3.0]


# Mixed models


def test_the_effects_of_a_new_group_are_those_of_the_textbook(mixed):
    """(Z'Z / noise + D^-1)^-1 Z'(y - mean) / noise, Henderson's equations."""
    rng = np.random.default_rng(0)
    X, y, group = rng.normal(size=(9, 4)), rng.normal(size=9), np.repeat([4, 8], [3, 6])
    found = mixed.with_groups(Rows(X, y, group)).effects
    assert set(found) == {4, 8}
    for g, effects in found.items():
        Z = np.column_stack([np.ones(len(X)), X[:, 2], X[:, 0]])[group == g]
        residual = (y - X @ np.arange(4.0))[group == g]
        precision = Z.T @ Z / mixed.noise + np.linalg.inv(mixed.D)
        assert effects == pytest.approx(np.linalg.solve(precision, Z.T @ residual / mixed.noise))


def test_new_rows_are_predicted_by_mean_and_effects(mixed):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 4))
    labelled = Rows(X[:3], rng.normal(size=3), np.zeros(3, int))
    u = gaussian_mode(mixed.design(X[:3]), labelled.y, mixed.mean(X[:3]), mixed.D, mixed.noise)
    expected = X[3:] @ np.arange(4.0) + np.column_stack([np.ones(3), X[3:, 2], X[3:, 0]]) @ u
    assert mixed.new(labelled, X[3:], np.zeros(3, int)) == pytest.approx(expected)


def test_a_group_without_labels_is_predicted_by_the_mean(mixed):
    X = np.random.default_rng(0).normal(size=(2, 4))
    assert mixed.known(X, np.array([5, 6])) == pytest.approx(mixed.mean(X))


def test_the_effects_of_classes_are_most_probable():
    rng = np.random.default_rng(0)
    Z, eta, y = rng.normal(size=(12, 2)), rng.normal(size=12), rng.integers(2, size=12)
    D = np.array([[2.0, 0.3], [0.3, 1.0]])

    def negative_log(u):
        odds = eta + Z @ u
        return np.sum(np.logaddexp(0, odds) - y * odds) + u @ np.linalg.solve(D, u) / 2

    best = minimize(negative_log, np.zeros(2), method="BFGS").x
    assert logistic_mode(Z, y, eta, D) == pytest.approx(best, abs=1e-4)


def test_slopes_are_few_and_vary_within_groups():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(10), 40)
    X = np.column_stack([rng.normal(size=(400, 20)), group])
    slopes = choose_slopes(Rows(X, X[:, 7] + 0.5 * X[:, 3] + group, group))
    assert len(slopes) == REAL.max_slopes
    assert slopes[:2].tolist() == [7, 3]
    assert 20 not in slopes
    small = np.repeat(np.arange(100), 4)
    assert len(choose_slopes(Rows(X, X[:, 7], small))) == 2
    assert len(choose_slopes(Rows(X, X[:, 7], np.arange(400)))) == 0


# Mixtures


def test_a_mixture_weighs_components_by_the_labelled_rows():
    beta, prior = np.array([[0.0, 1.0], [0.0, -1.0]]), np.array([0.25, 0.75])
    scaling = Scaling(np.zeros(1), np.ones(1))
    mixture = Mixture(beta, np.array([1.0, 1.0]), prior, scaling, {})
    labelled = Rows(np.array([[1.0]]), np.array([0.5]), np.array([3]))
    odds = (0.25 / 0.75) * np.exp(-0.5 * 0.5**2 + 0.5 * 1.5**2)
    share = odds / (1 + odds)
    found = mixture.new(labelled, np.array([[2.0], [2.0]]), np.array([3, 4]))
    assert found == pytest.approx([2 * share - 2 * (1 - share), 2 * 0.25 - 2 * 0.75])


# What is not installed, and what cannot be used


@pytest.mark.usefixtures("no_r")
@pytest.mark.parametrize("name", ["lme4", "flexmix"])
def test_without_r_its_peers_are_missing(name):
    with pytest.raises(MissingProgramError, match=r"^Rscript is not installed$"):
        PEERS[name](make_rows())


@pytest.mark.parametrize("name", ["gpboost", "merf"])
def test_a_package_that_is_not_installed_is_missing(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingProgramError, match=rf"^{name} is not installed$"):
        PEERS[name](make_rows())


@pytest.mark.usefixtures("no_r")
@pytest.mark.parametrize(
    ("name", "n_classes", "reason"),
    [
        ("lme4", 3, "lme4 has no model for several classes"),
        ("flexmix", 3, "flexmix is run for values and two classes"),
        ("gpboost", 3, "GPBoost has no mixed model for several classes"),
        ("merf", 2, "MERF predicts values"),
    ],
)
def test_not_applicable_is_not_missing(name, n_classes, reason, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NotApplicableError, match=f"^{reason}$"):
        PEERS[name](make_rows(n_classes=n_classes))


def test_importing_merf_leaves_the_root_logger_alone(monkeypatch):
    class Noisy(ModuleType):
        def __getattr__(self, name):
            logging.getLogger().setLevel(logging.DEBUG)
            raise ImportError(name)

    monkeypatch.setitem(sys.modules, "merf", Noisy("merf"))
    before = logging.getLogger().level
    with pytest.raises(MissingProgramError):
        PEERS["merf"](make_rows())
    assert logging.getLogger().level == before


# Programs of R, which is replaced


def answer(monkeypatch, returncode=0, result=None, stderr="", error=None):
    """Replace Rscript; return the list of its calls."""
    calls = []

    def pretend(command, cwd, **options):
        calls.append((command, sorted(path.name for path in cwd.iterdir())))
        calls.append((cwd / "table.csv").read_text().splitlines())
        if error:
            raise error
        if result is not None:
            (cwd / "result.json").write_text(result)
        return SimpleNamespace(returncode=returncode, stderr=stderr)

    monkeypatch.setattr(shutil, "which", lambda name: "/bin/Rscript")
    monkeypatch.setattr(r_programs.subprocess, "run", pretend)
    return calls


def test_lme4_is_given_scaled_rows_and_slopes(monkeypatch):
    rows = make_rows(n_groups=2, n=4)
    effects = ",".join(["[1,0,0]", "[-1,0,0]"])
    calls = answer(
        monkeypatch,
        result='{"beta":[2,1,0],"variances":[1,0.5,0.5],"noise":[0.25],"groups":[0,1],'
        f'"effects":[{effects}]}}',
    )
    fitted = PEERS["lme4"](rows)
    command, names = calls[0]
    assert command[:4] == ["/bin/Rscript", "--vanilla", "lme4.R", "values"]
    assert sorted(command[4].split(",")) == ["1", "2"]
    assert names == ["json.R", "lme4.R", "table.csv"]
    assert calls[1][0] == "y,g,x1,x2"
    scaled = (rows.X - rows.X.mean(0)) / rows.X.std(0)
    expected = 2 + scaled[:, 0] + np.where(rows.group == 0, 1, -1)
    assert fitted.known(rows.X, rows.group) == pytest.approx(expected)


def test_flexmix_ignores_columns_that_others_determine(monkeypatch):
    rows = make_rows(n_groups=2, n=4)
    rows = Rows(np.column_stack([rows.X, rows.X[:, 1]]), rows.y, rows.group)
    calls = answer(monkeypatch, result='{"beta":[[1,2,null]],"sigma":[0.5],"prior":[1]}')
    fitted = PEERS["flexmix"](rows)
    assert calls[1][0] == "y,g,x1,x2"
    assert fitted.noise.tolist() == [0.25]
    assert fitted.beta.shape == (1, 4)
    assert sorted(fitted.beta[0]) == [0, 0, 1, 2]


def test_an_r_package_that_is_not_installed_is_missing(monkeypatch):
    answer(monkeypatch, returncode=r_programs.NO_PACKAGE)
    with pytest.raises(MissingProgramError, match=r"^the R package lme4 is not installed$"):
        PEERS["lme4"](make_rows())


def test_a_failure_of_r_says_what_r_said(monkeypatch):
    answer(monkeypatch, returncode=1, stderr="Error: singular\n")
    with pytest.raises(RuntimeError, match=r"^R failed: Error: singular$"):
        PEERS["lme4"](make_rows())


def test_r_is_stopped_after_a_while(monkeypatch):
    answer(monkeypatch, error=subprocess.TimeoutExpired("Rscript", 900))
    with pytest.raises(RuntimeError, match=r"^R took longer than 900 seconds$"):
        PEERS["flexmix"](make_rows())


@pytest.mark.parametrize("package", ["lme4", "flexmix"])
def test_the_programs_of_r_are_in_the_package(package):
    folder = files("leaflearn.benchmark.real")
    program = folder.joinpath(f"{package}.R").read_text()
    assert f'require_package("{package}")' in program
    assert f"quit(status = {r_programs.NO_PACKAGE})" in folder.joinpath("json.R").read_text()
