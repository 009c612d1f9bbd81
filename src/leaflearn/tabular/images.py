"""Images named by a column of a table: read, resized to one small size, and returned as arrays."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from leaflearn.messages import MessageError, NoImageColumn
from leaflearn.tabular.column_kinds import describe_cell
from leaflearn.tabular.reading import find_column

SIZE = 28  # pixels of height and width, as in the smallest images of the paper
UNREADABLE = (
    OSError,
    ValueError,
    SyntaxError,
    UnidentifiedImageError,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)


@dataclass(frozen=True)
class ImageFiles:
    """A column that names image files.

    Parameters
    ----------
    column
        The name of the column.
    size
        Height and width to which all images are resized.

    Examples
    --------
    >>> ImageFiles("file").used
    ['file']
    """

    column: str
    size: int = SIZE

    @property
    def used(self) -> list[str]:
        """The columns that the model learns from."""
        return [self.column]

    def read(self, frame: Any, folder: Path, what: str = "the table") -> NDArray[np.float32]:
        """The images of the rows, values between 0 and 1, shape (N, 3, size, size)."""
        cells = frame[find_column(frame.columns, self.column, what)]
        images = np.empty((len(cells), 3, self.size, self.size), dtype=np.float32)
        for place in range(len(cells)):
            images[place] = self._read_one(cells, place, folder)
        return images

    def _read_one(self, cells: Any, place: int, folder: Path) -> NDArray[np.float32]:
        path = folder / str(cells.iloc[place])
        names = f"Column {self.column!r} names {describe_cell(cells, place)}"
        if not path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{names}, which is outside of '{folder}'; name files inside it.")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", Image.DecompressionBombWarning)
                with Image.open(path) as image:
                    resized = image.convert("RGB").resize(
                        (self.size, self.size), Image.Resampling.BILINEAR
                    )
        except UNREADABLE as error:
            reason = (
                f"but there is no such file in '{folder}'"
                if isinstance(error, FileNotFoundError)
                else f"but that file in '{folder}' cannot be read as an image"
            )
            raise ValueError(f"{names}, {reason}.") from None
        return np.asarray(resized, dtype=np.float32).transpose(2, 0, 1) / 255.0


def find_image_column(frame: Any, folder: Path) -> str:
    """The first column whose first value is the name of a file in the folder.

    Examples
    --------
    >>> import pandas
    >>> find_image_column(pandas.DataFrame({"file": ["a.png"]}), Path("no-such-folder"))
    Traceback (most recent call last):
    ...
    NotADirectoryError: There is no folder 'no-such-folder' with images.
    """
    if not folder.is_dir():
        raise NotADirectoryError(f"There is no folder '{folder}' with images.")
    for name in frame.columns:
        present = frame[name].dropna()
        first = present.iloc[0] if len(present) else None
        if isinstance(first, str) and (folder / first).is_file():
            return str(name)
    raise MessageError(NoImageColumn(str(folder)))
