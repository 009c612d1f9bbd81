"""Tables from files (CSV, Parquet) and from other libraries, as data frames of pandas.

Rows are counted from 1, without the header: row 1 is the first row of data.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from leaflearn.messages import TableWarning, UnnamedColumns, list_names
from leaflearn.tabular.text_encoding import decode, unpack

DELIMITERS = (",", ";", "\t", "|")
SAMPLE = 100_000  # characters from which the delimiter and the decimal sign are determined
PARQUET = b"PAR1"
TABLE_TYPES = (
    "a data frame of pandas or polars, a table of pyarrow, a Hugging Face data set, or a mapping "
    "from names to columns"
)
_DELIMITER_LINE = re.compile(r"sep=(.)\r?\n")  # the first line that some versions of Excel write
_UNNAMED = re.compile(r"(Unnamed: \d+)?")  # what pandas calls a column without a name
_FIELDS = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
_OPEN_QUOTE = re.compile(r"EOF inside string starting at row (\d+)")


def read_table(path: str | Path, as_text: bool = False) -> Any:
    """Read a table from a file.

    Parameters
    ----------
    path : str or path
        CSV with comma, semicolon, tab or bar between the columns, in UTF-8, UTF-16 or
        Windows-1252, as it is or compressed by gzip, bzip2, xz or zip; or Parquet. The format is
        recognized by the content of the file, not by its name.
    as_text : bool, default=False
        Leave the cells of a CSV file as they are written, so that they can be written again.

    Returns
    -------
    pandas.DataFrame
        At least one row and one column; the names are distinct strings.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     _ = path.write_text("site;length\\nA;1,5\\nB;2,5\\n")
    ...     read_table(path)
      site  length
    0    A     1.5
    1    B     2.5
    """
    path = Path(path)
    content = unpack(_read_bytes(path), path.name)
    if not content.strip():
        raise ValueError(f"'{path.name}' is empty.")
    frame = (
        _read_parquet(content, path.name)
        if content.startswith(PARQUET)
        else _read_csv(content, path.name, as_text)
    )
    frame = _drop_unnamed(frame)
    if not len(frame.columns):
        raise ValueError(
            f"'{path.name}' has no columns with names; name every column in the first line."
        )
    if not len(frame):
        raise ValueError(f"'{path.name}' has a header, but no rows.")
    return frame


def to_frame(table: Any, what: str = "the table") -> Any:
    """The table as a data frame of pandas with an index 0, 1, 2, ...

    No other library is imported: any object that lists its column names and returns a column for
    a name is a table.

    Parameters
    ----------
    table
        A data frame of pandas; or anything with `column_names`, `columns` or `keys()` whose
        `table[name]` is a column.
    what : str
        How errors call the table.

    Returns
    -------
    pandas.DataFrame
        The same columns in the same order.

    Examples
    --------
    >>> to_frame({"site": ["A", "B"], "length": np.array([1.5, 2.5])})
      site  length
    0    A     1.5
    1    B     2.5
    """
    import pandas  # type: ignore[import-untyped]

    if isinstance(table, pandas.DataFrame):
        return table.reset_index(drop=True)
    columns = {str(name): _to_series(table[name], str(name)) for name in _names(table, what)}
    lengths = {name: len(column) for name, column in columns.items()}
    for name, length in lengths.items():
        first, n_rows = next(iter(lengths.items()))
        if length != n_rows:
            raise ValueError(
                f"Column {name!r} of {what} has {length:,} rows, but column {first!r} has "
                f"{n_rows:,}; give all columns the same number of rows."
            )
    return pandas.DataFrame(columns)


def find_column(names: Iterable[str], name: str, what: str = "the table") -> str:
    """The name, if there is such a column; else an error that suggests similar names.

    Examples
    --------
    >>> find_column(["site", "rating"], "raiting", "reviews.csv")
    Traceback (most recent call last):
    ...
    ValueError: There is no column 'raiting' in reviews.csv; did you mean 'rating'? \
