"""The default way to fit networks: find the contexts, then learn them.

    start    contexts read off the conflict itself, before anything is trained (`conflict/`); where they can be trusted, models learn them
    search   else several starts side by side, annealed; the one that explains the groups best is kept
    refresh  and new local models learn from its allocation

While annealing, every model learns a little from every group, and a network that has learned wrong answers by heart does not forget them:
its training error falls to nothing, its test error stays high. New models never see the wrong answers.

Estimators come through here, and with them the demo and the recovery suite, so a better default is made in one place. The stream does not:
`methods/leaf_annealed.py` takes steps of its own, and shares with this only how long a start is held.
"""

from leaflearn.engines.known_contexts import fine_tune_networks, refit_quickly
from leaflearn.engines.outcome import CONVERGED, Fit
from leaflearn.engines.recipe import GIVEN, OPTIMIZERS, MakeOptimizer, Recipe, resolve_rule
from leaflearn.engines.search_and_refresh import fit_networks
from leaflearn.engines.training_run import seeded
from leaflearn.messages import RecoveryWarning

__all__ = [
    "CONVERGED",
    "GIVEN",
    "OPTIMIZERS",
    "Fit",
    "MakeOptimizer",
    "Recipe",
    "RecoveryWarning",
    "fine_tune_networks",
    "fit_networks",
    "refit_quickly",
    "resolve_rule",
    "seeded",
]
