"""A fitted estimator leaves the process: `save` for leaflearn itself, `export_onnx` for everybody else."""

from __future__ import annotations

from pathlib import Path

from leaflearn.estimators.onnx_export import export_onnx
from leaflearn.estimators.saving import describe_estimator
from leaflearn.persistence import write_model


class SharedModels:
    """How `LeafRegressor` and `LeafClassifier` are kept and passed on."""

    def save(self, folder: str | Path) -> None:
        """Save the fitted estimator as a folder that is safe to share; `leaflearn.load` reads it again.

        The folder holds JSON, safetensors and, for scikit-learn local models, skops; never a pickle. It is written whole or not at all. An
        older model there is replaced, anything else is refused. The rows in `replay_buffer_` are saved too; set it to None to leave them out.

        Parameters
        ----------
        folder : str or path
            Where to.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np
        >>> from leaflearn import LeafRegressor
        >>> X, groups = np.arange(8.0)[:, None], np.repeat(np.arange(4), 2)
        >>> leaf = LeafRegressor(1, max_epochs=2).fit(X, X[:, 0], groups)
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     leaf.save(f"{parent}/model")
        ...     sorted(os.listdir(f"{parent}/model"))
        ['fitted.safetensors', 'model.json', 'weights.safetensors']
        """
        section, parts = describe_estimator(self)
        write_model(folder, {"estimator": section}, parts)

    def export_onnx(self, folder: str | Path) -> None:
        """Write the local models, which have to be networks, as ONNX files: `context_0.onnx`, ... and `all.onnx`.

        Each takes `X`, any number of rows as `predict` takes them: in double precision for the default network, whose scaling is in the
        file, and in single precision for modules of a factory. The answer is that of `predict` in the context, of shape (n,) or
        (n, n_outputs), or, for a classifier, that of `predict_proba`, (n, n_classes); `all.onnx` answers like `predict_each` or
        `predict_proba_each`, (n, n_contexts_, ...). The classes are in the metadata of each file. Needs `pip install 'leaflearn[onnx]'`.

        Parameters
        ----------
        folder : str or path
            Where to; an older export there is replaced, anything else is refused.
        """
        export_onnx(self, folder)
