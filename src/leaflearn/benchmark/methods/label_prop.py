"""LabelProp (Iscen et al., 2019) for missing labels: labels spread to inputs with similar features.

graph    each input is connected to its nearest neighbors in the network's features; the edge weight
         increases with the similarity
diffuse  labels spread along the edges, (I - alpha W) Z = Y; an input adopts the labels with the
         highest values
learn    the network learns given and adopted labels, the latter weighted by their certainty
repeat   the graph is built again from the new features
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
from leaflearn.benchmark.methods.label_sets import (
    count_rows,
    fill,
    label_set_loss,
    label_set_network,
)
from leaflearn.benchmark.methods.registry import register
from leaflearn.core.batches import Batches

Array = NDArray[Any]
PRECISION = 1e-6  # of the linear solver; distant labels have small values that are compared


@register("label-prop")
class LabelProp(Method):
    """One network for all labels, which takes the missing labels from similar inputs.

    An input may occur again with the label of another domain; all given labels are kept. Until the
    first graph the network learns from the given labels only.

    Parameters
    ----------
    rounds_every
        Epochs between two graphs.
    n_neighbors, gamma, alpha
        Of the graph and of the diffusion, see `diffuse`. Iscen et al. use 50 neighbors and alpha
        0.99 for a few labels among many unlabelled inputs; here every input has a label, so labels
        need not spread far.
    most_rows
        Maximum number of inputs in the graph, which are stored. From a larger training set, that
        many are drawn at random once; the others are used with their given labels only.

    Examples
    --------
    >>> LabelProp(rounds_every=5).gives_label_set
    True
    """

    claims = frozenset({"classification"})
    gives_label_set = True

    def __init__(
        self,
        *,
        rounds_every: int = 1,
        n_neighbors: int = 10,
        gamma: float = 3.0,
        alpha: float = 0.9,
        most_rows: int = 20_000,
    ) -> None:
        self.rounds_every, self.most_rows = rounds_every, most_rows
        self.n_neighbors, self.gamma, self.alpha = n_neighbors, gamma, alpha

    def build(self) -> None:
        """Create one network, the label tables, and storage for the inputs of the graph."""
        n_rows, n_outputs = count_rows(self.problem, self.name), self.problem.n_outputs
        self.network = label_set_network(self.problem)
        self.optimizer = self.problem.optimizer(self.network.parameters())
        self.given = torch.zeros(n_rows, n_outputs, dtype=torch.bool)  #                 (n_rows, C)
        # value of each label after the diffusion
        self.spread = torch.zeros(n_rows, n_outputs)  #                                  (n_rows, C)
        self.certainty = torch.zeros(n_rows)  # of the adopted labels                      (n_rows,)
        # rows in the graph (M,), and the position of each row in it (n_rows,)
        self.rows = torch.randperm(n_rows, generator=self.generator)[: self.most_rows]
        self.place = torch.full((n_rows,), -1).scatter(0, self.rows, torch.arange(len(self.rows)))
        self.inputs = torch.zeros(len(self.rows), *self.problem.input_shape)  #             (M, ...)
        self.is_kept = torch.zeros(len(self.rows), dtype=torch.bool)  # is stored               (M,)
        self.n_epochs = torch.tensor(0)

    def learn(self, batches: Batches, oracle_info: OracleInfo | None) -> dict[str, float]:
        """Minimize the binary cross-entropy; adopted labels are weighted by their certainty."""
        assert batches.index is not None, "label-prop needs the row numbers of the training set"
        self._keep(batches.index, batches.x, batches.y)
        goal = self.label_sets(batches.index)  #                                              (N, C)
        adopted = goal & ~self.given[batches.index]
        weight = torch.where(adopted, self.certainty[batches.index, None], 1.0)
        loss = label_set_loss(self.network.train()(batches.x), goal.float(), weight=weight)
        certainty = weight[adopted].sum() / adopted.sum().clamp(min=1)
        return {"loss": descend(self.optimizer, loss), "certainty": float(certainty)}

    def end_epoch(self) -> None:
        """Spread the labels along a new graph every `rounds_every` epochs."""
        self.n_epochs = self.n_epochs + 1
        if int(self.n_epochs) % self.rounds_every == 0 and int(self.is_kept.sum()) > 1:
            self._spread_labels(
                self.rows[self.is_kept], hidden_features(self.network, self.inputs[self.is_kept])
            )

    def label_sets(self, rows: Tensor) -> Tensor:
        """Given and adopted labels of these rows of the training set, (N, C) of bool."""
        given, spread = self.given[rows], self.spread[rows]
        # a label with value 0 is not adopted
        return given | (fill(given, spread, self.problem.n_domains) & (spread > 0))

    def answer(self, x: Tensor) -> Tensor:
        """Predict the probability of each label, (N, 1, C)."""
        return torch.sigmoid(self.network.eval()(x))[:, None]

    def _keep(self, index: Tensor, x: Tensor, y: Tensor) -> None:
        """Store the labels of all rows, and the inputs of those in the graph."""
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
        # the most certain row has weight 1
        self.certainty[rows] = (certainty / certainty.max().clamp(min=1e-12)).float()


def hidden_features(network: nn.Module, x: Tensor) -> Tensor:
    """Return the input of a network's last layer for each row, (N, F).

    For a network that is not a sequence of layers, this is its output.

    Examples
    --------
    >>> network = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    >>> hidden_features(network, torch.zeros(4, 3)).shape
    torch.Size([4, 5])
    >>> hidden_features(nn.Linear(3, 2), torch.zeros(4, 3)).shape
    torch.Size([4, 2])
    """
    body = _without_last(network.eval())
    with torch.no_grad():
        return torch.cat([body(part).flatten(1) for part in x.split(ROWS_AT_ONCE)])


def diffuse(
    seen: Array, labels: Array, n_neighbors: int = 10, gamma: float = 3.0, alpha: float = 0.9
) -> Array:
    """Spread labels to similar rows, (N, C).

    Parameters
    ----------
    seen
        Features of the rows, (N, F).
    labels
        Whether a row has a label, (N, C). The rows of each label have a total weight of 1, so that
        frequent labels do not dominate rare ones.
    n_neighbors
        Number of nearest neighbors that each row is connected to.
    gamma
        An edge weight is the cosine similarity of the features to this power.
    alpha
        How far labels spread, from 0 (not at all) to 1 (without limit).

    Examples
    --------
    >>> seen = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    >>> labels = np.array([[1, 0], [0, 0], [0, 1], [0, 0]])
    >>> diffuse(seen, labels, n_neighbors=1).argmax(1)
    array([0, 0, 1, 1])
    """
    edges = _graph(seen, n_neighbors, gamma)  #                                               (N, N)
    system = sparse.identity(len(seen), format="csr") - alpha * edges
    sent = labels / np.maximum(labels.sum(axis=0), 1)  #                                      (N, C)
    spread = np.stack(
        [cg(system, sent[:, c], rtol=PRECISION)[0] for c in range(sent.shape[1])], axis=1
    )
    return np.maximum(spread, 0.0)


def certainties(spread: Tensor, n_missing: Tensor) -> Tensor:
    """How clearly the scores (N, C) of a row select the labels that it lacks, from 0 to 1, (N,).

    `n_missing` (N,) is the number of these labels. With one missing label this is the weight of
    Iscen et al.: 1 minus the normalized entropy.

    Examples
    --------
    >>> spread = torch.tensor([[0.0, 3.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    >>> certainties(spread, torch.tensor([1, 1, 2]))
    tensor([1., 0., 1.])
    """
    total = spread.sum(1, keepdim=True)
    share = spread / total.clamp(min=torch.finfo(spread.dtype).tiny)
    entropy = torch.special.entr(share).sum(1)  #                                               (N,)
    # entropy of equally likely missing labels, and of all labels
    least, most = (n_missing.clamp(min=1).log(), np.log(spread.shape[1]))
    certainty = 1 - (entropy - least).clamp(min=0) / (most - least).clamp(min=1e-12)
    return torch.where((total[:, 0] > 0) & (n_missing > 0), certainty.clamp(0, 1), 0.0).to(
        spread.dtype
    )


def _graph(seen: Array, n_neighbors: int, gamma: float) -> sparse.csr_matrix:
    """Symmetric edge weights between rows, normalized by the degrees, (N, N)."""
    # on the unit sphere, the nearest has the largest cosine
    directions = normalize(torch.from_numpy(np.asarray(seen, dtype=np.float64))).numpy()
    edges = kneighbors_graph(directions, min(n_neighbors, len(seen) - 1), mode="distance")
    # the cosine, from the distance
    edges.data = np.maximum(1 - edges.data**2 / 2, 0.0) ** gamma
    edges = edges + edges.T
    scale = sparse.diags(1 / np.sqrt(np.maximum(np.asarray(edges.sum(axis=1)).ravel(), 1e-12)))
    return scale @ edges @ scale


def _without_last(network: nn.Module) -> nn.Module:
    """All layers except the last one, also if the last one is a sequence itself."""
    if not isinstance(network, nn.Sequential):
        return network
    last = network[-1]
    if isinstance(last, nn.Sequential):
        return nn.Sequential(*list(network)[:-1], _without_last(last))
    return network[:-1] if len(network) > 1 else network
