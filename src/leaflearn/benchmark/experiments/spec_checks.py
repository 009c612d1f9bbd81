"""Is every key of an experiment's file one that means something, and every name one that is known? Asked before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leaflearn.benchmark.experiments.measures import MEASURES
from leaflearn.benchmark.experiments.parts import check_part

if TYPE_CHECKING:
    from leaflearn.benchmark.experiments.spec import Spec

PARTS = ("dataset", "sampler", "network", "optimizer", "method")
PLAIN = {"n_epochs": int, "slows_down": bool, "measures": list, "snapshots": list}
KEYS = {
    "title",
    "source",
    "show",
    "unit",
    "by",
    "macro",
    "methods",
    "n_seeds",
    "run",
    "setting",
    "method",
    "assumed",
    "remark",
    "recovery",
    "smoke",
    "laptop",
}
SETTING_KEYS = {"name", "run", "methods", "published", "published_deviations", "optional"}
SCALE_KEYS = {"methods", "settings", "n_seeds", "run", "setting", "method", "recovery"}
RECOVERY_KEYS = {"tasks", "rules", "first_seed", "n_seeds"}


def check_spec(spec: Spec) -> None:
    """Refuse keys that mean nothing, parts that are not known, and arguments that they do not take.

    Examples
    --------
    >>> from leaflearn.benchmark.experiments.spec import Spec
    >>> check_spec(Spec("mine", "paper", {"methods": ["leaf"], "epochs": 3}))
    Traceback (most recent call last):
    ...
    ValueError: 'mine' has a key `epochs` that means nothing; keys are assumed, by, laptop, macro, ...
    """
    _check_keys(spec.name, spec.content, KEYS)
    _check_keys(f"{spec.name}, {spec.scale}", spec.at_scale, SCALE_KEYS)
    for setting in spec.content.get("setting", []):
        where = f"{spec.name}, {setting['name']}"
        _check_keys(where, setting, SETTING_KEYS)
        for key in ("published", "published_deviations"):
            _check_keys(f"{where}, {key}", setting.get(key, {}), set(spec.content["methods"]))
            if len({len(numbers) for numbers in setting.get(key, {}).values()}) > 1:
                raise ValueError(
                    f"`{key}` in '{where}' must have as many numbers for one method as for another."
                )
    _check_names(spec)
    for run in spec.runs(1):
        _check_keys(f"{spec.name}, a run", run.settings, {*PARTS, *PLAIN, "seed"})
        for key, kind in PLAIN.items():
            if key in run.settings and not isinstance(run.settings[key], kind):
                raise ValueError(
                    f"`{key}` in '{spec.name}' must be of type {kind.__name__}; it is {run.settings[key]!r}."
                )
        for part in PARTS:
            check_part(part, run.settings.get(part, {}))
        _check_keys(
            f"{spec.name}, measures", dict.fromkeys(run.settings.get("measures", [])), set(MEASURES)
        )


def _check_names(spec: Spec) -> None:
    """Rows and columns that are named elsewhere than where they are listed must be in the lists, or what is said of them is lost."""
    content, at_scale = spec.content, spec.at_scale
    columns = {setting["name"] for setting in content.get("setting", [])}
    rows = {*content["methods"], *at_scale.get("methods", [])}
    for where, layer in ((spec.name, content), (f"{spec.name}, {spec.scale}", at_scale)):
        _check_keys(f"{where}, method", layer.get("method", {}), rows)
        _check_keys(f"{where}, recovery", layer.get("recovery", {}), RECOVERY_KEYS)
    _check_keys(f"{spec.name}, {spec.scale}, setting", at_scale.get("setting", {}), columns)
    _check_keys(
        f"{spec.name}, {spec.scale}, settings", dict.fromkeys(at_scale.get("settings", [])), columns
    )


def _check_keys(where: str, given: dict[str, Any], known: set[str]) -> None:
    for key in given:
        if key not in known:
            raise ValueError(
                f"'{where}' has a key `{key}` that means nothing; keys are {', '.join(sorted(known))}."
            )
