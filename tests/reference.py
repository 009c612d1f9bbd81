"""Algorithm 1 of the paper, literally: one group and one model at a time. Slow and simple.

It shares no code with the library. Rules other than that of the paper replace line 3 by their own
definition of q, which is written out here again.
"""

import math

import torch


def hard(scores, size, progress):
    best = min(range(len(scores)), key=lambda k: scores[k])
    return [1.0 if k == best else 0.0 for k in range(len(scores))]


def soft(temperature):
    def rule(scores, size, progress):
        lowest = min(scores)
        powers = [math.exp(-(s - lowest) / temperature) for s in scores]
        return [p / sum(powers) for p in powers]

    return rule


def annealed(start, until=0.75):
    def rule(scores, size, progress):
        temperature = start * (1 - progress / until)
        return (
            hard(scores, size, progress)
            if temperature <= 0
            else soft(temperature)([s / size for s in scores], size, progress)
        )

    return rule


def squared_error(prediction, y):
    return ((prediction - y) ** 2).mean()


def cross_entropy(prediction, y):
    return -torch.log(torch.exp(prediction[y]) / torch.exp(prediction).sum())


def run_algorithm_1(
    modules, optimizer, groups, loss, rule=hard, meta_batch_size=None, progress=0.0, weights=None
):
    """One pass over `groups`, a list of (x, y).

    `weights` is an optional list of row weights, which sum to the size of each group.
    """
    meta_batch_size = meta_batch_size or len(groups)
    pending = []  # the gradients of the groups since the last update
    for i, (x, y) in enumerate(groups, start=1):
        weight = torch.ones(len(x)) if weights is None else weights[i - 1]
        with torch.no_grad():
            scores = [
                float(sum(w * loss(h(x[j : j + 1])[0], y[j]) for j, w in enumerate(weight)))
                for h in modules
            ]
        q = rule(scores, len(x), progress)
        value = sum(
            q[k] / len(x) * sum(w * loss(h(x[j : j + 1])[0], y[j]) for j, w in enumerate(weight))
            for k, h in enumerate(modules)
            if q[k] > 0
        )
        parameters = [p for h in modules for p in h.parameters()]
        gradients = torch.autograd.grad(value, parameters, allow_unused=True)
        pending.append(
            [
                torch.zeros_like(p) if g is None else g
                for p, g in zip(parameters, gradients, strict=True)
            ]
        )
        if i % meta_batch_size == 0 or i == len(groups):
            for p, *grads in zip(parameters, *pending, strict=True):
                # At the end of the data, the paper averages over the last B groups. The library,
                # and this line, average over the groups since the last update.
                p.grad = sum(grads) / len(pending)
            optimizer.step()
            pending = []


def run_batched(modules, optimizer, groups):
    """The rule of the paper with squared error, all rows of a group at once; for benchmarks."""
    optimizer.zero_grad()
    for x, y in groups:
        with torch.no_grad():
            scores = [float(((h(x) - y) ** 2).sum()) for h in modules]
        best = modules[scores.index(min(scores))]
        (((best(x) - y) ** 2).mean() / len(groups)).backward()
    optimizer.step()
