"""Tables as people have them: CSV with any usual delimiter, encoding and compression, and Parquet, read into a frame of pandas.

Rows are counted from 1, without the header, as the row below the header is the first that holds data.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from leaflearn.tabular.text_encoding import decode, unpack, warn

DELIMITERS = (",", ";", "\t", "|")
SAMPLE = 100_000  # characters that the delimiter and the decimal sign are read off
MOST_NAMES = 8  # columns that a sentence lists
PARQUET = b"PAR1"
_HINT = re.compile(r"sep=(.)\r?\n")  # the first line that Excel writes in some countries
_UNNAMED = re.compile(
    r"(Unnamed: \d+)?"
)  # what pandas calls a column without a name, and writes as the header of row numbers
_FIELDS = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
_OPEN_QUOTE = re.compile(r"EOF inside string starting at row (\d+)")


def read_table(path: str | Path, as_text: bool = False) -> Any:
    """Read a table from a file.

    Parameters
    ----------
    path
        CSV, with comma, semicolon, tab or bar between the columns, in UTF-8, UTF-16 or Windows-1252, as it is or in a gzip, bzip2, xz or
        zip file; or Parquet. What it is shows in its bytes, not in its name.
    as_text
        Leave the cells of a CSV file as they are written, to write them again.

    Returns
    -------
    pandas.DataFrame
        At least one row and one column; the names are distinct texts.

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
            f"'{path.name}' has no columns with names; give every column a name in the first line."
        )
    if not len(frame):
        raise ValueError(f"'{path.name}' has a header, but no rows.")
    return frame


def find_column(names: Iterable[str], name: str, what: str = "the table") -> str:
    """The name, if there is such a column; else an error that names those which look like it.

    Examples
    --------
    >>> find_column(["site", "rating"], "raiting", "reviews.csv")
    Traceback (most recent call last):
    ...
    ValueError: There is no column 'raiting' in reviews.csv; did you mean 'rating'? There are: 'site', 'rating'.
    """
    names = list(names)
    if name in names:
        return name
    lower: dict[str, str] = {}
    for each in names:
        lower.setdefault(each.lower(), each)
    near = [lower[match] for match in get_close_matches(name.lower(), lower, n=2)]
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
    raise ValueError(f"There is no column {name!r} in {what}{hint} There are: {list_names(names)}.")


def list_names(names: Iterable[object]) -> str:
    """The first names, and how many more there are.

    Examples
    --------
    >>> list_names("abcdefghijkl")
    "'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h' and 4 more"
    """
    names = list(names)
    shown = ", ".join(repr(str(name)) for name in names[:MOST_NAMES])
    return shown + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")


def _read_bytes(path: Path) -> bytes:
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder, but a table was expected: CSV or Parquet.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file '{path}'{_near_file(path)}")
    return path.read_bytes()


def _near_file(path: Path) -> str:
    """A file in the same folder whose name, without its ending, looks like this one."""
    files = {file.stem: file for file in path.parent.iterdir()} if path.parent.is_dir() else {}
    near = get_close_matches(path.stem, files, n=1)
    return f"; did you mean '{files[near[0]]}'?" if near else "."


def _read_csv(content: bytes, name: str, as_text: bool) -> Any:
    text = decode(content, name).removeprefix("\ufeff")
    hint = _HINT.match(text)
    text = text[hint.end() :] if hint else text
    if not text.strip():
        raise ValueError(f"'{name}' is empty.")
    sample = _first_lines(text)
    delimiter = hint.group(1) if hint else find_delimiter(sample)
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
    import pandas  # type: ignore[import-untyped]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter(
            "error", pandas.errors.ParserWarning
        )  # rows that are longer than the header
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
                f"'{name}' cannot be read as a table: its rows have more fields than its header; name every column."
            ) from None
        except pandas.errors.EmptyDataError:
            raise ValueError(f"'{name}' is empty.") from None
        except (pandas.errors.ParserError, ValueError, OverflowError) as error:
            raise ValueError(f"'{name}' cannot be read as a table: {_explain(error)}") from None


