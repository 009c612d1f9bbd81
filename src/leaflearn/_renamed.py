"""Former names of modules and of what is in them, which keep working with a warning.

`import leaflearn` installs a finder that resolves the module paths of version 0.1.0. Model folders
written by that version name classes by these paths, too.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

REMOVED_IN = "0.4"

# Modules that documentation of version 0.1.0 imports from, and where they are now.
MODULES: dict[str, str] = {
    "leaflearn.bounds": "leaflearn.diagnostics.bounds",
    "leaflearn.conflict_rank": "leaflearn.benchmark.conflict_rank",
    "leaflearn.evaluation": "leaflearn.benchmark.evaluation",
    "leaflearn.networks": "leaflearn.engines.networks",
    "leaflearn.recipe": "leaflearn.engines.recipe",
    "leaflearn.writing": "leaflearn.persistence.atomic_files",
    "leaflearn.core.row_losses": "leaflearn.engines.refit_task",
    "leaflearn.core.robust_losses": "leaflearn.core.losses",
    "leaflearn.core.refitting": "leaflearn.engines.refit",
    "leaflearn.data": "leaflearn.benchmark.datasets",
    "leaflearn.data.sampling": "leaflearn.benchmark.datasets.sampling",
    "leaflearn.data.streaming": "leaflearn.benchmark.datasets.streaming",
    "leaflearn.data.domains": "leaflearn.benchmark.datasets.domains",
    "leaflearn.data.sources": "leaflearn.benchmark.datasets.sources",
    "leaflearn.data.grouping": "leaflearn.core.grouped_data",
    "leaflearn.datasets": "leaflearn.benchmark.datasets",
    "leaflearn.datasets.registry": "leaflearn.benchmark.datasets.registry",
    "leaflearn.datasets.store": "leaflearn.benchmark.datasets.store",
    "leaflearn.methods": "leaflearn.benchmark.methods",
    "leaflearn.methods.contract": "leaflearn.benchmark.methods.contract",
    "leaflearn.methods.erm": "leaflearn.benchmark.methods.erm",
    "leaflearn.methods.leaf": "leaflearn.benchmark.methods.leaf",
    "leaflearn.methods.registry": "leaflearn.benchmark.methods.registry",
    "leaflearn.experiments": "leaflearn.benchmark.experiments",
    "leaflearn.experiments.recovery_tasks": "leaflearn.benchmark.recovery.tasks",
    "leaflearn.estimators.table_model": "leaflearn.tabular.table_model",
    "leaflearn.estimators.telling_columns": "leaflearn.tabular.informative_columns",
}

# Names that changed inside these modules.
NAMES: dict[str, str] = {
    "find_telling_columns": "find_informative_columns",
    "Told": "OracleInfo",
}


class _FormerModule(ModuleType):
    """Stands under a former path and hands out what is in the present module."""

    def __init__(self, name: str, present: ModuleType) -> None:
        super().__init__(name, present.__doc__)
        self._present = present
        self.__path__ = list(getattr(present, "__path__", []))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._present, NAMES.get(name, name))


class _FormerModules(MetaPathFinder, Loader):
    """Finds modules by their former paths."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A spec for former paths, and None for all others."""
        return ModuleSpec(fullname, self) if fullname in MODULES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The present module under its former path, with a warning."""
        present = MODULES[spec.name]
        warn_renamed(spec.name, present)
        return _FormerModule(spec.name, import_module(present))

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to run."""


def warn_renamed(old: str, new: str) -> None:
    """Give a FutureWarning that names the present name.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_renamed("memory_", "replay_buffer_")
    >>> print(caught[0].message)
    memory_ is renamed replay_buffer_ and will be removed in version 0.4; use replay_buffer_.
    """
    warnings.warn(
        f"{old} is renamed {new} and will be removed in version {REMOVED_IN}; use {new}.",
        FutureWarning,
        stacklevel=3,
    )


def install() -> None:
    """Let former module paths be imported."""
    if not any(isinstance(finder, _FormerModules) for finder in sys.meta_path):
        sys.meta_path.append(_FormerModules())
