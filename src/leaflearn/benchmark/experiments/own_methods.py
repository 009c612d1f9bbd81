"""Methods from a user's own file; they become rows of every table whose data they support."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from leaflearn.benchmark.methods import METHODS


def register_from(path: Path) -> list[str]:
    """Run a Python file that registers methods, once; return the names that it adds.

    Examples
    --------
    >>> import tempfile
    >>> imports = "from leaflearn.benchmark.methods import register, erm"
    >>> code = f"{imports}\\n@register('mine')\\nclass Mine(erm.ERM): pass"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.py"
    ...     _ = path.write_text(code)
    ...     register_from(path), register_from(path)
    (['mine'], ['mine'])
    >>> METHODS.pop("mine").name
    'mine'
    """
    if not path.is_file():
        raise FileNotFoundError(2, "There is no such file", str(path))
    name = f"leaflearn_own_{abs(hash(path.resolve()))}"
    if name not in sys.modules:
        before = set(METHODS)
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ValueError(f"'{path}' is not a Python file; give one that registers a method.")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        own = [method for method in METHODS if method not in before]
        module.ADDED_METHODS = own  # type: ignore[attr-defined]
    added: list[str] = sys.modules[name].ADDED_METHODS
    if not added:
        raise ValueError(
            f"'{path}' registers no method; "
            "decorate a class with `@register(NAME)` from leaflearn.benchmark.methods."
        )
    return added
