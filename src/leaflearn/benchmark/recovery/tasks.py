"""The tasks of the recovery suite: data sets with known contexts, each difficult in its own way.

Each task draws a new data set for each seed, so that a method cannot be tuned to one of them. Each
task states what counts as recovered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from leaflearn.benchmark.datasets.colored_digits import colored_digits
from leaflearn.benchmark.datasets.domains import Domain, DomainSet, Truth
from leaflearn.benchmark.datasets.functions import (
    HIGH,
    LOW,
    NOISE,
    absolute,
    functions,
    logarithm,
    sine,
)
from leaflearn.benchmark.datasets.sampling import GroupedSample, sample_groups
from leaflearn.benchmark.datasets.sources import Array, Examples, Function


@dataclass(frozen=True)
class Task:
    """A data set with known contexts, what the learner is given, and what counts as recovered.

    Parameters
    ----------
    name
        Its name.
    about
        A short description.
    make
        Makes the domain set of a seed; most tasks have the same one for all seeds.
    n_contexts
        The number of contexts that the learner is given.
    threshold
        The largest error that any domain may have: RMSE, or share of wrong labels.
    n_groups, group_size, mixing, label_noise
        The size of the sample and its noise; see `sample_groups`.
    groups_right
        If given, a run succeeds with this share of groups in the right context, and `threshold`
        is not used.
    bar
        The required success rate of the default.

    Examples
    --------
    >>> task = TASKS["functions"]
    >>> sample, truth = task.sample(seed=0)
    >>> sample.x.shape, task.n_contexts
    ((500, 1), 3)
    """

    name: str
    about: str
    make: Callable[[int], DomainSet]
    n_contexts: int
    threshold: float
    n_groups: int | None = None
    group_size: int | tuple[int, int] | None = None
    mixing: float = 0.0
    label_noise: float = 0.0
    groups_right: float | None = None
    bar: float | None = None

    def sample(self, seed: int) -> tuple[GroupedSample, Truth]:
        """The data of a seed, and the truth."""
        return sample_groups(
            self.make(seed),
            self.n_groups,
            self.group_size,
            random_state=seed,
            mixing=self.mixing,
            label_noise=self.label_noise,
        )


def rare(seed: int) -> DomainSet:
    """The three functions, one of them eight times as frequent as each of the others.

    The seed determines which one.

    Examples
    --------
    >>> rare(1).shares
    (0.1, 0.8, 0.1)
    """
    return replace(
        functions(), name="rare", shares=tuple(0.8 if d == seed % 3 else 0.1 for d in range(3))
    )


def unequal_noise(seed: int) -> DomainSet:
    """The three functions with noise of 0.01, 0.1 and 0.3.

    Examples
    --------
    >>> [domain.train.noise for domain in unequal_noise(0)]
    [0.01, 0.1, 0.3]
    """
    noises = np.roll([0.01, 0.1, 0.3], seed)
    return _functions(
        "unequal-noise",
        {
            target.__name__: (target, float(noise))
            for target, noise in zip((absolute, sine, logarithm), noises, strict=True)
        },
    )


def ten_waves(seed: int) -> DomainSet:
    """Ten random smooth functions on one interval.

    Examples
    --------
    >>> len(ten_waves(0))
    10
    """
    generator = np.random.default_rng([seed, 10])
    curves = {}
    for number in range(10):
        height, speed, phase, level = (
            generator.uniform(0.5, 1.5),
            generator.uniform(0.5, 2.5),
            generator.uniform(0, 2 * np.pi),
            generator.uniform(-2, 2),
        )
        curves[f"wave {number}"] = (_sine_wave(height, speed, phase, level), NOISE)
    return _functions("ten-waves", curves)


def _sine_wave(height: float, speed: float, phase: float, level: float) -> Callable[[Array], Array]:
    return lambda x: height * np.sin(speed * x + phase) + level


def small_region(seed: int) -> DomainSet:
    """Two functions that agree except for a tenth of the interval, where one has a bump.

    Examples
    --------
    >>> flat, bump = small_region(0)
    >>> int(np.sum(flat.test.y != bump.test.y)), len(flat.test)
    (40, 401)
    """
    left = np.random.default_rng([seed, 1]).uniform(LOW, HIGH - 0.4)

    def bump(x: Array) -> Array:
        return sine(x) + 2.0 * np.where(
            (x > left) & (x < left + 0.4), np.sin(np.pi * (x - left) / 0.4), 0.0
        )

    return _functions("small-region", {"sine": (sine, NOISE), "bump": (bump, NOISE)})


def no_conflict(_: int) -> DomainSet:
    """One function, and no conflict.

    Examples
    --------
    >>> len(no_conflict(0))
    1
    """
    return _functions("no-conflict", {"sine": (sine, 0.1)})


def _functions(name: str, targets: dict[str, tuple[Callable[[Array], Array], float]]) -> DomainSet:
    sources = {
        label: Function(target, LOW, HIGH, noise) for label, (target, noise) in targets.items()
    }
    return DomainSet(
        name,
        tuple(Domain(label, source, source.grid(401)) for label, source in sources.items()),
        n_groups=250,
        group_size=2,
    )


@dataclass(frozen=True)
class Plane:
    """A source of linear targets: y = x'w plus noise, with x from the standard normal distribution.

    `answer` is applied to y, for example to take its sign.

    Examples
    --------
    >>> Plane(np.ones(3), noise=0.1).draw(5, np.random.default_rng(0)).x.shape
    (5, 3)
    """

    weights: Array  #                                                           (n_inputs,)
    noise: float = 0.0
    answer: Callable[[Array], Array] = lambda y: y

    def draw(self, n: int, generator: np.random.Generator) -> Examples:
        """Draw `n` independent examples."""
        x = generator.normal(size=(n, len(self.weights)))
        return Examples(x, self.answer(x @ self.weights + generator.normal(0.0, self.noise, n)))


def five_planes(seed: int) -> DomainSet:
    """Five random linear functions of ten inputs.

    Examples
    --------
    >>> five_planes(0).input_shape
    (10,)
    """
    generator = np.random.default_rng([seed, 5])
    planes = [Plane(generator.normal(size=10), noise=0.1) for _ in range(5)]
    x = np.random.default_rng(0).normal(size=(1000, 10))
    domains = tuple(
        Domain(f"plane {d}", plane, Examples(x, x @ plane.weights))
        for d, plane in enumerate(planes)
    )
    return DomainSet("five-planes", domains, n_groups=500, group_size=5)


def opposites(seed: int) -> DomainSet:
    """Points on two sides of a curve in the plane, with opposite labels in the two domains.

    Examples
    --------
    >>> yes, no = opposites(0)
    >>> bool(np.all(yes.test.y != no.test.y))
    True
    """
    generator = np.random.default_rng([seed, 2])
    turn = generator.uniform(0, 2 * np.pi)
    x = generator.normal(size=(3000, 2))
    side = (
        np.sin(1.5 * (x @ [np.cos(turn), np.sin(turn)])) > x @ [-np.sin(turn), np.cos(turn)]
    ).astype(np.int64)
    train, test = x[:2000], x[2000:]
    domains = tuple(
        Domain(name, Examples(train, y[:2000]), Examples(test, y[2000:]))
        for name, y in (("yes", side), ("no", 1 - side))
    )
    return DomainSet("opposites", domains, n_groups=500, group_size=4, classes=("no", "yes"))


def _always(factory: Callable[[], DomainSet]) -> Callable[[int], DomainSet]:
    return lambda _: factory()


FUNCTIONS, DIGITS = _always(functions), _always(colored_digits)
TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(
            "functions",
            "three functions, 250 pairs",
            FUNCTIONS,
            n_contexts=3,
            threshold=0.15,
            bar=0.98,
        ),
        Task(
            "functions-4",
            "asked for four contexts",
            FUNCTIONS,
            n_contexts=4,
            threshold=0.15,
            bar=0.97,
        ),
        Task(
            "functions-6",
            "asked for six contexts",
            FUNCTIONS,
            n_contexts=6,
            threshold=0.15,
            bar=0.95,
        ),
        Task(
            "rare", "one function 8 times as frequent", rare, n_contexts=3, threshold=0.15, bar=0.95
        ),
        Task(
            "functions-m50",
            "three functions, 50 pairs",
            FUNCTIONS,
            n_contexts=3,
            threshold=0.15,
            n_groups=50,
            bar=0.60,
        ),
        Task(
            "functions-n4",
            "three functions, groups of 4",
            FUNCTIONS,
            n_contexts=3,
            threshold=0.15,
            n_groups=125,
            group_size=4,
        ),
        Task(
            "functions-ragged",
            "groups of 1 to 20",
            FUNCTIONS,
            n_contexts=3,
            threshold=0.15,
            n_groups=100,
            group_size=(1, 20),
        ),
        Task(
            "functions-mixed",
            "10 % of others",
            FUNCTIONS,
            n_contexts=3,
            threshold=0.15,
            n_groups=250,
            group_size=4,
            mixing=0.1,
            bar=0.95,
        ),
        Task(
            "digits-n1",
            "coloured digits, single rows",
            DIGITS,
            n_contexts=2,
            threshold=0.10,
            n_groups=4000,
            group_size=1,
            bar=0.97,
        ),
        Task(
            "digits-n2",
            "coloured digits, pairs",
            DIGITS,
            n_contexts=2,
            threshold=0.10,
            n_groups=2000,
            group_size=2,
            bar=0.99,
        ),
        Task("digits-n4", "coloured digits, groups of 4", DIGITS, n_contexts=2, threshold=0.10),
        Task(
            "digits-noisy",
            "coloured digits, 5 % wrong labels",
            DIGITS,
            n_contexts=2,
            threshold=0.10,
            label_noise=0.05,
        ),
        Task(
            "five-planes",
            "five linear functions of 10 inputs",
            five_planes,
            n_contexts=5,
            threshold=0.15,
            groups_right=0.99,
            bar=0.95,
        ),
        Task(
            "ten-waves",
            "ten functions, groups of 4",
            ten_waves,
            n_contexts=10,
            threshold=0.15,
            n_groups=1000,
            group_size=4,
            bar=0.90,
        ),
        Task(
            "opposites",
            "opposite labels",
            opposites,
            n_contexts=2,
            threshold=0.10,
        ),
        Task(
            "small-region",
            "two functions, one has a bump",
            small_region,
            n_contexts=2,
            threshold=0.15,
            n_groups=125,
            group_size=4,
        ),
        Task(
            "unequal-noise",
            "three functions, one of them noisy",
            unequal_noise,
            n_contexts=3,
            threshold=0.15,
        ),
        Task("no-conflict", "one function", no_conflict, n_contexts=1, threshold=0.15),
    )
}
