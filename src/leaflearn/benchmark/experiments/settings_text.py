"""What was run, told from the settings of the runs themselves, so that a note under a table holds at every scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from leaflearn.benchmark.experiments.method_names import call
from leaflearn.benchmark.experiments.parts import Settings
from leaflearn.benchmark.experiments.spec import Run

NOUNS = {"hidden": "hidden layers of", "channels": "convolutions of"}


def tell_settings(runs: Iterable[Run]) -> list[str]:
    """A sentence for each way in which the runs were done; for methods that were run otherwise, what is different.

    Examples
    --------
    >>> shared = {"n_epochs": 3, "sampler": {"group_size": 2, "groups_per_step": 8}, "network": {"name": "mlp", "hidden": [4, 4]}}
    >>> shared |= {"optimizer": {"name": "sgd", "learning_rate": 0.1}, "dataset": {"name": "functions"}}
    >>> tell_settings([Run("leaf", "", shared), Run("leaf-em", "", shared), Run("maml", "", {**shared, "n_epochs": 9})])
    ['Run: 3 epochs; steps of 8 groups of 2; hidden layers of 4, 4; sgd, learning rate 0.1. MAML: 9 epochs.']
    """
    settings: dict[str, dict[str, list[str]]] = {}  # of each column, how each of its rows was run
    for run in runs:
        settings.setdefault(run.setting, {})[run.method] = _pieces(run.settings)
    columns: dict[str, list[str]] = {}  # of each sentence, the columns that it holds for
    for setting, methods in settings.items():
        columns.setdefault(_sentence(methods), []).append(setting)
    columns.pop("", None)  # runs of which there is nothing to tell
    if len(columns) == 1:
        return [f"Run: {sentence}" for sentence in columns]
    return [f"Run, {' / '.join(names)}: {sentence}" for sentence, names in columns.items()]


def _sentence(methods: dict[str, list[str]]) -> str:
    usual = list(Counter(tuple(pieces) for pieces in methods.values()).most_common(1)[0][0])
    others: dict[str, list[str]] = {}
    for method, pieces in methods.items():
        different = "; ".join(piece for piece in pieces if piece not in usual)
        if different:
            others.setdefault(different, []).append(call(method))
    return (
        "; ".join(usual)
        + "." * bool(usual)
        + "".join(f" {', '.join(names)}: {different}." for different, names in others.items())
    )


def _pieces(settings: Settings) -> list[str]:
    """What decides how long and with what a run learns; what a spec leaves to the defaults is not told."""
    sampler, network, optimizer = (
        settings.get(part, {}) for part in ("sampler", "network", "optimizer")
    )
    pieces = [_count(settings["n_epochs"], "epoch")] if "n_epochs" in settings else []
    if "groups_per_step" in sampler and "group_size" in sampler:
        pieces.append(
            f"steps of {_count(sampler['groups_per_step'], 'group')} of {sampler['group_size']}"
        )
    if not sampler.get("redraw", True):
        pieces.append("groups drawn once")
    pieces += [
        f"{noun} {', '.join(map(str, network[key]))}"
        for key, noun in NOUNS.items()
        if key in network
    ]
    if "height" in settings["dataset"]:
        pieces.append(f"pictures {settings['dataset']['height']} pixels high")
    if "learning_rate" in optimizer:
        falls = ", falling to 0 in a straight line" if settings.get("slows_down") else ""
        pieces.append(f"{optimizer['name']}, learning rate {optimizer['learning_rate']:g}{falls}")
    return pieces


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
