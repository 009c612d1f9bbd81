"""Every choice of a fit in one place, and what it means where the choice is left to the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from leaflearn.core import settings as core_settings
from leaflearn.core.allocation import RULES, Annealed, Rule, make_rule
from leaflearn.core.losses import CrossEntropy, GeneralizedCrossEntropy, Loss
from leaflearn.core.model_set import Factory, count_parameters
from leaflearn.core.training import Callback, Schedule

SMALL_STARTS = 5  # starts of small networks, which run side by side and cost little more than one
SMALL_FITS = 2  # the same, where the contexts are known and only the weights are chance
GIVEN = 0.3  # share of the refresh for which the allocation is held; then it is hard and may still mend itself
PORTFOLIO = (
    1.0,
    2.0,
    1.0,
    2.0,
    1e-3,
)  # temperatures of the starts, in turn; so cold a start is a hard one

MakeOptimizer = Callable[..., torch.optim.Optimizer]
OPTIMIZERS: dict[str, MakeOptimizer] = {
    "adam": partial(torch.optim.Adam, fused=True),
    "adamw": partial(torch.optim.AdamW, fused=True),
    "sgd": partial(
        torch.optim.SGD, momentum=0.9, weight_decay=1e-4, fused=True
    ),  # the paper's, in regression
}


@dataclass(frozen=True)
class Recipe:
    """How to fit: every choice in one place, `"auto"` where the data decide.

    Examples
    --------
    >>> Recipe(max_epochs=5).allocation
    'annealed'
    """

    allocation: str | Rule = "annealed"
    temperature: float | str = "auto"
    n_init: int | str = "auto"
    optimizer: str | MakeOptimizer = "adamw"
    learning_rate: float = 0.003
    schedule: str | Schedule = "cosine"
    max_epochs: int | str = "auto"
    groups_per_step: int = 32
    rows_per_group: int | None = 32
    max_grad_norm: float | None = None
    trim: float = 0.0
    tol: float = 1e-4
    n_iter_no_change: int | None = 20
    refresh: bool = True
    stacked: bool | None = None
    callbacks: Sequence[Callback] = ()


def resolve_rule(allocation: str | Rule, temperature: float | str, loss: Loss, y: Tensor) -> Rule:
    """The rule by its name, with the temperature that fits the data where it is "auto".

    Annealing starts at half the loss of the best constant prediction. The other rules have the paper's temperatures: 1 for cross-entropy,
    0.1 for squared error (Appendix D).

    Examples
    --------
    >>> import torch
    >>> from leaflearn.core.losses import SquaredError
    >>> resolve_rule("annealed", "auto", SquaredError(), torch.tensor([[0.0], [2.0]]))
    Annealed(start=0.5, until=0.75)
    """
    if not isinstance(allocation, str):
        return allocation
    if allocation not in RULES:
        raise ValueError(
            f"allocation={allocation!r} is not known; choose one of {', '.join(map(repr, RULES))}, or pass a rule object."
        )
    if isinstance(temperature, str):
        if allocation == "annealed":
            temperature = (
                0.5 * loss.of_best_constant(y) or 1.0
            )  # constant targets cost nothing: any temperature will do
        else:
            temperature = 1.0 if isinstance(loss, CrossEntropy | GeneralizedCrossEntropy) else 0.1
    return make_rule(allocation, temperature)


def vary(rule: Rule, recipe: Recipe, n_starts: int) -> Rule:
    """The rule for all starts. A temperature that was left to us is not the same for all: which one the data want shows in the end.

    Where contexts overlap, a soft start finds them and a hard one freezes; where there are many inputs and few rows a context, a soft one
    never comes apart and a hard one does.

    Examples
    --------
    >>> vary(Annealed(0.5), Recipe(), n_starts=2).start.ravel()
    tensor([0.5000, 1.0000])
    """
    if not isinstance(rule, Annealed) or recipe.temperature != "auto" or n_starts == 1:
        return rule
    return Annealed(
        rule.start * torch.tensor(PORTFOLIO).repeat(n_starts)[:n_starts, None, None], rule.until
    )


def count_starts(n_init: int | str, factory: Factory, small_starts: int = SMALL_STARTS) -> int:
    """How many starts run side by side: as many as were asked for, else several of small networks, and one of large ones.

    Examples
    --------
    >>> count_starts("auto", lambda: torch.nn.Linear(1, 1)), count_starts("auto", lambda: torch.nn.Linear(1000, 1000))
    (5, 1)
    """
    if not isinstance(n_init, str):
        return n_init
    is_small = count_parameters(factory()) <= core_settings.TRAINING.max_stacked_parameters
    return small_starts if is_small else 1
