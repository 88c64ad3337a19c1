"""ZeRO-3 module by module: weights that hooks of modules gather and let go of, and gradients reduced by the bucket.

DeepSpeed hooks every module of a model. Before a module runs, its weights are gathered, and those that come next as far
as a bucket holds them; after it they are let go. A mixture whose experts are modules of their own, three small matrices
each, so has thousands of gathers, and the host's work for each may outlast the products.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, above_one, ceil_div, less_one
from ..language.dimension import ONE
from ..language.formula import formula
from ..language.symbols import piece_operations, sharded_operations
from ..sources import RAJBHANDARI


@formula(
    glyph="K_{z3}",
    dimension=ONE,
    source=RAJBHANDARI,
    increasing="piece_operations ranks sharded_operations",
)
def sharded_tensor_operations(ranks: Any) -> Any:
    """Operations of the host for one tensor that is gathered, or its gradient reduced: [q > 1] (N_shard + q N_piece).

    Assumes: a gather and the release after it take as many as the reduction of a gradient.

    Source: derivation, for DeepSpeed of 2025: deepspeed/runtime/zero/parameter_offload.py (hooks of each module),
    partitioned_param_coordinator.py (fetch_sub_module, release_sub_module), partition_parameters.py
    (AllGatherCoalescedHandle.wait joins the pieces of q ranks), stage3.py (reduce_ready_partitions_and_remove_grads),
    runtime/comm/coalesced_collectives.py (a slice of each gradient for each of q ranks); the stage is that of
    Rajbhandari et al. 2020 section 5.3.

    >>> from sympy import symbols
    >>> sharded_tensor_operations(symbols("q"))
    (piece_operations*q + sharded_operations)*above_one(q)
    """
    return above_one(ranks) * (sharded_operations + piece_operations * ranks)


@formula(
    glyph="N_{z3}^{g}",
    dimension=ONE,
    source=RAJBHANDARI,
    increasing="width",
    decreasing="inner",
)
def gathered_together(width: Any, inner: Any) -> Any:
    """Tensors of h f elements that one gather fetches ahead: as many as reach 0.9 h^2 elements, ceil(0.9 h / f).

    Assumes: `stage3_prefetch_bucket_size` is "auto" in a trainer of transformers; the order of modules is the same in
    every step, and what is gathered stays below `stage3_max_live_parameters` (1e9), so that weights are fetched ahead
    at all.

    Source: derivation, for DeepSpeed's partitioned_param_coordinator.py, fetch_sub_module: tensors are added while
    their sum is below the bucket; transformers, integrations/deepspeed.py: "auto" is 0.9 h^2; the stage is that of
    Rajbhandari et al. 2020 section 5.3.

    >>> gathered_together(2048, 768), gathered_together(4096, 14336)
    (3, 1)
    """
    return ceil_div(9 * width, 10 * inner)


@formula(
    glyph="N_{z3}^{r}",
    dimension=ONE,
    source=RAJBHANDARI,
    increasing="width",
    decreasing="inner",
)
def reduced_together(width: Any, inner: Any) -> Any:
    """Gradients of h f elements that one reduction takes: as many as h^2 elements hold, max(1, floor(h / f)).

    Assumes: `reduce_bucket_size` is "auto" in a trainer of transformers; sizes are whole: floor(h / f) is
    ceil((h + 1) / f) - 1.

    Source: derivation, for DeepSpeed's stage3.py, reduce_independent_p_g_buckets_and_remove_grads: a bucket is reduced
    before a gradient that it has no room for; transformers, integrations/deepspeed.py: "auto" is h^2; the stage is
    that of Rajbhandari et al. 2020 section 5.3.

    >>> reduced_together(2048, 768), reduced_together(4096, 14336)
    (2, 1)
    """
    return less_one(Max(2, ceil_div(width + 1, inner)))
