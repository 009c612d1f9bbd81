"""Write tables as CSV without spreadsheet formulas, or as Parquet; completely or not at all."""

from __future__ import annotations

import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from leaflearn.persistence.atomic_files import make_folder, write_file

ENDINGS = (".csv", ".parquet")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # spreadsheets run cells that begin like this
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")


def safe_cell(value: Any) -> Any:
    """The value for a CSV file: an apostrophe precedes text that a spreadsheet would run.

    Examples
    --------
    >>> [safe_cell(value) for value in ("=1+1", "-5", "-five", "good", -5.0)]
    ["'=1+1", '-5', "'-five", 'good', -5.0]
    """
    is_text = isinstance(value, str) and value.startswith(FORMULA_STARTS)
    return f"'{value}" if is_text and not _NUMBER.fullmatch(value) else value


def to_csv(frame: Any) -> bytes:
    """A data frame as CSV in UTF-8, with commas; every cell and name is passed to `safe_cell`.

    Examples
    --------
    >>> import pandas
    >>> to_csv(pandas.DataFrame({"site": ["@A", "B"], "length": [-1.5, 2.0]}))
    b"site,length\\n'@A,-1.5\\nB,2.0\\n"
    """
    from pandas.api.types import is_bool_dtype, is_numeric_dtype  # type: ignore[import-untyped]

    safe = frame.copy(deep=False)
    safe.columns = [safe_cell(str(name)) for name in frame.columns]
    for place, name in enumerate(safe.columns):
        column = frame.iloc[:, place]
        if not is_numeric_dtype(column) and not is_bool_dtype(column):
            safe[name] = column.astype(object).map(safe_cell)
    text: str = safe.to_csv(index=False, lineterminator="\n")
    return text.encode()


def write_table(frame: Any, path: Path) -> None:
    """Write a data frame as CSV or Parquet, by the suffix, under a temporary name first.

    Examples
    --------
    >>> import pandas
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     write_table(pandas.DataFrame({"length": [1, 2]}), path)
    ...     path.read_text()
    'length\\n1\\n2\\n'
    """
    write_file(
        path, to_csv(frame) if path.suffix.lower() == ".csv" else _to_parquet(frame, path.name)
    )


def check_place(path: Path, inputs: tuple[Path, ...] = ()) -> None:
    """Raise an error if no table can be written to the path, or if it is one of the inputs.

    Call it before the work, not after it.

    Examples
    --------
    >>> check_place(Path("answers.xlsx"))
    Traceback (most recent call last):
    ...
    ValueError: Cannot write 'answers.xlsx': its name must end in .csv or .parquet.
    """
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"Cannot write '{path}': its name must end in {' or '.join(ENDINGS)}.")
    if path.is_dir():
        raise IsADirectoryError(f"Cannot write '{path}': it is a folder.")
    for given in inputs:
        if path.exists() and given.exists() and os.path.samefile(path, given):
            raise ValueError(
                f"Cannot write '{path}': it is the table that is read; choose another name."
            )
    check_folder(path.parent, path)


def check_folder(folder: Path, path: Path) -> None:
    """Make the folder if it is missing, and check that a file can be made in it.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_folder(Path(folder), Path(folder) / "table.csv")
    """
    try:
        with tempfile.TemporaryFile(dir=make_folder(folder)):
            pass
    except NotADirectoryError:
        raise
    except OSError as error:
        raise OSError(
            f"Cannot write '{path}': {error.strerror or error}; choose another place."
        ) from error


def _to_parquet(frame: Any, name: str) -> bytes:
    try:
        import pyarrow  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        raise ValueError(
            f"To write '{name}', pyarrow is needed: pip install 'leaflearn[parquet]'."
        ) from None
    plain = frame.copy(deep=False)
    for column in [column for column in frame.columns if frame[column].dtype == object]:
        plain[column] = _of_one_type(frame[column])
    buffer = io.BytesIO()
    plain.to_parquet(buffer, index=False, engine="pyarrow")
    return buffer.getvalue()


def _of_one_type(cells: Any) -> Any:
    """Cells of mixed types as text, because a column of Parquet has one type."""
    import pyarrow

    try:
        pyarrow.array(cells, from_pandas=True)
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError):
        return cells.map(str, na_action="ignore")
    return cells
