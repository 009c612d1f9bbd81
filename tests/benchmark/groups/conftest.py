"""Records of runs on simulated groups."""

import pytest


@pytest.fixture
def make_record():
    """Makes a record of a run with so many contexts found; arguments replace its fields."""

    def make(scenario, n_found=1, n_true=1, method="leaflearn", seed=0, ari=1.0, **more):
        score = {"n_found": n_found, "n_true": n_true, "ari": ari, "n_groups": 10, "n_right": 9}
        score |= {"n_sure": 8, "n_sure_wrong": 1, "bins": [[2, 1.2, 1], [8, 7.8, 8]]}
        record = {"scenario": scenario, "method": method, "seed": seed, "outcome": "ok"}
        record |= {"reason": None, "contexts": score, "best_ari": 0.9, "seconds": 2.0}
        return record | {"coverage": {"known": [90, 100], "new": [45, 50]}} | more

    return make
