"""The smooth surrogate on contexts that differ in few places."""

import numpy as np

from leaflearn.benchmark.evaluation import allocation_agreement
from leaflearn.benchmark.recovery.tasks import TASKS
from leaflearn.initialization.surrogate import SmoothSurrogate


def test_contexts_that_differ_in_few_places_are_not_mistaken_for_outlier_rows():
    task = TASKS["small-region"]
    right = []
    for seed in range(3):
        sample, truth = task.sample(seed)
        flat, bump = (domain.test for domain in task.make(seed))
        region = flat.x[np.abs(flat.y - bump.y) > 0.3]
        is_inside = (sample.x[:, 0] > region.min()) & (sample.x[:, 0] < region.max())
        informative = np.unique(sample.groups[is_inside])
        surrogate = SmoothSurrogate.of(sample.x, sample.y[:, None], sample.groups, 0, seed)
        contexts = surrogate.find(2).contexts[informative]
        right.append(allocation_agreement(contexts, truth.domain[informative]))
    assert np.median(right) > 0.98
