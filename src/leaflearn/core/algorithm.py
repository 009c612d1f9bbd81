"""Algorithm 1 of the paper: score, allocate, objective, step and identify.

The training data come in groups. All rows of a group share one hidden context, and each of the K
local models is to learn one context. One step handles the B groups of a meta-batch:

    1. Score.      Sum the loss of every model over the rows of every group       (line 3)
    2. Allocate.   Turn the scores of a group into weights over the models        (line 3)
    3. Objective.  Average the losses, weighted, over rows and then over groups   (lines 4 and 6)
    4. Update.     Let the optimizer follow the gradient of the objective         (line 7)

The paper's rule for step 2, `Hard`, selects the model with the lowest score. `allocation.py` has
the other rules. LEAF, LEAF-EM, textbook EM and the annealed default differ in nothing else.

Scores are sums, because the evidence for a context grows with every row of a group. The objective
takes means, so that a large group counts as much as a small one.

`step` is the entry point, and what it uses follows in the order of use. In the shapes, N is the
number of rows, B of groups, K of models; `...` is the number of restarts R, or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from leaflearn.core.allocation import Rule
from leaflearn.core.batches import Batches
from leaflearn.core.losses import Loss
from leaflearn.core.model_set import ModelSet

ROUNDING_SLACK = 1e-9  # 0.29 * 100 is 28.999... in floating point, but means 29 rows


@dataclass(frozen=True)
class Step:
    """The scores, the weights and the value of the objective in one step, before the update."""

    scores: Tensor  #                                                               (..., B, K)
    weights: Tensor  #                                                              (..., B, K)
    value: Tensor  #                                                                (...)


def step(
    models: ModelSet,
    batches: Batches,
    loss: Loss,
    rule: Rule,
    optimizer: torch.optim.Optimizer,
    progress: float = 0.0,
    generator: torch.Generator | None = None,
    max_grad_norm: float | None = None,
    trim: float = 0.0,
) -> Step:
    """One step of Algorithm 1, lines 2 to 8, on the B groups of a meta-batch.

    Parameters
    ----------
    models
        The K local models, or R sets of K models that are trained side by side.
    batches
        The rows of the B groups.
    loss
        Loss of each row.
    rule
        Allocation rule; `Hard()` is the rule of the paper.
    optimizer
        Optimizer of the parameters of `models`.
    progress
        Completed share of the run, 0 to 1, on which the temperature of a rule may depend.
    generator
        Source of randomness for rules that sample.
    max_grad_norm
        Clip the gradient of each model to this norm; None for no clipping.
    trim
        Share of the rows of each group that its score leaves out, those with the largest losses.
        The models learn from all rows.

    Returns
    -------
    Step
        Scores, weights and objective.

    Examples
    --------
    Two models, two groups; each group updates the model that is closer to it.

    >>> import torch
    >>> from leaflearn.core.allocation import Hard
    >>> from leaflearn.core.losses import SquaredError
    >>> from leaflearn.core.model_set import LoopedModels
    >>> models = LoopedModels([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)], (2,))
    >>> for module, bias in zip(models.modules(), [-1.0, 1.0]):
    ...     _ = torch.nn.init.zeros_(module.weight), torch.nn.init.constant_(module.bias, bias)
    >>> y = torch.tensor([[-2.0], [-2.0], [2.0], [2.0]])
    >>> batches = Batches(x=torch.zeros(4, 1), y=y, group=torch.tensor([0, 0, 1, 1]))
    >>> optimizer = torch.optim.SGD(models.parameters(), lr=0.5)
    >>> taken = step(models, batches, SquaredError(), Hard(), optimizer)
    >>> taken.scores
    tensor([[ 2., 18.],
            [18.,  2.]])
    >>> models(torch.zeros(1, 1)).ravel().tolist()
    [-1.5, 1.5]
    """
    if models.one_pass:  # without dropout or batch norm, one forward pass is enough
        losses = loss(models(batches.x), batches.y)  #                              (..., K, N)
        scores = _sum_groups(losses.detach(), batches, trim)  #                     (..., B, K)
        weights = allocate(rule, scores, batches, progress, generator)  #           (..., B, K)
        value = _weighted_sum(losses, _row_weights(weights, batches))  #            (...)
    else:
        scores = score(models, batches, loss, trim)  #                              (..., B, K)
        weights = allocate(rule, scores, batches, progress, generator)  #           (..., B, K)
        value = objective(models, batches, loss, weights)  #                        (...)
    models.zero_grad()
    # Restarts share no parameters, so the gradient of the sum is the gradient of each.
    value.sum().backward()  # type: ignore[no-untyped-call]
    if max_grad_norm is not None:
        models.clip_gradients(max_grad_norm)
    optimizer.step()
    return Step(scores, weights, value.detach())


def score(models: ModelSet, batches: Batches, loss: Loss, trim: float = 0.0) -> Tensor:
    """Summed loss of every model on every group, shape (..., B, K).

    The models are in evaluation mode, and no gradient is recorded. With `trim`, the share of the
    rows of a group with the largest losses is left out, so that a few wrong rows do not decide
    its context.
    """
    return _sum_groups(score_rows(models, batches, loss), batches, trim)


def score_rows(models: ModelSet, batches: Batches, loss: Loss) -> Tensor:
    """Loss of every model on every row, shape (..., K, N); evaluation mode, no gradient."""
    models.train(False)
    with torch.no_grad():
        return loss(models(batches.x), batches.y)


def allocate(
    rule: Rule,
    scores: Tensor,
    batches: Batches,
    progress: float = 0.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Weight of every model for every group, shape (..., B, K); the rows sum to 1."""
    # A model whose predictions are not finite cannot explain any group.
    scores = scores.nan_to_num(nan=torch.inf, posinf=torch.inf)
    return rule(scores, batches.sizes.to(scores), batches.group_id, progress, generator)


