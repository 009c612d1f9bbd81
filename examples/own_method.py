"""A method of your own in one file: LEAF that gives each group to a random model now and then, in the table beside LEAF.

python examples/own_method.py
"""

import torch

from leaflearn.core.allocation import Hard, one_hot
from leaflearn.data.streaming import BilevelSampler
from leaflearn.datasets import DATASETS
from leaflearn.experiments.method_errors import method_errors
from leaflearn.methods import describe, make_method, register, train
from leaflearn.methods.leaf import Leaf
from leaflearn.networks import mlp


@register("leaf-careless")
class CarelessLeaf(Leaf):
    """LEAF with a share of random choices that falls to nothing."""

    def rule(self):
        def allocate(scores, sizes, _group_id=None, progress=0.0, generator=None):
            weights = Hard()(scores, sizes)
            is_random = torch.rand(len(scores), generator=generator) < 0.3 * (1 - progress)
            drawn = torch.randint(scores.shape[-1], (len(scores),), generator=generator)
            return torch.where(is_random[:, None], one_hot(drawn, scores.shape[-1], weights.dtype), weights)

        return allocate


torch.set_num_threads(1)
sampler = BilevelSampler(DATASETS["functions"](), group_size=2, random_state=0)
problem = describe(sampler, lambda n_outputs: mlp(1, n_outputs), n_epochs=40)
for name in ("erm", "leaf", "leaf-careless"):
    method = make_method(name)
    train(method, sampler, problem, n_epochs=40)
    errors = method_errors(method, sampler.domains)["best"]
    print(f"{name:14s}", "  ".join(f"{domain} {e:.2f}" for domain, e in zip(sampler.domains.names, errors, strict=True)))
