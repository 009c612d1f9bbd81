"""Simulated tables whose groups differ by degree only, or in kind with effects inside.

A row has three columns: two numbers, of which one also varies between groups, and an indicator. A
group has an intercept and a slope of the first column of its own (its effects), around those of its
context. In yes/no answers, mean and effects are log odds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logsumexp

from leaflearn.benchmark.groups.settings import GROUPS
from leaflearn.benchmark.real.contract import Floats, Ints, Rows

VALUES, YES_NO = "values", "yes-no"
LINEAR, CURVED = "linear", "curved"
INTERCEPTS, SLOPES, HEAVY, UNEQUAL = "intercepts", "slopes", "heavy-tailed", "unequal-noise"
OFFSET, SLOPE = "offset", "slope"
COST_GROUPS, COST_SIZE, COST_COLUMNS = 200, 30, 8  # of the default fit whose cost is measured


@dataclass(frozen=True)
class Scenario:
    """How the groups of a data set differ.

    Parameters
    ----------
    study
        "degree", "kind" or "cost".
    traits
        Which effects the groups have: names such as "slopes" and "unequal-noise".
    mean, answers
        "linear" or "curved"; "values" or "yes-no".
    differ, separation, n_contexts
        In what contexts differ ("offset" or "slope"), by how many standard deviations of the
        effects, and their number.
    n_rows
        Of a data set whose cost is measured.

    Examples
    --------
    >>> Scenario("kind", (INTERCEPTS,), differ="offset", separation=4, n_contexts=2).name
    'kind/offset/4/values'
    """

    study: str
    traits: tuple[str, ...] = ()
    mean: str = LINEAR
    answers: str = VALUES
    differ: str = ""
    separation: int = 0
    n_contexts: int = 1
    n_rows: int = 0

    @property
    def name(self) -> str:
        """The name on the command line."""
        if self.study == "cost":
            return f"cost/{self.n_rows}-rows"
        if self.study == "kind":
            number = "" if self.n_contexts == 2 else f"-of-{self.n_contexts}"
            return f"kind/{self.differ}{number}/{self.separation}/{self.answers}"
        return f"degree/{'+'.join(self.traits)}/{self.mean}/{self.answers}"


@dataclass(frozen=True, eq=False)
class SimulatedData:
    """Rows to learn from, rows to predict, and the truth.

    Parameters
    ----------
    train, known
        Rows to learn from, and other rows of the same groups.
    labelled, new
        Labelled rows of new groups, and other rows of these.
    truth
        The context of each group, shape (m,).
    best
        The most probable context of each group for someone who knows the model, shape (m,).
    """

    train: Rows
    known: Rows
    labelled: Rows
    new: Rows
    truth: Ints
    best: Ints


def _list_scenarios() -> list[Scenario]:
    some = [(INTERCEPTS,), (SLOPES,), (INTERCEPTS, SLOPES), (INTERCEPTS, SLOPES, HEAVY)]
    noisy = [(INTERCEPTS, UNEQUAL), (INTERCEPTS, SLOPES, HEAVY, UNEQUAL)]  # of values only
    degree = [
        Scenario("degree", traits, mean, answers)
        for answers, families in ((VALUES, some + noisy), (YES_NO, some))
        for traits, mean in product(families, (LINEAR, CURVED))
    ]
    kind = [
        Scenario("kind", traits, CURVED, answers, differ, separation, n_contexts)
        for answers in (VALUES, YES_NO)
        for differ, traits, n_contexts in (
            (OFFSET, (INTERCEPTS,), 2),
            (SLOPE, (INTERCEPTS, SLOPES), 2),
            (OFFSET, (INTERCEPTS,), 3),
        )
        for separation in GROUPS.separations
    ]
    n_rows = (COST_GROUPS * COST_SIZE, *GROUPS.cost_rows)
    return degree + kind + [Scenario("cost", (INTERCEPTS,), n_rows=n) for n in n_rows]


SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in _list_scenarios()}


def simulate(scenario: Scenario, seed: int) -> SimulatedData:
    """Draw a data set.

    Examples
    --------
    >>> data = simulate(SCENARIOS["kind/offset/6/values"], seed=0)
    >>> len(data.truth), bool((data.best == data.truth).mean() > 0.95)
    (40, True)
    >>> data = simulate(SCENARIOS["degree/slopes/curved/yes-no"], seed=1)
    >>> len(data.truth), data.train.n_classes, set(data.truth.tolist())
    (50, 2, {0})
    """
    rng = np.random.default_rng([seed, list(SCENARIOS).index(scenario.name)])
    numbers = GROUPS.kind_groups if scenario.study == "kind" else GROUPS.degree_groups
    m, n_new = numbers[seed % len(numbers)], GROUPS.n_new_groups
    context = rng.choice(scenario.n_contexts, size=m + n_new, p=_shares(scenario))
    context[: scenario.n_contexts] = np.arange(scenario.n_contexts)  # none is empty
    groups = _Groups.draw(scenario, context, rng)
    low, high = np.log(GROUPS.sizes)
    sizes = np.exp(rng.uniform(low, high, size=m)).round().astype(int)
    known_groups, new_groups = np.arange(m), np.arange(m, m + n_new)
    train = groups.rows(np.repeat(known_groups, sizes), rng)
    known = groups.rows(np.repeat(known_groups, GROUPS.n_test_rows), rng)
    labelled = groups.rows(np.repeat(new_groups, GROUPS.n_labels), rng)
    new = groups.rows(np.repeat(new_groups, GROUPS.n_test_rows), rng)
    best = groups.most_probable(train, m, rng) if scenario.n_contexts > 1 else np.zeros(m, np.intp)
    return SimulatedData(train, known, labelled, new, context[:m], best)


def simulate_for_cost(scenario: Scenario, seed: int) -> Rows:
    """Draw the rows of a fit whose cost is measured: random intercepts, eight columns.

    Examples
    --------
    >>> rows = simulate_for_cost(SCENARIOS["cost/6000-rows"], seed=0)
    >>> rows.X.shape, len(np.unique(rows.group))
    ((6000, 8), 200)
    """
    rng = np.random.default_rng(seed)
    is_default = scenario.n_rows == COST_GROUPS * COST_SIZE
    m = COST_GROUPS if is_default else 1000
    group = np.repeat(np.arange(m), scenario.n_rows // m)
    X = rng.normal(size=(scenario.n_rows, COST_COLUMNS))
    mean = X @ np.linspace(1, -1, COST_COLUMNS) + np.sin(2 * X[:, 0])
    y = mean + rng.normal(size=m)[group] + rng.normal(0, GROUPS.noise, len(X))
    return Rows(X, y, group)


def _shares(scenario: Scenario) -> tuple[float, ...]:
    return GROUPS.shares[scenario.n_contexts - 1]


@dataclass(frozen=True, eq=False)
class _Groups:
    """Known and new groups: what their rows are drawn from."""

    scenario: Scenario
    context: Ints  #                                                                (m,)
    effects: Floats  # intercept and slope                                          (m, 2)
    noise: Floats  # standard deviation                                             (m,)
    center: Floats  # of the second column                                          (m,)

    @classmethod
    def draw(cls, scenario: Scenario, context: Ints, rng: np.random.Generator) -> _Groups:
        m, df = len(context), GROUPS.degrees_of_freedom
        if HEAVY in scenario.traits:
            drawn = rng.standard_t(df, size=(m, 2)) / np.sqrt(df / (df - 2))
        else:
            drawn = rng.normal(size=(m, 2))
        spread = GROUPS.log_noise_spread if UNEQUAL in scenario.traits else 0.0
        noise = GROUPS.noise * np.exp(spread * rng.normal(size=m))
        return cls(scenario, context, drawn * _deviations(scenario), noise, rng.normal(size=m) / 2)

    def rows(self, group: Ints, rng: np.random.Generator) -> Rows:
        """Draw a row of each of these groups."""
        n = len(group)
        X = np.column_stack([rng.normal(size=n), rng.normal(size=n), rng.random(n) < 0.5])
        X[:, 1] += self.center[group]
        eta = self._mean(X) + self._deviation(X, self._centers()[self.context[group]])
        eta += self._deviation(X, self.effects[group])
        if self.scenario.answers == VALUES:
            return Rows(X, eta + self.noise[group] * rng.normal(size=n), group)
        y = (rng.random(n) < expit(GROUPS.logit_scale * eta)).astype(np.intp)
        return Rows(X, y, group, n_classes=2)

    def most_probable(self, rows: Rows, m: int, rng: np.random.Generator) -> Ints:
        """The context of the first m groups by their likelihood, effects integrated out."""
        log_prior = np.log(_shares(self.scenario))
        draws = rng.normal(size=(GROUPS.n_draws, 2)) * _deviations(self.scenario)
        best = np.empty(m, dtype=np.intp)
        for g in range(m):
            mine = rows.group == g
            X, y = rows.X[mine], rows.y[mine]
            means = [self._mean(X) + self._deviation(X, center) for center in self._centers()]
            log = (
                [_log_normal(y - mean, X, _deviations(self.scenario)) for mean in means]
                if self.scenario.answers == VALUES
                else [_log_yes_no(y, mean, X, draws) for mean in means]
            )
            best[g] = np.argmax(log_prior + log)
        return best

    def _mean(self, X: Floats) -> Floats:
        if self.scenario.mean == LINEAR:
            return X @ np.array([1.0, 0.5, -0.5])
        return np.asarray(np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 - 0.5 * X[:, 2])

    def _centers(self) -> Floats:
        """Intercept and slope of each context, around zero, (K, 2)."""
        K, column = self.scenario.n_contexts, int(self.scenario.differ == SLOPE)
        centers = np.zeros((K, 2))
        centers[:, column] = np.arange(K) - (K - 1) / 2
        return centers * self.scenario.separation * GROUPS.kind_deviation

    @staticmethod
    def _deviation(X: Floats, effects: Floats) -> Floats:
        return np.asarray(effects[..., 0] + effects[..., 1] * X[:, 0])


def _deviations(scenario: Scenario) -> Floats:
    """Standard deviations of intercepts and slopes."""
    has = np.array([INTERCEPTS in scenario.traits, SLOPES in scenario.traits], dtype=float)
    return has * (GROUPS.kind_deviation if scenario.study == "kind" else GROUPS.degree_deviation)


def _log_normal(residual: Floats, X: Floats, deviations: Floats) -> float:
    Z = np.column_stack([np.ones(len(X)), X[:, 0]]) * deviations
    V = Z @ Z.T + GROUPS.noise**2 * np.eye(len(X))
    return float(-0.5 * (np.linalg.slogdet(V)[1] + residual @ np.linalg.solve(V, residual)))


def _log_yes_no(y: NDArray[np.intp], mean: Floats, X: Floats, draws: Floats) -> float:
    eta = mean[:, None] + draws[:, 0] + X[:, :1] * draws[:, 1]  #                   (n, n_draws)
    sign = np.where(y == 1, 1.0, -1.0)[:, None]
    return float(logsumexp(log_expit(GROUPS.logit_scale * sign * eta).sum(0)))
