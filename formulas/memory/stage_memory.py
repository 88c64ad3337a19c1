"""What each stage of a pipeline holds: micro-batches in flight and layers, in the number i of the stage from 1."""

from __future__ import annotations

from typing import Any

from ..language.atoms import Min, above_one, ceil_div, complement, less_one
from ..language.dimension import BYTE, ONE
from ..language.formula import formula
from ..language.symbols import fragmentation
from ..parallel.zero_bubble import excess
from ..sources import GMLAKE, KORTHIKANTI, NARAYANAN


@formula(
    glyph="m_{f,i}",
    dimension=ONE,
    source=NARAYANAN,
    increasing="micro_batches stages",
    decreasing="stage_number",
)
def one_f_one_b_stage_in_flight(micro_batches: Any, stages: Any, stage_number: Any) -> Any:
    """Micro-batches whose activations stage i holds under 1F1B: p - i + 1, or m_b if fewer.

    Assumes: 1 <= i <= p; `one_f_one_b_in_flight` is that of the first stage.

    Source: Narayanan et al. 2021 section 2.2.1: p - i forward passes before the first backward pass, and one more.

    >>> [one_f_one_b_stage_in_flight(8, 4, i) for i in (1, 2, 3, 4)]
    [4, 3, 2, 1]
    """
    return Min(micro_batches, excess(stages, less_one(stage_number)))


@formula(
    glyph="m_{f,il,i}",
    dimension=ONE,
    source=KORTHIKANTI,
    increasing="micro_batches stages",
    decreasing="stage_number",
)
def interleaved_stage_in_flight(micro_batches: Any, stages: Any, vpp: Any, stage_number: Any) -> Any:
    """Micro-batches whose activations device i holds when interleaved: p + (p - 1 - 2 (i - 1)) / v, or m_b if fewer.

    Assumes: in units of one micro-batch over all the device's layers; `interleaved_in_flight` is the first device's.

    Source: Megatron-LM's warm-up of 2 (p - i) + (v - 1) p passes of a chunk, and one more: all over v.

    >>> [interleaved_stage_in_flight(8, 4, 2, i) for i in (1, 2, 3, 4)]
    [11/2, 9/2, 7/2, 5/2]
    """
    chunks = stages * vpp + less_one(stages)
    return Min(micro_batches, excess(chunks, 2 * less_one(stage_number)) / vpp)


@formula(
    glyph="L_{f,i}^{un}",
    dimension=ONE,
    source=NARAYANAN,
    increasing="chunk_layers longer_chunks micro_batches stages vpp",
    decreasing="stage_number",
)
def uneven_chunks_in_flight(
    micro_batches: Any, stages: Any, vpp: Any, chunk_layers: Any, longer_chunks: Any, stage_number: Any
) -> Any:
    """Layers of which device i holds a micro-batch's activations where its first chunks have a layer more.

    l_c min(v m_b, N) + min(v_+ m_b, N, 2 p v_+), where N = p v + p - 1 - 2 (i - 1) passes of a chunk are in flight
    (`interleaved_stage_in_flight`), chunks have l_c layers, and the first v_+ of the v chunks one more.

    Assumes: p divides m_b and m_b > p, as interleaved schedules run.

    Source: derivation: forward passes go through the chunks p micro-batches at a time, backward passes in the opposite
    order of chunks. When the first v_+ chunks have just been passed forward, these hold the most: two groups of p, or
    all that is in flight. Order of Narayanan et al. 2021 section 2.2.2; held against event-by-event runs.

    >>> [uneven_chunks_in_flight(64, 4, 2, 3, b, 1) for b in (0, 1, 2)]
    [33, 41, 44]
    """
    passes = excess(stages * vpp + less_one(stages), 2 * less_one(stage_number))
    held = chunk_layers * Min(vpp * micro_batches, passes)
    return held + Min(longer_chunks * micro_batches, passes, 2 * stages * longer_chunks)


@formula(
    glyph="L_i",
    dimension=ONE,
    source=NARAYANAN,
)
def uneven_stage_layers(num_layers: Any, stages: Any, stage_number: Any) -> Any:
    """Layers of stage i where stages differ by one at most: ceil((L - i + 1) / p).

    Assumes: the first L mod p stages have one more.

    Source: derivation: layer j goes to stage j mod p in number; i has those of i, i + p, i + 2p, ... up to L.

    >>> [uneven_stage_layers(10, 4, i) for i in (1, 2, 3, 4)]
    [3, 3, 2, 2]
    """
    return ceil_div(num_layers - less_one(stage_number), stages)


@formula(
    glyph="e_1",
    dimension=ONE,
    source=NARAYANAN,
    decreasing="stage_number",
)
def is_first_stage(stage_number: Any) -> Any:
    """One for the first stage, which has the tables; else 0.

    Assumes: stages count from 1.

    Source: Narayanan et al. 2021 section 2.2.

    >>> [is_first_stage(i) for i in (1, 2, 3)]
    [1, 0, 0]
    """
    return complement(above_one(stage_number))


@formula(
    glyph="e_p",
    dimension=ONE,
    source=NARAYANAN,
    increasing="stage_number",
    decreasing="stages",
)
def is_last_stage(stage_number: Any, stages: Any) -> Any:
    """One for the last stage, which has the head; else 0.

    Assumes: 1 <= i <= p.

    Source: Narayanan et al. 2021 section 2.2.

    >>> [is_last_stage(i, 3) for i in (1, 2, 3)], is_last_stage(1, 1)
    ([0, 0, 1], 1)
    """
    return complement(above_one(stages / stage_number))


@formula(
    glyph=r"M_{\xi}",
    dimension=BYTE,
    source=GMLAKE,
    increasing="fragmentation layer_bytes",
    curvature="affine",
)
def fragmentation_memory(layer_bytes: Any) -> Any:
    """Bytes that the allocator loses between blocks: xi A for A bytes of activations.

    Assumes: blocks of activations come and go, those of state stay; xi is measured, or 0.

    Source: Guo et al. 2024: of what PyTorch's caching allocator reserves, blocks that fit no request.

    >>> from sympy import symbols
    >>> fragmentation_memory(symbols("A"))
    A*fragmentation
    """
    return fragmentation * layer_bytes
