"""Of several starts the best is kept, whole."""

import numpy as np
import pytest
import torch

from opposite_lines import fit, make_data


def test_the_best_start_is_kept():
    found = fit(n_init=6, refresh=False, allocation="hard")
    errors = [start["error"] for start in found.restarts]
    assert len(errors) == 6
    assert (
        [start["kept"] for start in found.restarts].index(True)
        == found.best_restart
        == int(np.argmin(errors))
    )
    assert found.error == pytest.approx(min(errors))
    assert found.error == pytest.approx(float((found.scores.min(1) / 5).mean()))


def test_kept_modules_are_the_ones_that_were_scored():
    data = make_data()
    found = fit(data, n_init=3)
    with torch.no_grad():
        losses = torch.stack(
            [(module(data.x) - data.y).square().mean(1) for module in found.modules], 1
        )  # (N, K)
    sums = torch.zeros(12, 2).index_add_(0, data.group, losses)
    np.testing.assert_allclose(sums.numpy(), found.scores, rtol=1e-4, atol=1e-6)
