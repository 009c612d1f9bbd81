"""Scikit-learn's own checks, for every kind of local model."""

import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from leaflearn import LeafClassifier, LeafRegressor

pytestmark = pytest.mark.filterwarnings("ignore::leaflearn.RecoveryWarning")

GROUPS_HAVE_ONE_MASS = (
    "weights act inside a group, and every group has the same mass: a row repeated as a second"
    " group is not a row of weight 2"
)
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": GROUPS_HAVE_ONE_MASS,
    "check_sample_weight_equivalence_on_sparse_data": GROUPS_HAVE_ONE_MASS,
}
SHORT = {
    "n_contexts": 2,
    "max_epochs": 4,
    "n_init": 1,
}  # the checks fit hundreds of times and ask for no accuracy


@parametrize_with_checks(
    [
        LeafRegressor(**SHORT),
        LeafRegressor(local_model=LinearRegression(), **SHORT),
        LeafRegressor(local_model=HistGradientBoostingRegressor(max_iter=5), **SHORT),
        LeafRegressor(max_epochs=4, n_init=1),
        LeafClassifier(**SHORT),
        LeafClassifier(local_model=LogisticRegression(), **SHORT),
        LeafClassifier(local_model=HistGradientBoostingClassifier(max_iter=5), **SHORT),
        LeafClassifier(max_epochs=4, n_init=1),
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
