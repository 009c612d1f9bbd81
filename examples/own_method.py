"""A custom method in one file: LEAF that sometimes allocates groups to random models.

python examples/own_method.py            # two rows: this method and LEAF
leaflearn reproduce table-methods --also examples/own_method.py --seeds 1      # with all methods
"""

import torch

from leaflearn.benchmark.methods import register
from leaflearn.benchmark.methods.leaf import Leaf
from leaflearn.core.allocation import Hard, one_hot


@register("leaf-careless")
class CarelessLeaf(Leaf):
    """LEAF with a share of random choices that decreases to zero."""

    def rule(self):
        def allocate(scores, sizes, _group_id=None, progress=0.0, generator=None):
            weights = Hard()(scores, sizes)
            is_random = torch.rand(len(scores), generator=generator) < 0.3 * (1 - progress)
            drawn = torch.randint(scores.shape[-1], (len(scores),), generator=generator)
            return torch.where(
                is_random[:, None], one_hot(drawn, scores.shape[-1], weights.dtype), weights
            )

        return allocate


if __name__ == "__main__":
    from pathlib import Path

    from leaflearn.benchmark.experiments.learning_run import LearningRun
    from leaflearn.benchmark.experiments.spec import load_spec

    for run in load_spec("table-methods", "laptop").with_methods(["leaf-careless"]).runs(n_seeds=1):
        if run.method in ("leaf", "leaf-careless"):
            print(run.method, LearningRun(Path("leaflearn-results/runs"), run).run()["errors"])
