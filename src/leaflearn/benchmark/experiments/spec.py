"""An experiment: a TOML file with the paper's settings and numbers, and its runs.

    run       what all runs share: dataset, sampler, network, optimizer, n_epochs ...
    setting   the columns of a table: each changes a part of the run and has the published numbers;
              an `optional` one is skipped if the files of its data set are missing
    methods   the rows; [method.NAME] holds what is different for one of them
    smoke, laptop
              the same keys again, for a smaller scale than the paper's
    assumed   what the paper leaves open

A part of a run that is given with a `name` replaces the whole part; otherwise only its given keys
change. Every key is checked against the signature of the function that receives it, so a
misspelled key is refused before anything runs.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from leaflearn.benchmark.datasets import DATASETS
from leaflearn.benchmark.datasets.store import missing
from leaflearn.benchmark.experiments.measures import MEASURES
from leaflearn.benchmark.experiments.parts import Settings, check_part
from leaflearn.benchmark.methods import METHODS

SCALES = ("smoke", "laptop", "paper")
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


@dataclass(frozen=True)
class Run:
    """One run: everything that determines its result.

    Examples
    --------
    >>> one, other = (Run("leaf", "", {"seed": seed}) for seed in (0, 1))
    >>> one.key == Run("leaf", "column", {"seed": 0}).key, one.key == other.key
    (True, False)
    """

    method: str  # the row of the table
    setting: str  # and the column
    settings: Settings

    @property
    def seed(self) -> int:
        """The seed of all random draws."""
        return int(self.settings["seed"])

    @property
    def key(self) -> str:
        """The hash of the settings; runs with equal settings are the same run in every table."""
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Spec:
    """An experiment at one scale.

    Examples
    --------
    >>> load_spec("fig-regression", "smoke").methods[:2]
    ('erm', 'maml')
    """

    name: str
    scale: str
    content: dict[str, Any] = field(repr=False)

    def with_methods(self, names: Iterable[str]) -> Spec:
        """The same with more rows: those of the methods that support the data of the experiment."""
        kinds = {"regression" if self.content.get("unit") == "RMSE" else "classification"}
        more = [
            name for name in names if METHODS[name].claims >= kinds and name not in self.methods
        ]
        at_scale = {**self.at_scale, "methods": [*self.methods, *more]}
        return (
            Spec(self.name, self.scale, {**self.content, self.scale: at_scale})
            if "recovery" not in self.content
            else self
        )

    def only(self, methods: Iterable[str], settings: Iterable[str]) -> Spec:
        """The same with only these rows and columns; no names mean all."""
        methods, settings, columns = (
            set(methods),
            set(settings),
            [setting["name"] for setting in self.settings],
        )
        at_scale = {
            **self.at_scale,
            "methods": [name for name in self.methods if name in methods or not methods],
            "settings": [name for name in columns if name in settings or not settings],
        }
        return Spec(self.name, self.scale, {**self.content, self.scale: at_scale})

    @property
    def at_scale(self) -> dict[str, Any]:
        """The keys that differ at this scale."""
        return dict(self.content.get(self.scale, {}))

    @property
    def methods(self) -> tuple[str, ...]:
        """The rows of the table."""
        return tuple(self.at_scale.get("methods", self.content["methods"]))

    @property
    def settings(self) -> list[dict[str, Any]]:
        """The columns, each with its name, its changes to the run and the published numbers."""
        every = self.content.get("setting", [{"name": ""}])
        wanted = self.at_scale.get("settings", [setting["name"] for setting in every])
        return [setting for setting in every if setting["name"] in wanted]

    def runs(self, n_seeds: int | None = None) -> Iterator[Run]:
        """All runs; seeds are the outer loop, so that an interruption affects all rows alike."""
        if "recovery" in self.content:  # its runs are those of the recovery suite
            return
        n_seeds = n_seeds or self.at_scale.get("n_seeds", self.content.get("n_seeds", 1))
        for seed in range(n_seeds):
            for setting in self.settings:
                for method in setting.get("methods", self.methods):
                    if method in self.methods:
                        yield Run(
                            method, setting["name"], self._resolve(setting, method) | {"seed": seed}
                        )

    def stands_in_for(self, run: Run) -> str:
        """The experiment's own data set if the run uses a stand-in for it; else empty."""
        setting = next(
            setting
            for setting in self.content.get("setting", [{"name": ""}])
            if setting["name"] == run.setting
        )
        own = str(
            Spec(self.name, "paper", self.content)._resolve(setting, run.method)["dataset"]["name"]
        )
        return own if own != run.settings["dataset"]["name"] else ""

    def lacks_data(self, run: Run) -> bool:
        """Whether the run is skipped: it is optional, and the files of its data set are missing."""
        is_optional = any(
            setting["name"] == run.setting and setting.get("optional") for setting in self.settings
        )
        files = DATASETS[run.settings["dataset"]["name"]].files
        return is_optional and files is not None and bool(missing(files))

    def _resolve(self, setting: dict[str, Any], method: str) -> Settings:
        settings: Settings = {"method": {"name": method}}
        at_scale = self.at_scale.get("setting", {}).get(setting["name"], {})
        for content, of_setting in (
            (self.content, setting.get("run", {})),
            (self.at_scale, at_scale),
        ):
            for layer in (
                content.get("run", {}),
                of_setting,
                content.get("method", {}).get(method, {}),
            ):
                settings = _change(settings, layer)
        return settings


