"""What rows of a table have in common: the frame in which each operation's file says its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...systems.system import System
    from .forms import Form, Setting

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Sort:
    """Rows with the same texts.

    Attributes:
        label: what is added to the operation's name, where it has several kernels.
        format: the number formats, as the table has them.
        form: of the kernels.
        setting: where the form is evaluated.
        values: what the texts say in numbers: `width`, bytes of an element; `devices` of a node.
    """

    label: str
    format: str
    form: Form
    setting: Setting
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Measure:
    """A time in a row.

    Attributes:
        columns: whose sum it is.
        unit: seconds of theirs.
        label: that it adds to the operation's name.
        values: numbers that hold for it, as those of a sort.
    """

    columns: tuple[str, ...] = ("latency",)
    unit: float = 1e-3
    label: str = ""
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Operation:
    """The rows of one table.

    Attributes:
        texts: columns of texts beside device, software and kernel, which decide the sort.
        numbers: columns of numbers that must be there.
        shape: those of `numbers` and `optional` that are the whole shape.
        sort: the sort of rows with the same texts; raises `LeftOutError`.
        sizes: values of symbols, from the numbers of the rows and those of their sort and measure.
        optional: columns of numbers that may be there.
        measures: the times of a row.
    """

    texts: tuple[str, ...]
    numbers: tuple[str, ...]
    shape: tuple[str, ...]
    sort: Callable[[dict[str, str], str, System], Sort]
    sizes: Callable[[Arrays], Arrays]
    optional: tuple[str, ...] = ()
    measures: tuple[Measure, ...] = (Measure(),)
