"""Modular meta-learning (Alet et al., 2018, BounceGrad): each group predicts with a sum of modules.

    structure   the modules that are summed for a group, found by simulated annealing on the loss of
                the group's support rows
    modules     learn by gradient descent on the loss of the query rows under that structure

The paper uses five modules 1-16-16-1, composed by sum. It does not say how many are summed; here it
is two, as in the published implementation's example of sums, in which a module may be used twice.
In that implementation the groups are few and keep their structures between steps. Here groups are
drawn again, so each update anneals from a random structure, at a temperature that decreases over
the run.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from leaflearn.benchmark.methods.contract import Method, OracleInfo, descend
from leaflearn.benchmark.methods.maml import Answer, check_labelled, halve
from leaflearn.benchmark.methods.registry import register
from leaflearn.core.batches import Batches
from leaflearn.core.model_set import make_model_set
from leaflearn.engines.networks import mlp

HIDDEN = (16, 16)
N_SEARCHES = 16  # parallel searches for the structure of a domain, after training


@register("modular")
class Modular(Method):
    """A sum of modules, chosen for each group.

    Parameters
    ----------
    n_modules, n_slots
        Number of modules, and how many of them are summed.
    learning_rate
        Of Adam.
    n_proposals
        Proposed changes of one slot per group and update; five times as many in `adapt`.
    hot, cold
        Temperature at the start and at the end of a run, in units of the loss.

    Examples
    --------
    >>> Modular(n_modules=8).n_modules
    8
    """

    claims = frozenset({"regression"})
    # In the paper: groups of 4 rows, and 3,000 steps.

    def __init__(
        self,
        *,
        n_modules: int = 5,
        n_slots: int = 2,
        learning_rate: float = 0.003,
        n_proposals: int = 20,
        hot: float = 1.0,
        cold: float = 0.001,
    ) -> None:
        if not 0 < cold <= hot:
            raise ValueError(
                f"`hot` is {hot} and `cold` is {cold}, but `hot` must be at least `cold`, "
                "and both above 0."
            )
        self.n_modules, self.n_slots, self.learning_rate = n_modules, n_slots, learning_rate
        self.n_proposals, self.hot, self.cold = n_proposals, hot, cold

    def build(self) -> None:
        """Create the modules, as one batched program."""
        n_inputs = int(torch.Size(self.problem.input_shape).numel())
        self.modules = make_model_set(
            lambda: mlp(n_inputs, self.problem.n_outputs, HIDDEN), (self.n_modules,)
        )
        self.optimizer = torch.optim.Adam(self.modules.parameters(), self.learning_rate)

    def learn(self, batches: Batches, oracle_info: OracleInfo | None) -> dict[str, float]:
        """Anneal the structures on the support rows, then update the modules on the query rows."""
        parts = halve(batches)
        outputs = self.modules(batches.x.flatten(1))  #                         (M, N, D)
        support = ModuleOutputs(
            outputs[:, parts.support].detach(),
            batches.y[parts.support],
            batches.group[parts.support],
            batches.n_groups,
        )
        temperatures = torch.full((self.n_proposals,), self._temperature(self.progress))
        last, _ = anneal(support, self.n_slots, temperatures, self.generator)
        query = ModuleOutputs(
            outputs[:, parts.query],
            batches.y[parts.query],
            batches.group[parts.query],
            batches.n_groups,
        )
        return {
            "loss": descend(self.optimizer, query.loss(last).mean()),
            "support_loss": float(support.loss(last).mean()),
        }

    def answer(self, x: Tensor) -> Tensor:
        """Predict with the mean of all structures, (N, 1, D)."""
        return self.n_slots * self.modules(x.flatten(1)).mean(0)[:, None]

    def find_structure(self, x: Tensor, y: Tensor) -> Tensor:
        """Find the modules whose sum has the smallest loss on labelled rows, sorted, (n_slots,).

        A search can end where no change of a single module helps although a change of two would.
        Therefore several searches run at once, each with a temperature that decreases from `hot` to
        `cold`. They use their own generator, so the call does not affect training.
        """
        check_labelled(x, y, row=(self.problem.n_outputs,))
        with torch.no_grad():
            # (M, N_SEARCHES * N, D)
            outputs = self.modules(x.flatten(1)).repeat(1, N_SEARCHES, 1)
        rows = ModuleOutputs(
            outputs,
            y.repeat(N_SEARCHES, 1),
            torch.arange(N_SEARCHES).repeat_interleave(len(x)),
            N_SEARCHES,
        )
        temperatures = torch.tensor(
            [
                self._temperature(progress)
                for progress in torch.linspace(0, 1, 5 * self.n_proposals).tolist()
            ]
        )
        _, best = anneal(
            rows, self.n_slots, temperatures, torch.Generator().manual_seed(self.problem.seed)
        )
        return best[rows.loss(best).argmin()].sort().values

    def adapt(self, x: Tensor, y: Tensor) -> Answer:
        """Return the sum of the modules that fit these labelled rows best, (N, ...) to (N, D).

        Later training does not change it.
        """
        structure, modules = self.find_structure(x, y), copy.deepcopy(self.modules)

        def answer(x: Tensor) -> Tensor:
            with torch.no_grad():
                return modules(x.flatten(1))[structure].sum(0)

        return answer

    def _temperature(self, progress: float) -> float:
        return float(self.hot * (self.cold / self.hot) ** progress)


class ModuleOutputs:
    """Rows of some groups with the outputs of all modules.

    Parameters
    ----------
    outputs, y, group
        Outputs of the modules (M, N, D), targets (N, D), and the group of each row (N,).
    n_groups
        Number of groups.

    Examples
    --------
    >>> outputs = torch.tensor([[[1.0]], [[5.0]]])
    >>> rows = ModuleOutputs(outputs, torch.tensor([[6.0]]), torch.tensor([0]), 1)
    >>> rows.loss(torch.tensor([[0, 1]])), rows.loss(torch.tensor([[0, 0]]))
    (tensor([0.]), tensor([16.]))
    """

    def __init__(self, outputs: Tensor, y: Tensor, group: Tensor, n_groups: int) -> None:
        self.outputs, self.y, self.group = outputs, y, group
        # weight of a row in the mean of its group
        self._share = 1.0 / torch.bincount(group, minlength=n_groups)

    def loss(self, structure: Tensor) -> Tensor:
        """Mean squared error of every group under its structure (B, n_slots), shape (B,)."""
        chosen = structure[self.group]  #                                       (N, n_slots)
        prediction = self.outputs[chosen, torch.arange(len(chosen))[:, None]].sum(1)  # (N, D)
        losses = (prediction - self.y).square().mean(-1)
        return torch.zeros_like(self._share).index_add(0, self.group, losses) * self._share

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self._share)


def anneal(
    rows: ModuleOutputs, n_slots: int, temperatures: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Anneal the structures of all groups: return the last and the best, both (B, n_slots).

    Simulated annealing starts from random structures. At every temperature, a random module is
    proposed for one slot of each group. A better proposal is accepted; a worse one is accepted with
    probability exp(-increase of the loss / temperature).

    Examples
    --------
    >>> constants = torch.tensor([1.0, 5.0, 9.0])
    >>> outputs = constants[:, None, None].expand(3, 2, 1)  # for two rows
    >>> rows = ModuleOutputs(outputs, torch.tensor([[6.0], [14.0]]), torch.tensor([0, 1]), 2)
    >>> last, best = anneal(rows, 2, torch.full((50,), 0.1), torch.Generator().manual_seed(0))
    >>> best.sort().values
    tensor([[0, 1],
            [1, 2]])
    """
    n_modules, groups = len(rows.outputs), torch.arange(rows.n_groups)
    structure = torch.randint(n_modules, (rows.n_groups, n_slots), generator=generator)
    loss = rows.loss(structure)
    best, best_loss = structure, loss
    for temperature in temperatures:
        proposal = structure.clone()
        slot = torch.randint(n_slots, (rows.n_groups,), generator=generator)
        proposal[groups, slot] = torch.randint(n_modules, (rows.n_groups,), generator=generator)
        proposed = rows.loss(proposal)
        accept = torch.rand(rows.n_groups, generator=generator) < torch.exp(
            (loss - proposed) / temperature
        )
        structure, loss = (
            torch.where(accept[:, None], proposal, structure),
            torch.where(accept, proposed, loss),
        )
        better = loss < best_loss
        best, best_loss = (
            torch.where(better[:, None], structure, best),
            torch.where(better, loss, best_loss),
        )
    return structure, best
