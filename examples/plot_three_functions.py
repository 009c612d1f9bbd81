"""Three functions in one cloud of points: the average of a pooled model, and the contexts.

    python examples/plot_three_functions.py [three_functions.png]

This is the figure of the README.
"""

import sys
from pathlib import Path

import numpy as np
import torch

from leaflearn import LeafRegressor
from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.datasets.sampling import sample_groups
from leaflearn.benchmark.evaluation import match_contexts
from leaflearn.persistence.atomic_files import write_file
from leaflearn.plot.figures import Panel, plot_curves
from leaflearn.report.page import to_png

torch.set_num_threads(1)  # several threads slow down networks as small as these

functions = DATASETS["functions"]()
# 250 groups of two points; the truth is for the figure only.
sample, truth = sample_groups(functions, random_state=0)
grid = np.linspace(-2, 2, 401)[:, None]

erm = LeafRegressor(n_contexts=1, random_state=0).fit(sample.x, sample.y, groups=sample.groups)
leaf = LeafRegressor(n_contexts=3, random_state=0).fit(sample.x, sample.y, groups=sample.groups)

# Match contexts and functions, so that both have the same colours.
domains = match_contexts(leaf.contexts_, truth.domain, leaf.n_contexts_)
panels = [
    Panel("Pooled model: the average", erm.predict_each(grid), [-1]),
    Panel(
        "leaflearn: the three functions",
        leaf.predict_each(grid),
        domains,
        domains[leaf.contexts_][sample.groups],
    ),
]
figure = plot_curves(grid[:, 0], (sample.x[:, 0], sample.y), panels, functions.names)
output = Path(sys.argv[1] if len(sys.argv) > 1 else "three_functions.png")
write_file(output, to_png(figure))
agreement = np.mean(domains[leaf.contexts_] == truth.domain)
print(f"{agreement:.1%} of the groups are in the right context; see {output}")