def objective(models: ModelSet, batches: Batches, loss: Loss, weights: Tensor) -> Tensor:
    """Mean over groups of the weighted mean loss of their rows, shape (...).

    The models are in training mode, and the value is differentiable.
    """
    models.train(True)
    return models.weighted_loss(batches, loss, _row_weights(weights, batches))


def identify(models: ModelSet, batches: Batches, loss: Loss, temperature: float = 1.0) -> Tensor:
    """Posterior over the contexts for every group, shape (..., B, K), without an update.

    `temperature` is 1 for cross-entropy and twice the noise variance for squared error
    (Appendix A.3).
    """
    return torch.softmax(-score(models, batches, loss) / temperature, -1)


def sum_rows_by_group(
    losses: Tensor, group: Tensor, n_groups: int, weight: Tensor | None = None, trim: float = 0.0
) -> Tensor:
    """Sum the losses of rows (..., K, N) over groups, shape (..., B, K).

    This version is for tensors: models and restarts are leading dimensions, rows may have weights
    and may be trimmed. `grouped_data.sum_by_group` is its counterpart for arrays (N, K).

    Examples
    --------
    >>> import torch
    >>> sum_rows_by_group(torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([0, 1, 1]), 2)
    tensor([[1.],
            [6.]])
    """
    losses = trim_groups(losses, group, n_groups, trim)
    if weight is not None:
        losses = losses * weight
    sums = losses.new_zeros(*losses.shape[:-1], n_groups)  #                        (..., K, B)
    return sums.index_add_(-1, group, losses).transpose(-1, -2)


def trim_groups(losses: Tensor, group: Tensor, n_groups: int, trim: float) -> Tensor:
    """Replace the largest losses of each group by 0, shape (..., N).

    The largest losses are chosen for each model separately, which keeps the comparison of models
    fair: every model is scored on the same number of rows, those that it fits best.

    Parameters
    ----------
    losses
        One loss per row; the leading dimensions are models and restarts.
    group
        The group of each row, 0..n_groups-1, in any order.
    n_groups
        Number of groups.
    trim
        Share of the rows of a group to replace, rounded down; at least 0 and less than 1. Groups
        of fewer than 1 / trim rows keep all their losses.

    Examples
    --------
    >>> import torch
    >>> losses, group = torch.tensor([1.0, 9.0, 2.0, 5.0, 7.0]), torch.tensor([0, 0, 0, 0, 1])
    >>> trim_groups(losses, group, 2, trim=0.25)
    tensor([1., 0., 2., 5., 7.])
    """
    if trim == 0:
        return losses
    sizes = torch.bincount(group, minlength=n_groups)  #                            (B,)
    n_out = (trim * sizes.double() + ROUNDING_SLACK).floor().long()  #              (B,)
    order = losses.argsort(dim=-1, descending=True)  #                              (..., N)
    # Sort by group, with the largest losses of each group first.
    order = order.gather(-1, group[order].argsort(dim=-1, stable=True))
    first = (sizes.cumsum(0) - sizes).repeat_interleave(sizes)  #                   (N,)
    position = torch.arange(len(group), device=group.device) - first  #             (N,)
    is_out = position < n_out.repeat_interleave(sizes)  #                           (N,)
    return losses.scatter(-1, order[..., is_out], 0.0)


def _sum_groups(losses: Tensor, batches: Batches, trim: float) -> Tensor:
    """From the losses of rows (..., K, N) to the scores of groups (..., B, K)."""
    return sum_rows_by_group(losses, batches.group, batches.n_groups, batches.weight, trim)


def _row_weights(weights: Tensor, batches: Batches) -> Tensor:
    """From weights of groups (..., B, K) to the weights of rows in the objective (..., K, N)."""
    share = weights / (batches.sizes.to(weights) * batches.n_groups)[:, None]  #    (..., B, K)
    rows = share.transpose(-1, -2)[..., batches.group]  #                           (..., K, N)
    return rows if batches.weight is None else rows * batches.weight


def _weighted_sum(losses: Tensor, row_weight: Tensor) -> Tensor:
    value = (losses * row_weight).sum((-2, -1))  #                                  (...)
    if torch.isfinite(value).all():
        return value
    # A model that diverged has weight 0, but 0 times infinity is NaN: mask its rows instead.
    return torch.where(row_weight == 0, 0.0, losses * row_weight).sum((-2, -1))
