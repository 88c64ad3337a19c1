"""The file of measurements: rows are in it as they come, and it has its name once it is whole."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ..common.cells import csv_cell
from ..common.errors import InputError, quote
from ..common.outputs import check_result
from ..common.system_errors import cause
from .columns import COLUMNS

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping


def as_line(row: Mapping[str, Any]) -> str:
    """A row as a line of CSV; times with six digits."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([csv_cell(_text(row.get(column, ""))) for column in COLUMNS])
    return text.getvalue()


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class Writer:
    """Writes rows to FILE.part, each at once; `finish` gives the file its name."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the file beside.

        Raises:
            InputError: it cannot be written.
        """
        self.path = Path(path)
        self.rows = 0
        try:
            if self.path.is_dir():
                raise IsADirectoryError(0, "is a folder")
            check_result(self.path, ".part")
            self._part = self.path.with_name(self.path.name + ".part")
            self._file: TextIO = self._part.open("w", encoding="utf-8", newline="")
            self._file.write(",".join(COLUMNS) + "\n")
            self._file.flush()
        except (OSError, ValueError) as error:
            raise self._refusal(error) from None

    def add(self, row: Mapping[str, Any]) -> None:
        """Write a row, so that it is there whatever comes next.

        Raises:
            InputError: it cannot be written: a full disk, for instance.
        """
        try:
            self._file.write(as_line(row))
            self._file.flush()
        except OSError as error:
            raise self._refusal(error) from None
        self.rows += 1

    def finish(self) -> None:
        """Give the file its name, if a row is in it.

        Raises:
            InputError: it cannot be put there.
        """
        try:
            self._file.close()
            if self.rows:
                self._part.replace(self.path)
            else:
                self._part.unlink(missing_ok=True)
        except OSError as error:
            raise self._refusal(error) from None

    def _refusal(self, error: Exception) -> InputError:
        return InputError(f"-o: cannot write {quote(str(self.path))}: {cause(error)}")
