"""`symperf validate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import flags
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
        "--data",
        metavar="PATH",
        help="your own measurements: any CSV file, or a folder of training.csv, inference.csv, memory.csv "
        "(docs/validation.md)",
    )
    validate.add_argument(
        "--by",
        action="append",
        default=[],
        metavar="WHAT",
        help="also by device, format, class, software, size, year or family; may be repeated",
    )
    own = validate.add_argument_group("a CSV file of your own")
    own.add_argument(
        "--guide", action="store_true", help="tell what each column is taken for and what is missing; score nothing"
    )
    own.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="COLUMN=FIELD[:UNIT]",
        help="what a column is; without a field it is ignored; may be repeated",
    )
    own.add_argument(
        "--fill", action="append", default=[], metavar="FIELD=VALUE", help="what every row has; may be repeated"
    )
    own.add_argument("--table", metavar="NAME", help="training, inference, memory or serving, where it is not plain")
    validate.add_argument(
        "--kernels", metavar="FOLDER", help="tables of measured kernels, one for each operation (docs/kernels.md)"
    )
    validate.add_argument(
        "--explain",
        metavar="ROW",
        help="tell how one row was read (its id, or TABLE:LINE), and the command line that gives the same number",
    )
    validate.add_argument("-o", "--output", metavar="FOLDER", help="with --explain: where files that it names are put")
    validate.add_argument("--worst", type=whole, default=10, metavar="N", help="rows to show (default 10)")
    validate.add_argument("--markdown", metavar="FILE", help="write the tables as Markdown")
    validate.add_argument("--csv", metavar="FILE", help="write every row that is scored")
    flags.plot(validate, "measured against predicted")
