"""Write the two models of this folder, and what they answer, for a new version of the format.

Python write_saved.py 2.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.engines import settings

HERE = Path(__file__).parent
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2)).round(3)
SITE = np.repeat(np.arange(12), 5)
Y = (np.where(SITE % 3 == 0, -1.0, 1.0) * (X @ [2.0, 1.0])).round(3)
NAMED = np.array([f"site {number:02}" for number in SITE])
LABELS = np.where(Y > 0, "good", "bad")


def write(name, leaf, y, groups):
    """Save a fitted estimator, and its answers to the first ten rows."""
    rows, sources = X[:10], groups[:10].tolist()
    leaf.save(HERE / name)
    found = leaf.identify(rows, y[:10], sources)
    answers = {
        "X": rows.tolist(),
        "y": y[:10].tolist(),
        "groups": sources,
        "each": (
            (
                leaf.predict_proba_each(rows)
                if hasattr(leaf, "classes_")
                else leaf.predict_each(rows)
            ).tolist()
        ),
        "predict": leaf.predict(rows, groups=sources).tolist(),
        "context": found.context.tolist(),
        "novelty": found.novelty.tolist(),
        "n_contexts": leaf.n_contexts_,
        "all_groups": leaf.groups_.tolist(),
        "init": leaf.init_,
    }
    (HERE / f"{name}.json").write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")


def main(version):
    """Fit both, small ones: they are kept for ever."""
    settings.TRAINING = replace(settings.TRAINING, hidden_few=(4, 4))
    regressor = LeafRegressor(2, learning_rate=0.03, max_epochs=60, random_state=0).fit(X, Y, SITE)
    write(f"version-{version}-regressor", regressor, Y, SITE)
    classifier = LeafClassifier(2, local_model=LogisticRegression(), random_state=0).fit(
        X, LABELS, NAMED
    )
    write(f"version-{version}-classifier", classifier, LABELS, NAMED)


if __name__ == "__main__":
    main(int(sys.argv[1]))
