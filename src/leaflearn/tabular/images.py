"""Pictures that a column of a table names: read, brought to one small size, and handed on as arrays."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from leaflearn.tabular.cells import describe_cell
from leaflearn.tabular.reading import find_column

SIZE = 28  # pixels of height and of width, as in the paper's smallest pictures


@dataclass(frozen=True)
class ImageFiles:
    """A column that names pictures.

    Parameters
    ----------
    column
        Its name.
    size
        Height and width that all pictures are brought to.

    Examples
    --------
    >>> ImageFiles("file").used
    ['file']
    """

    column: str
    size: int = SIZE

    @property
    def used(self) -> list[str]:
        """The columns that are learnt from."""
        return [self.column]

    def read(self, frame: Any, folder: Path, what: str = "the table") -> NDArray[np.float32]:
        """The pictures of the rows, between 0 and 1, shape (N, 3, size, size)."""
        cells = frame[find_column(frame.columns, self.column, what)]
        pictures = np.empty((len(cells), 3, self.size, self.size), dtype=np.float32)
        for place in range(len(cells)):
            pictures[place] = self._read_one(cells, place, folder)
        return pictures

    def _read_one(self, cells: Any, place: int, folder: Path) -> NDArray[np.float32]:
        path = folder / str(cells.iloc[place])
        if not path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(
                f"Column {self.column!r} names {describe_cell(cells, place)}, which is outside of '{folder}'; name files inside it."
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", Image.DecompressionBombWarning)
                with Image.open(path) as picture:
                    small = picture.convert("RGB").resize(
                        (self.size, self.size), Image.Resampling.BILINEAR
                    )
        except (
            OSError,
            ValueError,
            SyntaxError,
            UnidentifiedImageError,
            Image.DecompressionBombError,
            Image.DecompressionBombWarning,
        ) as error:
            reason = (
                "there is no such file"
                if isinstance(error, FileNotFoundError)
                else "it is no picture that can be read"
            )
            raise ValueError(
                f"Column {self.column!r} names {describe_cell(cells, place)}, but in '{folder}' {reason}."
            ) from None
        return np.asarray(small, dtype=np.float32).transpose(2, 0, 1) / 255.0


def find_image_column(frame: Any, folder: Path) -> str:
    """The first column whose first value is the name of a file in the folder.

    Examples
    --------
    >>> import pandas
    >>> find_image_column(pandas.DataFrame({"file": ["a.png"]}), Path("no-such-folder"))
    Traceback (most recent call last):
    ...
    NotADirectoryError: There is no folder 'no-such-folder' with pictures.
    """
    if not folder.is_dir():
        raise NotADirectoryError(f"There is no folder '{folder}' with pictures.")
    for name in frame.columns:
        there = frame[name].dropna()
        if len(there) and isinstance(there.iloc[0], str) and (folder / there.iloc[0]).is_file():
            return str(name)
    raise ValueError(
        f"No column of the table names files in '{folder}'; say with --image-column which one does."
    )
