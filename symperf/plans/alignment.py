"""Sizes of a model that leave rows of matrices where tensor units cannot read whole words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..models.model import Model
    from ..systems.system import System

ALIGNED: Final = 8
"""Elements of 16 bits in the 16 bytes to which rows must be aligned (NVIDIA, Matrix Multiplication Background)."""
SIXTY_FOUR: Final = 64
"""The usual multiple to which vocabularies are padded: 128 bytes of 16-bit elements, most efficient on A100."""
SIZES: Final = ("vocab_size", "hidden_size", "intermediate_size")
"""Sizes that are sides of products."""
HEAD: Final = "head_dim"
"""A side of the products of eager attention, one head each, whose queries, keys and values are rows of it."""


def misaligned_sizes(
    model: Model,
    system: System,
    precision: str | None = None,
    vocab_multiple: int | None = None,
    *,
    eager_attention: bool = False,
) -> tuple[str, ...]:
    """Names of the sizes that are no multiple of 16 bytes, on a device that computes in tiles.

    The width of a head counts where attention runs as products; flash attention pads it.

    Products in FP32 run outside of tensor units, which any size suits; TF32 has elements of 4 bytes. Of a
    vocabulary that is padded it is the padded size.

    What a device has of a size that is split may be none either, which is not seen here.
    """
    if not system.quantised or precision == "fp32":
        return ()
    aligned = ALIGNED // 2 if precision == "tf32" else ALIGNED
    sizes = {name: model.sizes.get(name, 0) for name in (*SIZES, *((HEAD,) if eager_attention else ()))}
    sizes["vocab_size"] += -sizes["vocab_size"] % (vocab_multiple or 1)
    return tuple(name for name, size in sizes.items() if size % aligned)


def alignment_warnings(model: Model, misaligned: tuple[str, ...], tp: int) -> list[str]:
    """A line for each size whose products are slower, with the next that is aligned."""
    return [
        f"{name} = {size}: rows are not aligned to 16 bytes, so that its products reach alignment_efficiency of their "
        f"rate; {-(-size // SIXTY_FOUR) * SIXTY_FOUR} is the next multiple of {SIXTY_FOUR}"
        for name in misaligned
        if (size := model.sizes[name]) and (name != "vocab_size" or tp == 1)
    ]
