"""Rows of tables of kernels, with what predicts them: the parts of a table that have one device, software and form.

Whole shapes are kept apart: a row is `test` where the CRC-32 of its shape's columns, as `name=value` with a comma
between, leaves 0 when divided by 4, and `calibration` else. The shape is that of `Operation.shape`: widths and inner
lengths of products, heads of attention, sizes of experts; the size of a message. All devices and software share it.
"""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...common.errors import InputError, quote
from ...common.system_errors import cause
from . import faults
from .formats import LeftOutError, software_of, system_of
from .table import ENDINGS, Columns, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ...systems.system import System
    from .operation import Measure, Operation, Sort
    from .table import Batch

PARTS: Final = 4
"""One shape of so many is kept back to score."""
HEAD: Final = ("system", "framework", "kernel_source")
"""Columns of texts that every table has, with the version of the software."""


@dataclass(frozen=True, order=True)
class Group:
    """What rows are scored together."""

    device: str
    software: str
    operation: str
    format: str


def tables_in(folder: Path) -> list[Path]:
    """The tables of a folder, sorted.

    Raises:
        InputError: there is no such folder, or it holds none.
    """
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix in ENDINGS and path.is_file())
    except OSError as error:
        raise InputError(f"kernels: {quote(str(folder))}: cannot be read: {cause(error)}") from None
    if not found:
        raise InputError(
            f"kernels: {quote(str(folder))}: holds no table, expected files such as gemm.parquet or gemm.csv"
        )
    return found


def is_test(shape: dict[str, float]) -> bool:
    """Whether a whole shape is kept back.

    >>> [is_test({"n": 4096.0, "k": k}) for k in (2048.0, 4096.0, 8192.0)]
    [False, True, False]
    """
    text = ",".join(f"{name}={value:.17g}" for name, value in shape.items())
    return zlib.crc32(text.encode()) % PARTS == 0


def tests_of(columns: dict[str, Any], count: int) -> Any:
    """Which of `count` rows have a shape that is kept back; each distinct shape is hashed once."""
    if not columns:
        return np.zeros(count, dtype=bool)
    whole = np.column_stack([np.nan_to_num(column) for column in columns.values()])
    distinct, inverse = np.unique(whole, axis=0, return_inverse=True)
    kept = [is_test(dict(zip(columns, shape, strict=True))) for shape in distinct]
    return np.array(kept, dtype=bool)[inverse.reshape(-1)]


@dataclass(frozen=True)
class Part:
    """Rows of a batch that one form predicts.

    Attributes:
        group: what they are scored with.
        kernel: whose rows they are, as the table names it.
        sort: says the form, and where it is evaluated.
        measure: which of the rows' times.
        rows: those that have a time and sizes.
        seconds: measured.
        sizes: of each row, by symbol.
        test: whether a row's shape is kept back.
    """

    group: Group
    kernel: str
    sort: Sort
    measure: Measure
    rows: Batch
    seconds: Any
    sizes: dict[str, Any]
    test: Any


class Table:
    """One table.

    Attributes:
        name: of the operation.
        columns: that are read.
        left_out: rows of each group that have no part, by reason.
        system_of: the system of a device's name; raises `LeftOutError` where there is none.
    """

    def __init__(
        self, path: Path, name: str, operation: Operation, system_of: Callable[[str], System] = system_of
    ) -> None:
        self.path, self.name, self.operation, self.system_of = path, name, operation, system_of
        times = {column for measure in operation.measures for column in measure.columns}
        self.texts = (*HEAD, "version", *(text for text in operation.texts if text not in HEAD))
        self.columns = Columns(self.texts, (*operation.numbers, *sorted(times)), operation.optional)
        self.left_out: dict[Group, Counter[str]] = {}

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that say which kernel a row is of."""
        return (*self.texts, *self.operation.numbers, *self.operation.optional)

    def parts(self) -> Iterator[Part]:
        """The parts, batch by batch.

        Raises:
            InputError: the table cannot be read.
        """
        sorting = tuple(name for name in self.texts if name != "version")
        for batch in read(self.path, self.columns):
            for texts, places in batch.groups(sorting):
                yield from self._group(texts, batch.rows(places))

    def _group(self, texts: dict[str, str], rows: Batch) -> Iterator[Part]:
        device, software = texts["system"], software_of(texts["framework"])
        if texts["kernel_source"] == "NCCL":
            software = "NCCL"
        try:
            sort = self.operation.sort(texts, software, self.system_of(device))
        except LeftOutError as error:
            for measure in self.operation.measures:
                self._leave(Group(device, software, _label(self.name, measure.label), ""), str(error), rows.size)
            return
        for measure in self.operation.measures:
            group = Group(device, software, _label(self.name, measure.label, sort.label), sort.format)
            yield from self._measure(group, texts["kernel_source"], sort, measure, rows)

    def _measure(self, group: Group, kernel: str, sort: Sort, measure: Measure, rows: Batch) -> Iterator[Part]:
        seconds = sum(rows.numbers[column] for column in measure.columns) * measure.unit
        no_time = faults.bad_times(seconds)
        no_size = ~no_time & _no_sizes(rows, self.operation.numbers)
        self._leave(group, faults.NO_TIME, int(no_time.sum()))
        self._leave(group, faults.NO_SIZE, int(no_size.sum()))
        good = np.flatnonzero(~(no_time | no_size))
        if not len(good):
            return
        rows, seconds = rows.rows(good), seconds[good]
        sizes = self.operation.sizes({**rows.numbers, **sort.values, **measure.values})
        test = tests_of({name: rows.numbers[name] for name in self.operation.shape}, rows.size)
        yield Part(group, kernel, sort, measure, rows, seconds, sizes, test)

    def _leave(self, group: Group, reason: str, count: int) -> None:
        self.left_out.setdefault(group, Counter())[reason] += count


def _label(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def _no_sizes(rows: Batch, names: tuple[str, ...]) -> Any:
    """Which rows have a size that is none; a context before the new tokens may be empty."""
    found = np.zeros(rows.size, dtype=bool)
    for name in names:
        column = rows.numbers[name]
        found |= ~np.isfinite(column) | (column < 0 if name == "step" else column <= 0)
    return found
