"""LabelProp (Iscen et al., 2019) for labels that are missing: labels spread to the inputs that look alike to the network.

graph    each input is tied to its nearest neighbours in the network's features, the more alike the stronger
diffuse  labels spread along the ties, (I - alpha W) Z = Y; an input takes over the labels that reach it most
learn    the network learns given labels and those taken over, these as much as they are certain
again    the features have changed, and so has the graph
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import cg
from sklearn.neighbors import kneighbors_graph
from torch import Tensor, nn
from torch.nn.functional import normalize

from leaflearn.benchmark.methods.contract import ROWS_AT_ONCE, Method, OracleInfo, descend
from leaflearn.benchmark.methods.label_sets import label_set_loss, label_set_network
from leaflearn.benchmark.methods.pseudo_label import count_rows, fill
from leaflearn.benchmark.methods.registry import register
from leaflearn.core.batches import Batches

Array = NDArray[Any]
PRECISION = 1e-6  # of the solved system: labels from far away arrive weak, and are still compared


@register("label-prop")
class LabelProp(Method):
    """One model of all labels at once, which takes the missing labels from inputs that look alike.

    An input may come again with the label of another domain; every label that was ever given is kept. Until the first round the network
    learns from the given labels alone.

    Parameters
    ----------
    rounds_every
        Epochs from one graph to the next.
    n_neighbors, gamma, alpha
        Of the graph and of the diffusion, as in `diffuse`. Iscen et al. take 50 neighbours and an alpha of 0.99, for a few labels among
        many inputs without any; here every input comes with a label, so none has to come from afar.
    most_rows
        Inputs that the graph may have, which are kept in memory. Of a larger training set that many are drawn at random, once; the others
        are learnt from with their given labels alone.

    Examples
    --------
    >>> LabelProp(rounds_every=5).gives_label_set
    True
    """

    claims = frozenset({"classification"})
    gives_label_set = True

    def __init__(
        self, *, rounds_every: int = 1, n_neighbors: int = 10, gamma: float = 3.0, alpha: float = 0.9,
        most_rows: int = 20_000,
    ) -> None:  # fmt: skip
        self.rounds_every, self.most_rows = rounds_every, most_rows
        self.n_neighbors, self.gamma, self.alpha = n_neighbors, gamma, alpha

    def build(self) -> None:
        """One network, what is known of the labels of each row, and room for the inputs of the graph."""
        n_rows, n_outputs = count_rows(self.problem, self.name), self.problem.n_outputs
        self.network = label_set_network(self.problem)
        self.optimizer = self.problem.optimizer(self.network.parameters())
        # labels that rows came with
        self.given = torch.zeros(n_rows, n_outputs, dtype=torch.bool)  #                 (n_rows, C)
        # how much of each label reached a row
        self.spread = torch.zeros(n_rows, n_outputs)  #                                  (n_rows, C)
        self.certainty = torch.zeros(n_rows)  # of the labels that a row takes over        (n_rows,)
        # in the graph  (M,)
        self.rows = torch.randperm(n_rows, generator=self.generator)[: self.most_rows]
        # (n_rows,)
        self.place = torch.full((n_rows,), -1).scatter(0, self.rows, torch.arange(len(self.rows)))
        self.inputs = torch.zeros(len(self.rows), *self.problem.input_shape)  #             (M, ...)
        # whether the input was seen yet  (M,)
        self.is_kept = torch.zeros(len(self.rows), dtype=torch.bool)
        self.n_epochs = torch.tensor(0)

    def learn(self, batches: Batches, told: OracleInfo | None) -> dict[str, float]:
        """Binary cross-entropy, label by label; a label that was taken over counts as much as it is certain."""
        assert batches.index is not None, (
            "label-prop must know which input of the training set each row is"
        )
        self._keep(batches.index, batches.x, batches.y)
        goal = self.label_sets(batches.index)  #                                              (N, C)
        taken_over = goal & ~self.given[batches.index]
        weight = torch.where(taken_over, self.certainty[batches.index, None], 1.0)
        loss = label_set_loss(self.network.train()(batches.x), goal.float(), weight=weight)
        certainty = weight[taken_over].sum() / taken_over.sum().clamp(min=1)
        return {"loss": descend(self.optimizer, loss), "certainty": float(certainty)}

    def end_epoch(self) -> None:
        """Every so many epochs, spread the labels along a new graph."""
        self.n_epochs = self.n_epochs + 1
        if int(self.n_epochs) % self.rounds_every == 0 and int(self.is_kept.sum()) > 1:
            self._spread_labels(
                self.rows[self.is_kept], features(self.network, self.inputs[self.is_kept])
            )

    def label_sets(self, rows: Tensor) -> Tensor:
        """The labels that these rows of the training set are believed to have, given ones among them, (N, C) of bool."""
        given, spread = self.given[rows], self.spread[rows]
        # a label that did not reach a row is none of its own
        return given | (fill(given, spread, self.problem.n_domains) & (spread > 0))

    def answer(self, x: Tensor) -> Tensor:
        """How likely each label is, (N, 1, C)."""
        return torch.sigmoid(self.network.eval()(x))[:, None]

    def _keep(self, index: Tensor, x: Tensor, y: Tensor) -> None:
        """Remember the labels of all rows, and the inputs of those in the graph."""
        self.given[index, y] = True
        place = self.place[index]
        self.inputs[place[place >= 0]] = x[place >= 0]
        self.is_kept[place[place >= 0]] = True

    def _spread_labels(self, rows: Tensor, seen: Tensor) -> None:
        labels = self.given[rows]
        spread = torch.from_numpy(
            diffuse(seen.numpy(), labels.numpy(), self.n_neighbors, self.gamma, self.alpha)
        )
        certainty = certainties(
            spread.masked_fill(labels, 0.0), self.problem.n_domains - labels.sum(1)
        )
        self.spread[rows] = spread.float()
        # the most certain row counts as a given label
        self.certainty[rows] = (certainty / certainty.max().clamp(min=1e-12)).float()


def features(network: nn.Module, x: Tensor) -> Tensor:
    """What the last layer of a network sees of each row, (N, F); what it says, where the network is not a sequence of layers.

    Examples
    --------
    >>> features(nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2)), torch.zeros(4, 3)).shape
    torch.Size([4, 5])
    >>> features(nn.Linear(3, 2), torch.zeros(4, 3)).shape
    torch.Size([4, 2])
    """
    body = _without_last(network.eval())
    with torch.no_grad():
        return torch.cat([body(part).flatten(1) for part in x.split(ROWS_AT_ONCE)])


def diffuse(
    seen: Array, labels: Array, n_neighbors: int = 10, gamma: float = 3.0, alpha: float = 0.9
) -> Array:
    """Spread labels to the rows that look alike, (N, C).

    Parameters
    ----------
    seen
        Features of the rows, (N, F).
    labels
        Whether a row has a label, (N, C). All rows of a label send out 1 together, so that a frequent label does not drown a rare one.
    n_neighbors
        Each row is tied to this many nearest others.
    gamma
        A tie is as strong as the cosine of the angle between the features to this power.
    alpha
        How far labels spread, from 0, not at all, to 1, without end.

    Examples
    --------
    >>> seen = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    >>> labels = np.array([[1, 0], [0, 0], [0, 1], [0, 0]])
    >>> diffuse(seen, labels, n_neighbors=1).argmax(1)
    array([0, 0, 1, 1])
    """
    ties = _graph(seen, n_neighbors, gamma)  #                                                (N, N)
    system = sparse.identity(len(seen), format="csr") - alpha * ties
    sent = labels / np.maximum(labels.sum(axis=0), 1)  #                                      (N, C)
    spread = np.stack(
        [cg(system, sent[:, c], rtol=PRECISION)[0] for c in range(sent.shape[1])], axis=1
    )
    return np.maximum(spread, 0.0)


def certainties(spread: Tensor, n_missing: Tensor) -> Tensor:
    """How clearly the label scores (N, C) of a row single out as many labels as it lacks (N,): from 0, all alike, to 1, (N,).

    With one label missing this is the weight of Iscen et al.: 1 minus the entropy, in units of the largest there can be.

    Examples
    --------
    >>> certainties(torch.tensor([[0.0, 3.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]), torch.tensor([1, 1, 2]))
    tensor([1., 0., 1.])
    """
    total = spread.sum(1, keepdim=True)
    # (N,)
    entropy = torch.special.entr(spread / total.clamp(min=torch.finfo(spread.dtype).tiny)).sum(1)
    # of labels that are all equally sure, and of all labels
    least, most = (n_missing.clamp(min=1).log(), np.log(spread.shape[1]))
    certainty = 1 - (entropy - least).clamp(min=0) / (most - least).clamp(min=1e-12)
    return torch.where((total[:, 0] > 0) & (n_missing > 0), certainty.clamp(0, 1), 0.0).to(
        spread.dtype
    )


def _graph(seen: Array, n_neighbors: int, gamma: float) -> sparse.csr_matrix:
    """Ties between rows, the same both ways, scaled by how much each row is tied, (N, N)."""
    # nearest on the sphere is largest cosine
    directions = normalize(torch.from_numpy(np.asarray(seen, dtype=np.float64))).numpy()
    ties = kneighbors_graph(directions, min(n_neighbors, len(seen) - 1), mode="distance")
    # the cosine, from the distance on the sphere
    ties.data = (np.maximum(1 - ties.data**2 / 2, 0.0) ** gamma)
    ties = ties + ties.T
    degree = np.asarray(ties.sum(axis=1)).ravel()
    scale = sparse.diags(1 / np.sqrt(np.maximum(degree, 1e-12)))
    return scale @ ties @ scale


def _without_last(network: nn.Module) -> nn.Module:
    """The layers before the last one, also where the last is a sequence itself."""
    if not isinstance(network, nn.Sequential):
        return network
    last = network[-1]
    if isinstance(last, nn.Sequential):
        return nn.Sequential(*list(network)[:-1], _without_last(last))
    return network[:-1] if len(network) > 1 else network
