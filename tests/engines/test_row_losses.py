"""What a row costs under a model."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from leaflearn.engines.row_losses import ClassRowLoss, Fitted


def test_columns_are_aligned_by_class():
    x, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([3, 3, 1, 1])
    model = LogisticRegression().fit(x, y)
    p = model.predict_proba(x)
    losses = ClassRowLoss(n_classes=4)(Fitted(model, 4), x, y)
    expected = np.array([p[0, 1], p[1, 1], p[2, 0], p[3, 0]])
    np.testing.assert_allclose(losses, -np.log((4 * expected + 0.25) / 5))
