"""Every operation that a table may be of, and those that no formula predicts, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import attentions, compressed, exchanges, expert_exchanges, experts, products, recurrent, selected

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .operation import Operation

OPERATIONS: Final[Mapping[str, Operation]] = {
    **products.OPERATIONS,
    **attentions.OPERATIONS,
    **exchanges.OPERATIONS,
    **expert_exchanges.OPERATIONS,
    **experts.OPERATIONS,
    **recurrent.OPERATIONS,
    **selected.OPERATIONS,
    **compressed.OPERATIONS,
}
"""By the name of the table."""
UNMODELLED: Final[Mapping[str, str]] = {
    "computescale": "the difference of two kernels' times: no kernel of its own",
}
"""Tables whose rows are left out -> the reason."""