def spec_names() -> list[str]:
    """The names of all experiments.

    Examples
    --------
    >>> "fig-regression" in spec_names()
    True
    """
    return sorted(
        file.name.removesuffix(".toml")
        for file in _folder().iterdir()
        if file.name.endswith(".toml")
    )


def load_spec(name: str, scale: str = "laptop") -> Spec:
    """Read an experiment and check all its keys.

    Examples
    --------
    >>> load_spec("table9")
    Traceback (most recent call last):
    ...
    ValueError: There is no experiment called 'table9'; there are ...
    """
    if name not in spec_names():
        raise ValueError(
            f"There is no experiment called '{name}'; there are {', '.join(spec_names())}."
        )
    if scale not in SCALES:
        raise ValueError(f"There is no scale called '{scale}'; there are {', '.join(SCALES)}.")
    spec = Spec(
        name, scale, tomllib.loads((_folder() / f"{name}.toml").read_text(encoding="utf-8"))
    )
    check_spec(spec)
    return spec


def check_spec(spec: Spec) -> None:
    """Refuse unknown keys, unknown parts, and arguments that a part does not take.

    Examples
    --------
    >>> check_spec(Spec("mine", "paper", {"methods": ["leaf"], "epochs": 3}))
    Traceback (most recent call last):
    ...
    ValueError: 'mine' has an unknown key `epochs`; known keys are assumed, by, laptop, macro, ...
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
                    f"`{key}` in '{where}' must have equally many numbers for all methods."
                )
    _check_names(spec)
    for run in spec.runs(1):
        _check_keys(f"{spec.name}, a run", run.settings, {*PARTS, *PLAIN, "seed"})
        for key, kind in PLAIN.items():
            if key in run.settings and not isinstance(run.settings[key], kind):
                raise ValueError(
                    f"`{key}` in '{spec.name}' must be of type {kind.__name__}; "
                    f"it is {run.settings[key]!r}."
                )
        for part in PARTS:
            check_part(part, run.settings.get(part, {}))
        _check_keys(
            f"{spec.name}, measures", dict.fromkeys(run.settings.get("measures", [])), set(MEASURES)
        )


def _check_names(spec: Spec) -> None:
    """Refuse keys for rows and columns that are not listed; they would have no effect."""
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
                f"'{where}' has an unknown key `{key}`; known keys are {', '.join(sorted(known))}."
            )


def _change(settings: Settings, layer: Settings) -> Settings:
    changed = dict(settings)
    for key, value in layer.items():
        is_part = key in PARTS and "name" not in value
        changed[key] = {**settings.get(key, {}), **value} if is_part else value
    return changed


def _folder() -> Any:
    return files("leaflearn.benchmark.experiments") / "specs"
