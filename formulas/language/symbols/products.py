"""Constants of matrix products that are known only where products were measured."""

from __future__ import annotations

from ..dimension import SECOND
from .entry import POSITIVE, ZERO_UP, add

inner_latency = add(
    "efficiency",
    "inner_latency",
    r"\tau_{in}",
    "Least time of an element of the contracted side in a tile's loop, in products of 16 bits.",
    SECOND,
    ZERO_UP,
    "launch",
)
inner_ends = add(
    "efficiency",
    "inner_ends",
    "k_{end}",
    "Elements of the contracted side whose time a tile loses at the ends of its loop.",
    domain=ZERO_UP,
)
cast_latency = add(
    "efficiency",
    "cast_latency",
    r"\lambda_q",
    "Time of the start of the kernels that cast the left factor of a product in a narrow format, beside their bytes.",
    SECOND,
    ZERO_UP,
    "launch",
)
format_latency = add(
    "efficiency",
    "format_latency",
    r"\lambda_{fmt}",
    "Time that products in one format need more to start, where nothing is cast beside them.",
    SECOND,
    ZERO_UP,
    "launch",
)
cast_passes = add(
    "efficiency",
    "cast_passes",
    "n_{cast}",
    "Times that casting the left factor of a narrow product reads it, or moves as many bytes.",
    domain=ZERO_UP,
)
cast_ends = add(
    "efficiency",
    "cast_ends",
    "k_{cast}",
    "Elements of a row whose time the cast of a row takes beside its own.",
    domain=ZERO_UP,
)
narrow_ends = add(
    "efficiency",
    "narrow_ends",
    "k_{nar}",
    "Elements of the contracted side whose time a tile of a narrow product loses at the ends of its loop.",
    domain=ZERO_UP,
)
narrow_efficiency = add(
    "efficiency",
    "narrow_efficiency",
    r"\eta_{nar}",
    "Part of the matrix peak of products in one narrow format: what `matrix_efficiency` is for them, by software.",
    domain=POSITIVE,
)
alignment_efficiency = add(
    "efficiency",
    "alignment_efficiency",
    r"\eta_{al}",
    "Part of their rate that products reach where rows of a matrix are not aligned to 16 bytes.",
    domain=POSITIVE,
)
cut_efficiency = add(
    "efficiency",
    "cut_efficiency",
    r"\eta_{cut}",
    "Part of the rate of the library's products that those of a loss reach which keeps its logits on chip.",
    domain=POSITIVE,
)
cut_kept = add(
    "efficiency",
    "cut_kept",
    "k_{cut}",
    "Part of the blocks of logits whose gradients such a loss computes; in the others every probability is next to 0.",
    domain=POSITIVE,
)
loss_chunks = add(
    "efficiency", "loss_chunks", "n_{lc}", "Chunks of tokens that a chunked loss takes one by one.", domain=POSITIVE
)
