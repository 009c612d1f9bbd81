"""One start of the refit engine, from its first allocation to its last: refit, score, allocate, until nothing moves."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from leaflearn.core.allocation import Rule, Sampled, constant_from, contexts_of, temperature_of
from leaflearn.core.training import NonFiniteLossError
from leaflearn.engines.refit_task import Ints, RefitTask, Split
from leaflearn.engines.row_losses import Fitted, Floats

CONVERGED = 1e-3  # an allocation whose weights move less than this stands still

Listener = Callable[
    [int, dict[str, Any]], bool | None
]  # told the number of the start and a row of its history; True ends the search


class RefitRun:
    """One start, from its first allocation to its last.

    Parameters
    ----------
    task
        What all starts share.
    rule
        The allocation rule.
    weights
        The first allocation, shape (m, K).
    splits
        Which groups models learn from, and which they are then scored on.
    rng
        Seeds of the models, and whatever else is chance.
    is_given
        Whether the first allocation is one that somebody found, and not chance. A context whose groups all lie in one fold is then judged
        there by a model that has learnt from them: no other can speak for it.

    Examples
    --------
    Two groups with a class each start in one context; the other is revived with one of them.

    >>> from leaflearn.core.allocation import Hard
    >>> from leaflearn.engines.row_losses import ClassRowLoss, ConstantModel
    >>> y, group, rng = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), np.random.default_rng(0)
    >>> task = RefitTask(ConstantModel, np.zeros((4, 1)), y, group, np.ones(4), ClassRowLoss(2), lambda x, rows: x[rows])
    >>> run = RefitRun(task, Hard(), np.array([[1.0, 0.0], [1.0, 0.0]]), task.splits(1, rng), rng)
    >>> run.run(max_iter=10, number=0)
    False
    >>> run.converged, sorted(run.contexts.tolist())
    (True, [0, 1])
    """

    def __init__(
        self,
        task: RefitTask,
        rule: Rule,
        weights: Floats,
        splits: list[Split],
        rng: np.random.Generator,
        is_given: bool = False,
    ) -> None:
        self.task, self.rule, self.weights, self.splits, self.rng = (
            task,
            rule,
            weights,
            splits,
            rng,
        )  # weights (m, K)
        self._is_given = is_given
        self._seeds = [int(seed) for seed in rng.integers(2**31, size=self.n_contexts)]
        self._generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
        self._models: list[list[Fitted | None]] = [[None] * self.n_contexts for _ in splits]
        self.scores = np.zeros_like(
            weights
        )  #                                                         (m, K)
        self.history: list[dict[str, Any]] = []
        self.converged = False
        self._revived: set[int] = set()

    @property
    def n_contexts(self) -> int:
        """How many contexts there are."""
        return len(self.weights.T)

    @property
    def contexts(self) -> Ints:
        """The context of every group, shape (m,)."""
        return contexts_of(
            self.rule, torch.as_tensor(self.scores), torch.as_tensor(self.weights)
        ).numpy()

    @property
    def losses(self) -> Floats:
        """Mean loss of every group under its chosen model, shape (m,)."""
        return np.asarray(
            np.take_along_axis(self.scores, self.contexts[:, None], 1)[:, 0] / self.task.sizes
        )

    @property
    def loss(self) -> float:
        """Mean of this over the groups."""
        return float(self.losses.mean())

    def run(self, max_iter: int, number: int, tell: Listener | None = None) -> bool:
        """Refit, score, allocate until nothing moves; True if the listener wants to end the search."""
        stop = False
        while len(self.history) < max_iter and not self.converged and not stop:
            self._iterate(len(self.history) / max_iter)
            stop = tell is not None and bool(
                tell(number, {**self.history[-1], "max_iter": max_iter})
            )
        self.weights = self._allocate(progress=1.0)  # the temperature's last word
        return stop

    def tell(self) -> dict[str, Any]:
        """What became of this start."""
        curve = np.array([row["loss"] for row in self.history])
        has_converged = self.converged or self.n_contexts == 1
        if isinstance(
            self.rule, Sampled
        ):  # who draws never stands still; the best models of the groups may
            has_converged |= self.history[-1]["changed"] < CONVERGED
        fate = {
            "error": self.loss,
            "kept": False,
            "n_iter": len(self.history),
            "converged": has_converged,
        }
        return {**fate, "curve": curve, "contexts": self.contexts}

    def fit_on_all(self) -> list[Fitted]:
        """The models of the last allocation; an idle one stays as it is."""
        shares = self._shares()
        final = [
            self.task.fit(shares[:, k], seed) or self._models[0][k]
            for k, seed in enumerate(self._seeds)
        ]
        return [fitted for fitted in final if fitted is not None]

    def _iterate(self, progress: float) -> None:
        began, before, were_in = time.perf_counter(), self.weights, self.contexts
        self._refit_and_score()
        self.weights = self._allocate(progress)
        self._record(were_in, progress, time.perf_counter() - began)
        self._revive()
        # While the temperature falls, an allocation that stands still may yet fall apart.
        self.converged = progress >= constant_from(self.rule) and bool(
            np.abs(self.weights - before).max() < CONVERGED
        )

    def _record(self, were_in: Ints, progress: float, seconds: float) -> None:
        row = {
            "epoch": len(self.history) + 1,
            "loss": self.loss,
            "changed": float((self.contexts != were_in).mean()),
            "usage": np.bincount(self.contexts, minlength=self.n_contexts) / self.task.n_groups,
            "temperature": temperature_of(self.rule, progress),
            "seconds": seconds,
        }
        self.history.append(row)

    def _refit_and_score(self) -> None:
        shares = self._shares()
        self.scores = np.zeros_like(self.weights)
        for s, split in enumerate(self.splits):
            for k, seed in enumerate(self._seeds):
                fitted = self.task.fit(shares[:, k] * split.learns, seed)
                if fitted is None and self._is_given:
                    fitted = self.task.fit(shares[:, k], seed)
                # An idle model stays as it is; one that never had a group begins with all there are.
                fitted = fitted or self._models[s][k] or self.task.fit(split.learns, seed)
                assert fitted is not None
                self._models[s][k] = fitted
                self.scores[:, k] += self.task.score(fitted, split)
        self._refuse_non_finite()

    def _revive(self) -> None:
        """Give a context that lost its last group the worst-served ones, once a start; a second time it may be one too many."""
        idle = [
            k
            for k in range(self.n_contexts)
            if not self.weights[:, k].any() and k not in self._revived
        ]
        worst_first = np.argsort(
            -self.losses
        )  #                                                       (m,)
        n = max(1, self.task.n_groups // (4 * self.n_contexts))  # a quarter of a fair share
        for i, k in enumerate(idle):
            self.weights[worst_first[i * n : (i + 1) * n]] = np.eye(self.n_contexts)[k]
        self._revived.update(idle)

    def _shares(self) -> Floats:
        """How much of each group a model learns from, shape (m, K).

        A model that takes no weights gets a draw instead: every group goes whole to one context, in expectation as much as it should.
        """
        if self.task.takes_weight:
            return self.weights
        drawn = (self.rng.random((self.task.n_groups, 1)) < self.weights.cumsum(1)).argmax(
            1
        )  # a hard allocation draws itself
        return np.asarray(np.eye(self.n_contexts)[drawn])

    def _allocate(self, progress: float) -> Floats:
        scores, sizes = torch.from_numpy(self.scores), torch.from_numpy(self.task.sizes).double()
        weights = self.rule(scores, sizes, torch.arange(len(sizes)), progress, self._generator)
        return np.asarray(weights.numpy(), dtype=np.float64)

    def _refuse_non_finite(self) -> None:
        if not np.isfinite(self.scores).all():
            raise NonFiniteLossError(
                f"The loss became non-finite at iteration {len(self.history) + 1}; the likely cause is a local model that predicts "
                "infinite or missing values for some rows: look at the scale of X and y, or regularise the local model."
            )