def _explain(error: Exception) -> str:
    """In our words, what pandas found wrong."""
    fields, quote = _FIELDS.search(str(error)), _OPEN_QUOTE.search(str(error))
    if fields:
        expected, line, found = fields.groups()
        return f"line {line} has {found} fields, but {expected} were expected; put texts that hold the delimiter in quotation marks."
    if quote:
        return f"a quotation mark that opens in row {quote.group(1)} is never closed; close it, or double it."
    return f"{' '.join(str(error).split()).rstrip('.')}."


def find_delimiter(sample: str) -> str:
    """The character that cuts the lines into equally many fields; a comma where none does.

    Examples
    --------
    >>> find_delimiter("price;note\\n1,5;a, b\\n2,5;c\\n")
    ';'
    """
    return max(DELIMITERS, key=lambda delimiter: _regularity(sample, delimiter))


def _regularity(sample: str, delimiter: str) -> tuple[float, int]:
    """The share of rows that are as wide as the header, and how wide that is; nothing where it has one field only."""
    widths = [len(row) for row in _rows(sample, delimiter)[:200]]
    if not widths or widths[0] < 2:
        return 0.0, 0
    return sum(width == widths[0] for width in widths) / len(widths), widths[0]


def _find_decimal(sample: str, delimiter: str) -> str:
    """A comma, where commas do not separate columns and more numbers are written with it than with a point."""
    if delimiter == ",":
        return "."
    cells = [cell.strip() for row in _rows(sample, delimiter)[1:] for cell in row]
    commas, points = (
        sum(re.fullmatch(rf"[+-]?\d+{sign}\d+", cell) is not None for cell in cells)
        for sign in (",", r"\.")
    )
    return "," if commas > points else "."


def _rows(sample: str, delimiter: str) -> list[list[str]]:
    import csv

    try:
        return [
            row
            for row in csv.reader(
                io.StringIO(sample, newline=""), delimiter=delimiter, skipinitialspace=True
            )
            if row
        ]
    except csv.Error:  # such as a field that is larger than the module allows
        return [line.split(delimiter) for line in sample.splitlines()]


def _header(sample: str, delimiter: str) -> list[str]:
    return [name.strip() for name in (_rows(sample, delimiter) or [[]])[0]]


def _first_lines(text: str) -> str:
    """Some whole lines from the beginning."""
    if len(text) <= SAMPLE:
        return text
    end = max(text.rfind("\n", 0, SAMPLE), text.rfind("\r", 0, SAMPLE))
    return text[: end + 1] if end > 0 else text


def _refuse_duplicates(names: list[str], name: str) -> None:
    seen: dict[str, int] = {}
    for place, column in enumerate(names, start=1):
        if column and column in seen:
            raise ValueError(
                f"Column {column!r} is there twice in '{name}', as columns {seen[column]} and {place}; give each a name of its own."
            )
        seen[column] = place


def _read_parquet(content: bytes, name: str) -> Any:
    try:
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise ValueError(
            f"To read '{name}', which is Parquet, pyarrow is needed: pip install 'leaflearn[parquet]'."
        ) from None
    try:
        table = pyarrow.parquet.read_table(io.BytesIO(content))
        _refuse_duplicates([str(column).strip() for column in table.column_names], name)
        frame = table.to_pandas()
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"'{name}' is not a whole Parquet file; get a fresh copy.") from error
    named = [level for level in frame.index.names if level is not None]
    frame = frame.reset_index(level=named) if named else frame
    frame.columns = [str(column).strip() for column in frame.columns]
    return frame.reset_index(drop=True)


def _drop_unnamed(frame: Any) -> Any:
    """Without columns that have no name: mostly they hold the row numbers that a program wrote beside the data."""
    unnamed = [place for place, name in enumerate(frame.columns) if _UNNAMED.fullmatch(name)]
    if not unnamed:
        return frame
    places = ", ".join(str(place + 1) for place in unnamed[:MOST_NAMES]) + (
        " and others" if len(unnamed) > MOST_NAMES else ""
    )
    one = len(unnamed) == 1
    warn(
        f"{'Column' if one else 'Columns'} {places} {'has' if one else 'have'} no name and {'was' if one else 'were'} left out."
    )
    return frame.iloc[
        :, [place for place, name in enumerate(frame.columns) if not _UNNAMED.fullmatch(name)]
    ]
