"""Three functions in one cloud of points: the average of one model beside the functions that came apart.

    python examples/plot_three_functions.py [three_functions.png]

This is the picture of the README.
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

torch.set_num_threads(1)  # networks this small lose more by talking between threads than they win

functions = DATASETS["functions"]()
sample, truth = sample_groups(
    functions, random_state=0
)  # 250 groups of two points; the truth is for drawing only
grid = np.linspace(-2, 2, 401)[:, None]

erm = LeafRegressor(n_contexts=1, random_state=0).fit(sample.x, sample.y, groups=sample.groups)
leaf = LeafRegressor(n_contexts=3, random_state=0).fit(sample.x, sample.y, groups=sample.groups)

domains = match_contexts(
    leaf.contexts_, truth.domain, leaf.n_contexts_
)  # only so that both have the same colours
panels = [
    Panel("One model: an average that nobody gave", erm.predict_each(grid), [-1]),
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
print(
    f"{np.mean(domains[leaf.contexts_] == truth.domain):.1%} of the groups are in the right context; see {output}"
)
