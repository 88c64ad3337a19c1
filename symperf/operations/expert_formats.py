"""In which formats tokens travel to their experts and back, and the kernels that this adds or changes.

Without a statement of a run they travel as activations, and nothing here is in the form of its cost. Formats are those
of a direction: tokens and gradients of results are sent, results and gradients of tokens come back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..formulas.kernels import expert_formats as fmt
from ..formulas.kernels import moe
from ..formulas.language.atoms import above_one, complement
from ..formulas.language.symbols import (
    activation_bytes,
    combine_element_bytes,
    dispatch_element_bytes,
    ep,
    expert_cast_operations,
    hidden_size,
    num_experts_per_token,
)
from .schedule import Demand

if TYPE_CHECKING:
    from ..plans.structure import Structure
    from .kernels import Kernels
    from .schedule import Op

CONVERSION_FLOPS = 2
"""Operations for each element of a conversion, as of a cast: a comparison or a product with a scale, and rounding."""


def cast_launches(groups: Any) -> Any:
    """Operations of the host for the cast before a product, or before those of the experts of a device."""
    return 1 if groups == 1 else 1 + expert_cast_operations * groups


class ExpertFormats:
    """The formats of the transfers of one layer's experts.

    Args:
        kernels: build the conversions.
        stated: formats that the run states, some of `structure.SENT`.
        low: products take operands in a narrower format than activations have; what is sent has that format.

    Attributes:
        there: bytes of an element of what is sent to experts.
        back: bytes of an element of what comes back.
    """

    def __init__(self, kernels: Kernels, stated: tuple[str, ...], *, low: bool) -> None:
        self.kernels, self.low = kernels, low
        self.narrow_there = dispatch_element_bytes.name in stated
        self.narrow_back = combine_element_bytes.name in stated
        self.there = in_transit(dispatch_element_bytes) if self.narrow_there else activation_bytes
        self.back = in_transit(combine_element_bytes) if self.narrow_back else activation_bytes

    # --- conversions

    def sent(self, path: str, tokens: Any) -> Op | None:
        """Tokens converted before they are sorted: once each, however many experts they go to."""
        return self._conversion(path, tokens * hidden_size, self.there) if self.narrow_there else None

    def arrived(self, path: str, rows: Any) -> Op | None:
        """What has arrived made activations again, where products do not read it as it is."""
        if not self.narrow_there or self.low:
            return None
        return self._conversion(path, rows * hidden_size, self.there)

    def returned(self, path: str, rows: Any) -> Op | None:
        """Rows converted before they are sent back; the sum over them reads them as they come."""
        return self._conversion(path, rows * hidden_size, self.back) if self.narrow_back else None

    def _conversion(self, path: str, elements: Any, element_bytes: Any) -> Op:
        op = self.kernels.stream(path, fmt.conversion_bytes(elements, element_bytes), elements, CONVERSION_FLOPS)
        return if_converted(op, element_bytes)

    # --- kernels that read or write what travels

    def summed_bytes(self, tokens: Any) -> Any:
        """Bytes of the sum of results by weight."""
        if self.narrow_back:
            return fmt.mixed_combination_bytes(tokens, num_experts_per_token, hidden_size, self.back)
        return moe.combination_bytes(tokens, num_experts_per_token, hidden_size, activation_bytes)

    def summed_gradient_bytes(self, tokens: Any) -> Any:
        """Bytes of the sum of the gradients of a token's choices."""
        if self.narrow_back:
            return fmt.mixed_combination_bytes(tokens, num_experts_per_token, hidden_size, self.back)
        return moe.permutation_backward_bytes(tokens, num_experts_per_token, hidden_size, activation_bytes)

    def spread_gradient_bytes(self, tokens: Any) -> Any:
        """Bytes of the gradient of the sum spread by weight."""
        if self.narrow_there:
            return fmt.mixed_combination_backward_bytes(tokens, num_experts_per_token, hidden_size, self.there)
        return moe.combination_backward_bytes(tokens, num_experts_per_token, hidden_size, activation_bytes)


def if_converted(op: Op, element_bytes: Any) -> Op:
    """A conversion, which is nothing where what travels is as wide as activations."""
    factor = fmt.is_converted(element_bytes)
    demand = Demand(factor * op.demand.flops, factor * op.demand.memory_bytes)
    return replace(op, time=factor * op.time, demand=demand)


def reads_arrivals(structure: Structure, path: str) -> bool:
    """Whether a product reads rows as they arrived in the format that a run states: tokens, or gradients of results."""
    if dispatch_element_bytes.name not in structure.sent or "/experts/" not in path:
        return False
    product, phase = path.rsplit("/", 2)[-2:]
    return (product, phase) in (("up", "forward"), ("up", "recompute"), ("down", "backward_input"))


def in_transit(element_bytes: Any) -> Any:
    """The bytes of an element between devices that experts are dealt over; where they are not, those of activations."""
    dealt = above_one(ep)
    return complement(dealt) * activation_bytes + dealt * element_bytes
