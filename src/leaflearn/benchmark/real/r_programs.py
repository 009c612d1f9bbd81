"""Programs of R: the files `*.R` beside this one, run on a table in a temporary folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.benchmark.real.contract import Floats, Ints, MissingProgramError
from leaflearn.benchmark.real.settings import REAL

NO_PACKAGE = 3  # the exit code of a program whose R package is not installed
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def run_r(
    package: str, X: Floats, y: NDArray[Any], group: Ints, *, is_binary: bool, slopes: Ints
) -> dict[str, Any]:
    """Fit rows with the program of an R package.

    Parameters
    ----------
    package
        The name of the package, and of its program.
    X, y, group
        The rows.
    is_binary
        The targets are the classes 0 and 1.
    slopes
        Columns with random slopes.

    Returns
    -------
    dict
        What the program writes; the comment at its top says what that is.

    Raises
    ------
    MissingProgramError
        If R or the package is not installed.
    RuntimeError
        If the program fails, or takes too long.

    Examples
    --------
    >>> run_r.__name__
    'run_r'
    """
    program = shutil.which("Rscript")
    if program is None:
        raise MissingProgramError("Rscript is not installed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("json.R", f"{package}.R"):
            source = files("leaflearn.benchmark.real").joinpath(file)
            (folder / file).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
        header = ",".join(["y", "g", *(f"x{j + 1}" for j in range(X.shape[1]))])
        table = np.column_stack([y, group, X])
        np.savetxt(folder / "table.csv", table, "%.10g", ",", header=header, comments="")
        kind = "binary" if is_binary else "values"
        arguments = [f"{package}.R", kind, ",".join(str(j + 1) for j in slopes)]
        try:
            done = subprocess.run(
                [program, "--vanilla", *arguments],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=REAL.r_timeout,
                check=False,
                env=os.environ | ONE_THREAD,
            )
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"R took longer than {REAL.r_timeout:g} seconds") from None
        if done.returncode == NO_PACKAGE:
            raise MissingProgramError(f"the R package {package} is not installed")
        result = folder / "result.json"
        if done.returncode or not result.exists():
            raise RuntimeError(f"R failed: {done.stderr.strip()[-500:]}")
        return dict(json.loads(result.read_text(encoding="utf-8")))
