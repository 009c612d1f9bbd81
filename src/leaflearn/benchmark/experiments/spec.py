"""What an experiment is: a TOML file with the paper's settings and numbers, and from it the runs that it takes.

    run       what all runs share: dataset, sampler, network, optimizer, n_epochs ...
    setting   columns of a table: each changes something of the run, and has the published numbers; one that is `optional` is left out
              where the files of its data set are not here
    methods   its rows; [method.NAME] says what is different for one of them
    smoke, laptop
              the same keys once more, for less than the paper's scale
    assumed   what the paper leaves open

A part of a run that is given with a `name` replaces the part; else its keys are changed one by one. Every key is held against the signature
of the function that it reaches, so a misspelt one is refused before anything runs.
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
from leaflearn.benchmark.experiments.parts import Settings
from leaflearn.benchmark.experiments.spec_checks import PARTS, check_spec
from leaflearn.benchmark.methods import METHODS

SCALES = ("smoke", "laptop", "paper")


@dataclass(frozen=True)
class Run:
    """One run: all that decides what comes out of it.

    Examples
    --------
    >>> one, other = (Run("leaf", "", {"seed": seed}) for seed in (0, 1))
    >>> one.key == Run("leaf", "elsewhere", {"seed": 0}).key, one.key == other.key
    (True, False)
    """

    method: str  # the row of the table
    setting: str  # and the column
    settings: Settings

    @property
    def seed(self) -> int:
        """Of everything that is drawn."""
        return int(self.settings["seed"])

    @property
    def key(self) -> str:
        """The hash of the settings: runs with the same settings are one run, in whatever table they stand."""
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
        """The same with more rows: those of these methods that claim every data set of the experiment."""
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
        """The same with these rows and columns alone; all of them where none are named."""
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
        """What is different at this scale."""
        return dict(self.content.get(self.scale, {}))

    @property
    def methods(self) -> tuple[str, ...]:
        """The rows."""
        return tuple(self.at_scale.get("methods", self.content["methods"]))

    @property
    def settings(self) -> list[dict[str, Any]]:
        """The columns, each with its name, its part of the run and the published numbers."""
        every = self.content.get("setting", [{"name": ""}])
        wanted = self.at_scale.get("settings", [setting["name"] for setting in every])
        return [setting for setting in every if setting["name"] in wanted]

    def runs(self, n_seeds: int | None = None) -> Iterator[Run]:
        """All runs, seeds in the outer loop, so that after an interruption everything has come as far."""
        if "recovery" in self.content:  # these are runs of the recovery suite
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
        """The experiment's own data set where the run is on another, as at the smallest scale; else nothing."""
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
        """Whether the run is left out: it can be, and the files of its data set are not here."""
        is_optional = any(
            setting["name"] == run.setting and setting.get("optional") for setting in self.settings
        )
        files = DATASETS[run.settings["dataset"]["name"]].files
        return is_optional and files is not None and bool(missing(files))

    def _setting_at_scale(self, name: str) -> Settings:
        return dict(self.at_scale.get("setting", {}).get(name, {}))

    def _resolve(self, setting: dict[str, Any], method: str) -> Settings:
        settings: Settings = {"method": {"name": method}}
        for content, of_setting in (
            (self.content, setting.get("run", {})),
            (self.at_scale, self._setting_at_scale(setting["name"])),
        ):
            for layer in (
                content.get("run", {}),
                of_setting,
                content.get("method", {}).get(method, {}),
            ):
                settings = _change(settings, layer)
        return settings


def spec_names() -> list[str]:
    """Every experiment there is.

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
    """Read an experiment and check every key of it.

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


def _change(settings: Settings, layer: Settings) -> Settings:
    changed = dict(settings)
    for key, value in layer.items():
        is_part = key in PARTS and "name" not in value
        changed[key] = {**settings.get(key, {}), **value} if is_part else value
    return changed


def _folder() -> Any:
    return files("leaflearn.benchmark.experiments") / "specs"
