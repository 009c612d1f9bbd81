"""Learning curves arrive in TensorBoard and MLflow, one point for each epoch."""

import sys

import mlflow
import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from leaflearn import LeafRegressor
from leaflearn.estimators.tracking import MLflowCallback, TensorBoardCallback

GROUPS = np.repeat(np.arange(20), 4)
X = np.random.default_rng(0).uniform(-1, 1, (80, 1))
Y = np.where(GROUPS % 2, 1.0, -1.0) * X[:, 0]


def fit(callback):
    return LeafRegressor(n_contexts=2, max_epochs=5, callbacks=[callback], random_state=0).fit(
        X, Y, GROUPS
    )


def test_tensorboard_shows_each_epoch_of_each_stage(tmp_path):
    fit(TensorBoardCallback(str(tmp_path)))
    events = EventAccumulator(str(tmp_path)).Reload()
    names = events.Tags()["scalars"]
    stages = {name.split("/")[0] for name in names}
    assert stages
    for stage in stages:
        assert {f"{stage}/loss", f"{stage}/usage_0", f"{stage}/usage_1"} <= set(names)
        points = events.Scalars(f"{stage}/loss")
        assert [point.step for point in points] == list(range(1, len(points) + 1))


def test_mlflow_gets_the_same_points(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # no database for a test
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())  # a folder that mlflow makes itself
    with mlflow.start_run() as run:
        fit(MLflowCallback())
    client = mlflow.MlflowClient()
    names = client.get_run(run.info.run_id).data.metrics
    loss = next(name for name in names if name.endswith("/loss"))
    history = client.get_metric_history(run.info.run_id, loss)
    assert [point.step for point in history] == list(range(1, len(history) + 1))
    assert all(np.isfinite(point.value) for point in history)


@pytest.mark.parametrize(
    ("callback", "module", "name"),
    [
        (
            lambda: TensorBoardCallback("x"),
            "torch.utils.tensorboard",
            "TensorBoardCallback needs tensorboard",
        ),
        (MLflowCallback, "mlflow", "MLflowCallback needs mlflow"),
    ],
)
def test_a_missing_package_is_one_sentence(monkeypatch, callback, module, name):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        ImportError, match=rf"^{name}; install it with `pip install leaflearn\[tracking\]`\.$"
    ):
        callback()
