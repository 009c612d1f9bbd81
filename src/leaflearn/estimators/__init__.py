"""The scikit-learn interface of the method."""

from leaflearn.estimators.classifier import LeafClassifier
from leaflearn.estimators.identification import Identification
from leaflearn.estimators.loading import load
from leaflearn.estimators.ranker import LeafRanker
from leaflearn.estimators.regressor import LeafRegressor
from leaflearn.estimators.splitting import WithinGroupKFold

__all__ = [
    "Identification",
    "LeafClassifier",
    "LeafRanker",
    "LeafRegressor",
    "WithinGroupKFold",
    "load",
]
