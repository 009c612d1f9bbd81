"""Algorithm 1 of the paper on one screen: score, allocate, objective, step, identify.

Line by line: every group is scored by every model (line 3), a rule turns the scores into weights (line 3 again; `hard` is the printed
one), the chosen models' mean loss is differentiated and averaged over the groups of the meta-batch (lines 4 to 6), and the optimizer moves
(line 7). Scores are sums over the group, because evidence adds up; gradients are means, so that a ragged group counts once. With `trim`, a
score leaves out the worst rows of its group (`trimming.py`), so that a few wrong ones do not decide; the models learn from all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from leaflearn.core.allocation import Rule
from leaflearn.core.batches import Batches
from leaflearn.core.losses import Loss
from leaflearn.core.model_set import ModelSet
from leaflearn.core.trimming import trim_groups


@dataclass(frozen=True)
class Step:
    """What one step saw and did."""

    scores: Tensor  #                               (..., B, K)
    weights: Tensor  #                              (..., B, K)
    value: Tensor  # the objective                  (...)


def score(models: ModelSet, batches: Batches, loss: Loss, trim: float = 0.0) -> Tensor:
    """Summed loss of every model on every group, but for a share `trim` of its worst rows, (..., B, K); no gradient, evaluation mode."""
    return sum_by_group(
        score_rows(models, batches, loss), batches.group, batches.n_groups, batches.weight, trim
    )


def score_rows(models: ModelSet, batches: Batches, loss: Loss) -> Tensor:
    """Loss of every model on every row, shape (..., K, N); no gradient, evaluation mode."""
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
    """Weights with which each model learns from each group, shape (..., B, K), rows sum to 1."""
    scores = scores.nan_to_num(
        nan=torch.inf, posinf=torch.inf
    )  # a model that has no answer explains nothing
    return rule(scores, batches.sizes.to(scores), batches.group_id, progress, generator)


def objective(models: ModelSet, batches: Batches, loss: Loss, weights: Tensor) -> Tensor:
    """Mean over groups of the mean loss under the chosen models, shape (...); differentiable, training mode."""
    models.train(True)
    return models.weighted_loss(batches, loss, _weigh_rows(weights, batches))


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
    """Algorithm 1, lines 2 to 8, for the B groups of one meta-batch.

    Examples
    --------
    Two models, two groups; each group teaches the model that is nearer to it.

    >>> import torch
    >>> from leaflearn.core.allocation import Hard
    >>> from leaflearn.core.losses import SquaredError
    >>> from leaflearn.core.model_set import LoopedModels
    >>> models = LoopedModels([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)], (2,))
    >>> for module, bias in zip(models.modules(), [-1.0, 1.0]):
    ...     _ = torch.nn.init.zeros_(module.weight), torch.nn.init.constant_(module.bias, bias)
    >>> batches = Batches(x=torch.zeros(4, 1), y=torch.tensor([[-2.0], [-2.0], [2.0], [2.0]]), group=torch.tensor([0, 0, 1, 1]))
    >>> taken = step(models, batches, SquaredError(), Hard(), torch.optim.SGD(models.parameters(), lr=0.5))
    >>> taken.scores
    tensor([[ 2., 18.],
            [18.,  2.]])
    >>> models(torch.zeros(1, 1)).ravel().tolist()
    [-1.5, 1.5]
    """
    if models.one_pass:  # small models without dropout or batch norm: one forward pass serves for scoring and learning
        losses = loss(
            models(batches.x), batches.y
        )  #                                                          (..., K, N)
        scores = sum_by_group(
            losses.detach(), batches.group, batches.n_groups, batches.weight, trim
        )  #        (..., B, K)
        weights = allocate(
            rule, scores, batches, progress, generator
        )  #                                       (..., B, K)
        value = _weighted_sum(
            losses, _weigh_rows(weights, batches)
        )  #                                         (...)
    else:
        scores = score(models, batches, loss, trim)
        weights = allocate(rule, scores, batches, progress, generator)
        value = objective(models, batches, loss, weights)
    models.zero_grad()
    value.sum().backward()  # type: ignore[no-untyped-call]  # restarts share no parameter: the sum gives each its own gradient
    if max_grad_norm is not None:
        models.clip_gradients(max_grad_norm)
    optimizer.step()
    return Step(scores, weights, value.detach())


def identify(models: ModelSet, batches: Batches, loss: Loss, temperature: float = 1.0) -> Tensor:
    """Posterior over the contexts for every group, shape (..., B, K): the same score, no update.

    `temperature` is 1 for cross-entropy and twice the noise variance for squared error (Appendix A.3).
    """
    return torch.softmax(-score(models, batches, loss) / temperature, -1)


def sum_by_group(
    losses: Tensor, group: Tensor, n_groups: int, weight: Tensor | None = None, trim: float = 0.0
) -> Tensor:
    """From the losses of rows (..., K, N) to the scores of groups (..., B, K).

    Examples
    --------
    >>> import torch
    >>> sum_by_group(torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([0, 1, 1]), 2)
    tensor([[1.],
            [6.]])
    """
    losses = trim_groups(losses, group, n_groups, trim)
    if weight is not None:
        losses = losses * weight
    sums = losses.new_zeros(*losses.shape[:-1], n_groups)
    return sums.index_add_(-1, group, losses).transpose(
        -1, -2
    )  #                                      (..., B, K)


def _weighted_sum(losses: Tensor, row_weight: Tensor) -> Tensor:
    value = (losses * row_weight).sum(
        (-2, -1)
    )  #                                                      (...)
    if torch.isfinite(value).all():
        return value
    # A model that diverged and won nothing must not spoil the others: zero times infinity is no number.
    return torch.where(row_weight == 0, 0.0, losses * row_weight).sum((-2, -1))


def _weigh_rows(weights: Tensor, batches: Batches) -> Tensor:
    """From the groups' weights (..., B, K) to what each row counts in the objective (..., K, N)."""
    share = (
        weights / (batches.sizes.to(weights) * batches.n_groups)[:, None]
    )  #                        (..., B, K)
    rows = share.transpose(-1, -2)[..., batches.group]
    return rows if batches.weight is None else rows * batches.weight