There are: 'site', 'rating'.
    """
    names = list(names)
    if name in names:
        return name
    lower = {each.lower(): each for each in reversed(names)}  # the first of equals counts
    near = [lower[match] for match in get_close_matches(name.lower(), lower, n=2)]
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
    raise ValueError(f"There is no column {name!r} in {what}{hint} There are: {list_names(names)}.")


def find_delimiter(sample: str) -> str:
    """The character that splits the lines into the same number of fields; a comma by default.

    Examples
    --------
    >>> find_delimiter("price;note\\n1,5;a, b\\n2,5;c\\n")
    ';'
    """
    return max(DELIMITERS, key=lambda delimiter: _regularity(sample, delimiter))


# ---- CSV ----------------------------------------------------------------------------------------


def _read_bytes(path: Path) -> bytes:
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder, but a table was expected: CSV or Parquet.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file '{path}'{_suggest_file(path)}")
    return path.read_bytes()


def _suggest_file(path: Path) -> str:
    """A file in the same folder with a similar name, whatever its suffix."""
    files = {file.stem: file for file in path.parent.iterdir()} if path.parent.is_dir() else {}
    near = get_close_matches(path.stem, files, n=1)
    return f"; did you mean '{files[near[0]]}'?" if near else "."


def _read_csv(content: bytes, name: str, as_text: bool) -> Any:
    text = decode(content, name).removeprefix("\ufeff")
    stated = _DELIMITER_LINE.match(text)
    text = text[stated.end() :] if stated else text
    if not text.strip():
        raise ValueError(f"'{name}' is empty.")
    sample = _first_lines(text)
    delimiter = stated.group(1) if stated else find_delimiter(sample)
    _refuse_duplicates(_header(sample, delimiter), name)
    types: dict[str, Any] = (
        {"dtype": str, "na_filter": False}
        if as_text
        else {"decimal": _find_decimal(sample, delimiter)}
    )
    frame = _parse(text, delimiter, name, types)
    frame.columns = [str(column).strip() for column in frame.columns]
    return frame


def _parse(text: str, delimiter: str, name: str, types: dict[str, Any]) -> Any:
    import pandas

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", pandas.errors.ParserWarning)  # rows longer than the header
        try:
            return pandas.read_csv(
                io.StringIO(text, newline=""),
                sep=delimiter,
                index_col=False,
                low_memory=False,
                skipinitialspace=True,
                **types,
            )
        except pandas.errors.ParserWarning:
            raise ValueError(
                f"'{name}' cannot be read as a table: its rows have more fields than its header; "
                "name every column."
            ) from None
        except pandas.errors.EmptyDataError:
            raise ValueError(f"'{name}' is empty.") from None
        except (pandas.errors.ParserError, ValueError, OverflowError) as error:
            raise ValueError(f"'{name}' cannot be read as a table: {_explain(error)}") from None


def _explain(error: Exception) -> str:
    """The error of pandas as a clear sentence."""
    fields, quote = _FIELDS.search(str(error)), _OPEN_QUOTE.search(str(error))
    if fields:
        expected, line, actual = fields.groups()
        return (
            f"line {line} has {actual} fields, but {expected} were expected; put texts that hold "
            "the delimiter in quotation marks."
        )
    if quote:
        return (
            f"a quotation mark that opens in row {quote.group(1)} is never closed; close it, or "
            "double it."
        )
    return f"{' '.join(str(error).split()).rstrip('.')}."


def _regularity(sample: str, delimiter: str) -> tuple[float, int]:
    """The share of rows that are as wide as the header, and its width; (0, 0) for one field."""
    widths = [len(row) for row in _rows(sample, delimiter)[:200]]
    if not widths or widths[0] < 2:
        return 0.0, 0
    return sum(width == widths[0] for width in widths) / len(widths), widths[0]


def _find_decimal(sample: str, delimiter: str) -> str:
    """A comma, if it does not separate columns and more numbers have a comma than a point."""
    if delimiter == ",":
        return "."
    cells = [cell.strip() for row in _rows(sample, delimiter)[1:] for cell in row]
    commas, points = (
        sum(re.fullmatch(rf"[+-]?\d+{sign}\d+", cell) is not None for cell in cells)
        for sign in (",", r"\.")
    )
    return "," if commas > points else "."


def _rows(sample: str, delimiter: str) -> list[list[str]]:
    lines = io.StringIO(sample, newline="")
    try:
        return [row for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True) if row]
    except csv.Error:  # such as a field that is larger than the module allows
        return [line.split(delimiter) for line in sample.splitlines()]


def _header(sample: str, delimiter: str) -> list[str]:
    return [name.strip() for name in (_rows(sample, delimiter) or [[]])[0]]


def _first_lines(text: str) -> str:
    """Complete lines from the beginning of the text."""
    if len(text) <= SAMPLE:
        return text
    end = max(text.rfind("\n", 0, SAMPLE), text.rfind("\r", 0, SAMPLE))
    return text[: end + 1] if end > 0 else text


def _refuse_duplicates(names: list[str], name: str) -> None:
    seen: dict[str, int] = {}
    for place, column in enumerate(names, start=1):
        if column and column in seen:
            raise ValueError(
                f"Column {column!r} appears twice in '{name}', as columns {seen[column]} and "
                f"{place}; give each column a different name."
            )
        seen[column] = place


# ---- Parquet ------------------------------------------------------------------------------------


def _read_parquet(content: bytes, name: str) -> Any:
    try:
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise ValueError(
            f"To read '{name}', which is Parquet, pyarrow is needed: "
            "pip install 'leaflearn[parquet]'."
        ) from None
    try:
        table = pyarrow.parquet.read_table(io.BytesIO(content))
        _refuse_duplicates([str(column).strip() for column in table.column_names], name)
        frame = table.to_pandas()
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"'{name}' is not a complete Parquet file; get a fresh copy.") from error
    named = [level for level in frame.index.names if level is not None]
    frame = frame.reset_index(level=named) if named else frame
    frame.columns = [str(column).strip() for column in frame.columns]
    return frame.reset_index(drop=True)


def _drop_unnamed(frame: Any) -> Any:
    """Leave out columns without a name, which mostly hold row numbers that a program wrote."""
    is_unnamed = [_UNNAMED.fullmatch(name) is not None for name in frame.columns]
    if not any(is_unnamed):
        return frame
    places = tuple(place for place, unnamed in enumerate(is_unnamed, start=1) if unnamed)
    warnings.warn(TableWarning(UnnamedColumns(places)), stacklevel=2)
    return frame.iloc[:, [place for place, unnamed in enumerate(is_unnamed) if not unnamed]]


# ---- tables of other libraries ------------------------------------------------------------------


def _names(table: Any, what: str) -> list[Any]:
    """The column names; `columns` may be the columns themselves where there is `column_names`."""
    for verb in ("collect", "compute"):  # polars and dask
        if hasattr(table, verb):
            raise TypeError(
                f"{what} is lazy and does not hold its columns yet; call its {verb}() first."
            )
    names = getattr(table, "column_names", None)
    if isinstance(names, Mapping):  # a Hugging Face data set with a training and a test split
        raise TypeError(
            f"{what} has several splits ({', '.join(map(repr, names))}); pass one of them."
        )
    names = getattr(table, "columns", None) if names is None else names
    names = table.keys() if names is None and isinstance(table, Mapping) else names
    if names is None or not hasattr(table, "__getitem__"):
        raise TypeError(
            f"{what} is of the type {type(table).__name__}, but {TABLE_TYPES} was expected."
        )
    return list(names)


def _to_series(column: Any, name: str) -> Any:
    import pandas

    if isinstance(column, pandas.Series):
        return column.reset_index(drop=True)  # else pandas would match rows by their index
    try:
        return column.to_pandas()  # of polars, this needs pyarrow
    except (AttributeError, ImportError):
        values = column.detach().cpu() if hasattr(column, "detach") else column  # a torch tensor
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    else:
        values = np.asarray(values) if hasattr(values, "__array__") else list(values)
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise ValueError(
            f"Column {name!r} has shape {values.shape}, but one value per row was expected."
        )
    return pandas.Series(values)
