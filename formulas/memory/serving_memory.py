"""Memory of a serving replica: what a step reserves, and what the software leaves for the cache.

Software reserves for the largest step that it may run, whatever it is asked, and gives the cache a part of the rest.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, above_one, complement
from ..language.dimension import BYTE, ONE
from ..language.formula import formula
from ..language.symbols import (
    memory_capacity,
    memory_utilization,
    sampling_copies,
    statistic_bytes,
    vocab_size,
    whole_contexts,
)
from ..sources import SGLANG_MEMORY, TORCH_SORT, TRTLLM_MEMORY, VLLM_MEMORY


@formula(
    glyph="n_{step}",
    dimension=ONE,
    source=VLLM_MEMORY,
    increasing="chunk whole_contexts",
)
def reserved_tokens(chunk: Any, context_tokens: Any) -> Any:
    """Tokens for which software reserves a step that may prefill a whole context: max(s_c, n_ctx), or s_c beyond n_wh.

    Assumes: longer contexts than n_wh are cut into chunks.

    Source: vLLM of 2024: a profiled step has max_model_len tokens (issue 8185), but of 35,000 tokens and more it is a
    chunk (issue 10517).

    >>> from symperf.formulas.language.symbols import whole_contexts
    >>> [reserved_tokens(2048, n).subs(whole_contexts, 32768) for n in (100, 20000, 35000)]
    [2048, 20000, 2048]
    """
    return Max(chunk, context_tokens * complement(above_one(context_tokens / whole_contexts)))


@formula(
    glyph="A_{smp}",
    dimension=BYTE,
    source=TORCH_SORT,
    increasing="rows sampling_copies statistic_bytes vocab_size",
    curvature="affine",
)
def sampling_memory(rows: Any) -> Any:
    """Bytes that sampling m sequences holds at once: kappa_smp m V w_s, counted in logits of 32 bits.

    Where they are sorted for top-p by PyTorch, kappa_smp is 9.5: logits of 16 bits (1/2) and of 32 (1), the sorted ones
    and their places in 64 bits (3), the places before (2), and as much again as CUB's second buffer of both (3).

    Assumes: every device samples all sequences, as after an all-gather of the logits.

    Source: aten/src/ATen/native/cuda/SortStable.cu, segmented_sort_pairs, with 128 rows or more.

    >>> sampling_memory(256)
    256*sampling_copies*statistic_bytes*vocab_size
    """
    return sampling_copies * rows * vocab_size * statistic_bytes


@formula(
    glyph="A_{prf}",
    dimension=BYTE,
    source=VLLM_MEMORY,
    increasing="hidden_bytes layer_bytes sampling_bytes",
    curvature="convex",
)
def profiled_memory(layer_bytes: Any, hidden_bytes: Any, sampling_bytes: Any) -> Any:
    """Bytes of the peak of a step: that inside a layer, or that of sampling beside the outputs of the last one.

    Assumes: a layer's tensors are gone before sampling.

    Source: vllm/v1/worker/gpu_worker.py, determine_available_memory: the peak of profile_run, a step of
    max_num_batched_tokens tokens and max_num_seqs sequences.

    >>> from sympy import symbols
    >>> profiled_memory(*symbols("A h s", positive=True))
    Max(A, h + s)
    """
    return Max(layer_bytes, hidden_bytes + sampling_bytes)


@formula(
    glyph="B_{tot}",
    dimension=BYTE,
    source=VLLM_MEMORY,
    increasing="memory_capacity memory_utilization",
    decreasing="rest_bytes",
)
def budget_of_total(rest_bytes: Any) -> Any:
    """Bytes for the cache where software takes a part of a device's memory for everything: upsilon C - W_R.

    Assumes: W_R is weights, the peak of a step, and what driver and libraries take.

    Source: vllm/v1/worker/gpu_worker.py, determine_available_memory: gpu_memory_utilization times the device's total
    memory, less the memory that is no cache.

    >>> from sympy import symbols
    >>> budget_of_total(symbols("W"))
    -W + memory_capacity*memory_utilization
    """
    return memory_utilization * memory_capacity - rest_bytes


@formula(
    glyph="B_{fre}",
    dimension=BYTE,
    source=TRTLLM_MEMORY,
    increasing="memory_capacity",
    decreasing="rest_bytes",
)
def budget_of_free(rest_bytes: Any) -> Any:
    """Bytes for the cache where it gets a part of the memory that is free without it: upsilon (C - W_R).

    Assumes: W_R is weights, the peak of a step, and what driver and libraries take.

    Source: TensorRT-LLM, free_gpu_memory_fraction; LMDeploy, cache_max_entry_count.

    >>> from sympy import symbols
    >>> budget_of_free(symbols("W"))
    -W*memory_utilization + memory_capacity*memory_utilization
    """
    return memory_utilization * memory_capacity - memory_utilization * rest_bytes


@formula(
    glyph="B_{sta}",
    dimension=BYTE,
    source=SGLANG_MEMORY,
    increasing="memory_capacity",
    decreasing="held_bytes runtime_bytes",
)
def budget_of_static(held_bytes: Any, runtime_bytes: Any) -> Any:
    """Bytes for the cache where weights and cache get a part of the memory: upsilon (C - W_X) - W_W.

    Assumes: upsilon counts what is free once driver and libraries hold theirs; a step finds room in the rest.

    Source: SGLang, mem_fraction_static: weights and the pool of the cache over the device's memory.

    >>> from sympy import symbols
    >>> budget_of_static(*symbols("W X"))
    -W - X*memory_utilization + memory_capacity*memory_utilization
    """
    return memory_utilization * memory_capacity - memory_utilization * runtime_bytes - held_bytes


@formula(
    glyph="W_{un}",
    dimension=BYTE,
    source=VLLM_MEMORY,
    increasing="memory_capacity",
    decreasing="budget_bytes rest_bytes",
)
def unused_memory(rest_bytes: Any, budget_bytes: Any) -> Any:
    """Bytes of a device that neither the cache nor anything else may have: C - W_R - B.

    With them a cache of q bytes fits where W_R + q + W_un <= C; where they are negative, where W_R + q <= C.

    Assumes: what is left stays free.

    Source: derivation: the device's memory less all that has a share in it.

    >>> from sympy import symbols
    >>> unused_memory(*symbols("R B"))
    -B - R + memory_capacity
    """
    return memory_capacity - rest_bytes - budget_bytes
