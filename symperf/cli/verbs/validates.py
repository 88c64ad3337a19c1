"""`symperf validate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..flags import whole

if TYPE_CHECKING:
    from . import Verb


def add(verb: Verb) -> None:
    """Add the verb."""
    validate = verb(
        "validate",
        "Predictions beside published measurements, or beside your own: errors by row and by family.",
        "symperf validate --source KORTH --source SC21 --worst 5",
        "validate",
    )
    validate.add_argument("--source", action="append", default=[], metavar="NAME", help="a family; may be repeated")
    validate.add_argument(
        "--by",
        action="append",
        default=[],
        metavar="WHAT",
        help="also by device, format, class, software, size, year or family; may be repeated",
    )
    validate.add_argument(
        "--data", metavar="FOLDER", help="your own training.csv, inference.csv, memory.csv (docs/validation.md)"
    )
    validate.add_argument(
        "--kernels", metavar="FOLDER", help="tables of measured kernels, one for each operation (docs/kernels.md)"
    )
    validate.add_argument("--worst", type=whole, default=10, metavar="N", help="rows to show (default 10)")
    validate.add_argument("--markdown", metavar="FILE", help="write the tables as Markdown")
    validate.add_argument("--csv", metavar="FILE", help="write every row that is scored")
    validate.add_argument("--plot", metavar="FILE", help="draw measured against predicted, as .png or .svg")
