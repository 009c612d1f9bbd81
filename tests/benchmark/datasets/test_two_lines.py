"""The cross of the paper's last appendix: only pairs of points distinguish it from a V."""

import numpy as np

from leaflearn.benchmark.datasets.sampling import sample_groups
from leaflearn.benchmark.datasets.two_lines import two_lines


def summed_error(group_size):
    """The best of V and its mirror image, summed over groups."""
    (x, y, groups), _ = sample_groups(
        two_lines(), n_groups=500, group_size=group_size, random_state=0
    )
    line, other = x[:, 0], 1 - x[:, 0]
    # (N, 2)
    losses = np.stack(
        [(np.maximum(line, other) - y) ** 2, (np.minimum(line, other) - y) ** 2], axis=1
    )
    return np.add.reduceat(losses, np.flatnonzero(np.diff(groups, prepend=-1))).min(1).sum()


def test_only_pairs_of_points_distinguish_the_lines_from_a_v():
    assert summed_error(group_size=1) < 1e-20
    assert summed_error(group_size=2) > 1


def test_the_targets_are_the_lines():
    rising, falling = two_lines()
    assert np.array_equal(rising.test.y, rising.test.x[:, 0])
    assert np.array_equal(falling.test.y, 1 - falling.test.x[:, 0])
