"""Model-agnostic meta-learning (Finn et al., 2017): an initialization that adapts in a few steps.

    support   the first half of a group's rows: a copy of the network takes a few gradient steps
    query     the other half: the initialization is updated by the loss of the adapted copy

The rows of a group have no order, so it does not matter which half is which. The paper uses groups
of 2 + 2 rows, 20,000 updates, and 100 labelled rows to adapt to a domain at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from leaflearn.benchmark.methods.contract import Method, OracleInfo, as_answers, descend
from leaflearn.benchmark.methods.registry import register
from leaflearn.core.batches import Batches

Parameters = dict[str, Tensor]
Answer = Callable[[Tensor], Tensor]  # (N, ...) -> (N, D)


@register("maml")
class MAML(Method):
    """One initialization that adapts to each domain in a few gradient steps.

    The implementation used by the paper treats the inner gradients as constants, so first order is
    the default. Second order differentiates through the inner steps, as in the original
    description.

    That implementation uses Adam for the outer steps. With the paper's outer step size, Adam turned
    the networks of the paper's regression task into constants that hardly adapt (three of three
    seeds), and so did gradient descent with momentum (one of two seeds). Plain gradient descent did
    not (three seeds), so it is the default.

    Parameters
    ----------
    outer_learning_rate, optimizer
        Of the outer steps; "sgd" has no momentum and no weight decay.
    inner_learning_rate, inner_steps
        Of the steps on the support rows.
    evaluation_steps
        Inner steps of `adapt`.
    order
        1 or 2.

    Examples
    --------
    >>> MAML().order, MAML(order=2).order
    (1, 2)
    """

    # the paper's classification groups are single rows
    claims = frozenset({"regression"})
    # In the paper: groups of 4 rows, and 20,000 steps.

    def __init__(
        self,
        *,
        outer_learning_rate: float = 0.05,
        inner_learning_rate: float = 0.015,
        inner_steps: int = 2,
        evaluation_steps: int = 5,
        order: Literal[1, 2] = 1,
        optimizer: Literal["adam", "sgd"] = "sgd",
    ) -> None:
        if order not in (1, 2):
            raise ValueError(f"`order` is {order}, but must be 1 or 2; choose one of them.")
        if optimizer not in ("adam", "sgd"):
            raise ValueError(
                f"`optimizer` is {optimizer!r}, but must be 'adam' or 'sgd'; choose one of them."
            )
        self.outer_learning_rate, self.inner_learning_rate = (
            outer_learning_rate,
            inner_learning_rate,
        )
        self.inner_steps, self.evaluation_steps, self.order, self.outer_optimizer = (
            inner_steps,
            evaluation_steps,
            order,
            optimizer,
        )

    def build(self) -> None:
        """Create one network: the initialization."""
        self.network = self.problem.network(self.problem.n_outputs)
        if any(
            isinstance(part, nn.modules.batchnorm._NormBase | nn.modules.dropout._DropoutNd)
            for part in self.network.modules()
        ):
            raise ValueError(
                "MAML runs one copy of the network per group at once, which batch norm and dropout "
                "do not support; choose a network without them."
            )
        optimizer = torch.optim.Adam if self.outer_optimizer == "adam" else torch.optim.SGD
        self.optimizer: torch.optim.Optimizer = optimizer(
            self.network.parameters(), lr=self.outer_learning_rate
        )

    def learn(self, batches: Batches, oracle_info: OracleInfo | None) -> dict[str, float]:
        """Update the initialization by the mean query loss of groups after the inner steps."""
        parts = halve(batches)
        # (B,)
        losses = vmap(self._query_loss, in_dims=(None, 0, 0))(
            dict(self.network.named_parameters()),
            as_table(batches, parts.support),
            as_table(batches, parts.query),
        )
        return {"loss": descend(self.optimizer, losses.mean())}

    def answer(self, x: Tensor) -> Tensor:
        """Predict with the initialization itself, (N, 1, D)."""
        return as_answers(self.network(x), self.problem.is_classification)[:, None]

    def adapt(self, x: Tensor, y: Tensor) -> Answer:
        """Return the predictor (N, ...) to (N, D) after the evaluation steps on labelled rows.

        The initialization does not change.
        """
        check_labelled(
            x, y, row=() if self.problem.is_classification else (self.problem.n_outputs,)
        )
        start = {
            name: parameter.detach().clone() for name, parameter in self.network.named_parameters()
        }
        adapted = self._adapt_parameters(start, (x, y, torch.ones(len(x))), self.evaluation_steps)

        def answer(x: Tensor) -> Tensor:
            with torch.no_grad():
                return as_answers(
                    functional_call(self.network, adapted, (x,)), self.problem.is_classification
                )

        return answer

    def _query_loss(self, start: Parameters, support: LabelledRows, query: LabelledRows) -> Tensor:
        """Query loss of one group after the inner steps on its support."""
        return self._loss(self._adapt_parameters(start, support, self.inner_steps), query)

    def _adapt_parameters(
        self, parameters: Parameters, rows: LabelledRows, n_steps: int
    ) -> Parameters:
        for _ in range(n_steps):
            here = (
                parameters
                if self.order == 2
                else {name: value.detach() for name, value in parameters.items()}
            )
            gradient = grad(self._loss)(here, rows)
            parameters = {
                name: value - self.inner_learning_rate * gradient[name]
                for name, value in parameters.items()
            }
        return parameters

    def _loss(self, parameters: Parameters, rows: LabelledRows) -> Tensor:
        """Weighted mean loss of the rows of one group."""
        x, y, weight = rows
        losses = self.problem.loss(functional_call(self.network, parameters, (x,)), y)  # (S,)
        return (losses * weight).sum() / weight.sum()


LabelledRows = tuple[Tensor, Tensor, Tensor]  # x, y, weight


@dataclass(frozen=True)
class Halves:
    """The support and query rows of a meta-batch."""

    support: Tensor  # numbers of rows, group by group                          (about N / 2,)
    query: Tensor  # the others                                                 (about N / 2,)


def halve(batches: Batches) -> Halves:
    """Split the rows of each group into halves, in order; an odd row is a query row.

    Examples
    --------
    >>> batches = Batches(torch.zeros(5, 1), torch.zeros(5, 1), torch.tensor([0, 1, 0, 1, 1]))
    >>> halve(batches)
    Halves(support=tensor([0, 1]), query=tensor([2, 3, 4]))
    """
    sizes = torch.bincount(batches.group, minlength=batches.n_groups)  #        (B,)
    if int(sizes.min()) < 2:
        raise ValueError(
            f"The smallest of {batches.n_groups} groups has {int(sizes.min())} rows, but a "
            "meta-learner needs at least 2, one for support and one for query; "
            "draw larger groups (the paper: group_size=4)."
        )
    rows = torch.argsort(batches.group, stable=True)
    is_support = _places(batches.group[rows], sizes) < sizes[batches.group[rows]] // 2
    return Halves(rows[is_support], rows[~is_support])


def as_table(batches: Batches, rows: Tensor) -> LabelledRows:
    """Arrange these rows with one line per group: x (B, S, ...), y (B, S, ...) and weight (B, S).

    Shorter groups are padded with rows of weight 0.

    Examples
    --------
    >>> batches = Batches(torch.arange(3.0), torch.zeros(3), torch.tensor([0, 0, 1]))
    >>> x, y, weight = as_table(batches, torch.tensor([0, 1, 2]))
    >>> x, weight
    (tensor([[0., 1.],
             [2., 0.]]), tensor([[1., 1.],
             [1., 0.]]))
    """
    group = batches.group[rows]
    sizes = torch.bincount(group, minlength=batches.n_groups)
    shape = (batches.n_groups, int(sizes.max()))
    place = _places(group, sizes)
    number, weight = torch.zeros(shape, dtype=torch.long), torch.zeros(shape)
    number[group, place] = rows
    weight[group, place] = 1.0 if batches.weight is None else batches.weight[rows]
    return batches.x[number], batches.y[number], weight


def check_labelled(x: Tensor, y: Tensor, row: tuple[int, ...]) -> None:
    """Raise an error if these rows cannot be adapted to; `row` is the shape of one target.

    Examples
    --------
    >>> check_labelled(torch.zeros(2, 1), torch.zeros(2), row=(1,))
    Traceback (most recent call last):
    ValueError: 2 inputs to adapt to have targets of shape (2,), but (2, 1) was expected; give every
    input its target.
    """
    if not len(x):
        raise ValueError("There are no rows to adapt to; give at least one input with its target.")
    if tuple(y.shape) != (len(x), *row):
        raise ValueError(
            f"{len(x)} inputs to adapt to have targets of shape {tuple(y.shape)}, but "
            f"{(len(x), *row)} was expected; give every input its target."
        )


def _places(group: Tensor, sizes: Tensor) -> Tensor:
    """Position of each row inside its group, for rows sorted by group."""
    return torch.arange(len(group)) - (torch.cumsum(sizes, 0) - sizes)[group]
