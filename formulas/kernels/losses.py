"""The loss after the head where kernels fuse it, take it chunk by chunk, or never store its logits.

N tokens and n columns of the vocabulary on the device. The unfused loss of Megatron-LM is in `embedding`.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import ceil_div
from ..language.dimension import BYTE, FLOP, ONE, SECOND
from ..language.formula import formula
from ..language.symbols import cut_efficiency, cut_kept, loss_metric_bytes
from ..sources import INTERNLM_METRICS, LIGER, TORCHTITAN_LOSS, WIJMANS


@formula(
    glyph="Q_{fl}",
    dimension=BYTE,
    source=LIGER,
    increasing="activation_bytes columns tokens",
    curvature="affine",
)
def fused_cross_entropy_bytes(tokens: Any, columns: Any, activation_bytes: Any) -> Any:
    """Bytes of a fused loss over N x n logits, forward: they are read twice, 2 N n w.

    Once for the largest, once for the sum of exponentials; nothing as long as the logits is written.

    Assumes: logits in the format of activations, cast in registers. A kernel with an online softmax reads them once.

    Source: counted from the kernels that torch.compile makes of F.cross_entropy on logits.float(), as torchtitan's
    components/loss.py has it; Hsu et al. 2024 (Liger Kernel) for the online softmax.

    >>> from sympy import symbols
    >>> fused_cross_entropy_bytes(*symbols("T n w"))
    2*T*n*w
    """
    return 2 * tokens * columns * activation_bytes


@formula(
    glyph="Q_{fl'}",
    dimension=BYTE,
    source=LIGER,
    increasing="activation_bytes columns tokens",
    curvature="affine",
)
def fused_cross_entropy_backward_bytes(tokens: Any, columns: Any, activation_bytes: Any) -> Any:
    """Bytes of the gradient of a fused loss: logits in, their gradient out in their place, 2 N n w.

    Assumes: in the format of activations; whether it runs in the forward pass (Liger, Transformer Engine) or later
    makes no difference to the sum of both.

    Source: as `fused_cross_entropy_bytes`.

    >>> from sympy import symbols
    >>> fused_cross_entropy_backward_bytes(*symbols("T n w"))
    2*T*n*w
    """
    return 2 * tokens * columns * activation_bytes


@formula(
    glyph="Q_{met}",
    dimension=BYTE,
    source=INTERNLM_METRICS,
    increasing="columns loss_metric_bytes tokens",
    curvature="affine",
)
def logit_metric_traffic(tokens: Any, columns: Any) -> Any:
    """Bytes of metrics over N x n logits, beside the loss: N n w_met.

    InternLM's accuracy and perplexity read 16-bit logits for the largest twice and for its place, subtract it (read and
    written), take exponentials in place (read and written) and sum them, and a loss by kind of data reads them once
    more: 9 passes, 18 bytes a logit.

    Assumes: bound by device memory; in every micro-batch.

    Source: counted from `AccPerplex.update` and `LossWithTypeId.update` of InternLM, internlm/model/metrics.py at
    220953d7.

    >>> from sympy import symbols
    >>> logit_metric_traffic(*symbols("T n"))
    T*loss_metric_bytes*n
    """
    return tokens * columns * loss_metric_bytes


@formula(
    glyph="n_{ch}",
    dimension=ONE,
    source=LIGER,
    increasing="columns",
    decreasing="hidden_size",
)
def linear_loss_chunks(columns: Any, hidden_size: Any) -> Any:
    """Chunks of tokens of a loss fused with the head's product: as many as the logits are wider than its input, n / h.

    So the logits of a chunk take no more memory than the input of all.

    Assumes: chunks of N h / n tokens; Liger rounds them up to a power of two, so that there are between half as many
    chunks and as many.

    Source: Hsu et al. 2024; Liger-Kernel, src/liger_kernel/ops/fused_linear_cross_entropy.py (inc_factor).

    >>> linear_loss_chunks(128256, 4096)
    32
    """
    return ceil_div(columns, hidden_size)


@formula(
    glyph="A_{fl}",
    dimension=BYTE,
    source=TORCHTITAN_LOSS,
    increasing="activation_bytes columns tokens",
    decreasing="chunks",
    curvature="affine",
)
def fused_logits_kept_bytes(tokens: Any, columns: Any, activation_bytes: Any, chunks: Any) -> Any:
    """Bytes of logits that a fused loss holds at once: those of one of n_ch chunks of tokens, N n w / n_ch.

    Assumes: the gradient takes the place of the logits; a chunk's backward pass follows its forward pass.

    Source: torchtitan/components/loss.py, ChunkedCELoss: peak memory from O(B L V) to O(B L / N V); in one chunk a
    fused loss keeps all.

    >>> from sympy import symbols
    >>> fused_logits_kept_bytes(*symbols("T n w C"))
    T*n*w/C
    """
    return tokens * columns * activation_bytes / chunks


@formula(
    glyph="T_{cut}",
    dimension=SECOND,
    source=WIJMANS,
    increasing="product_time",
    decreasing="cut_efficiency",
    curvature="affine",
)
def cut_product_time(product_time: Any) -> Any:
    """Time of the head's product where its logits stay on chip and only their log-sum-exp is written: T / eta_cut.

    It runs in the forward pass, and again in the backward pass.

    Assumes: a kernel in Triton that reaches the part eta_cut of the rate of the vendor's library.

    Source: Wijmans et al. 2025 (arXiv 2411.09009) section 4.2, algorithm 2.

    >>> from sympy import symbols
    >>> cut_product_time(symbols("T"))
    T/cut_efficiency
    """
    return product_time / cut_efficiency


@formula(
    glyph="T_{cut'}",
    dimension=SECOND,
    source=WIJMANS,
    increasing="cut_kept product_time",
    decreasing="cut_efficiency",
    curvature="affine",
)
def cut_gradient_time(product_time: Any) -> Any:
    """Time of a product for a gradient where blocks of logits without a weight are left out: phi T / eta_cut.

    Assumes: the part phi of the blocks has a probability that 16 bits can tell from 0.

    Source: Wijmans et al. 2025 (arXiv 2411.09009) section 4.3, algorithm 3: gradient filtering.

    >>> from sympy import symbols
    >>> cut_gradient_time(symbols("T"))
    T*cut_kept/cut_efficiency
    """
    return cut_kept * product_time / cut_efficiency


@formula(
    glyph="W_{cut'}",
    dimension=FLOP,
    source=WIJMANS,
    increasing="cut_kept work_flops",
    curvature="affine",
)
def cut_gradient_work(work_flops: Any) -> Any:
    """FLOPs of a product for a gradient where blocks of logits without a weight are left out: phi W.

    Assumes: as `cut_gradient_time`.

    Source: Wijmans et al. 2025 (arXiv 2411.09009) section 4.3.

    >>> from sympy import symbols
    >>> cut_gradient_work(symbols("W"))
    W*cut_kept
    """
    return cut_kept * work_flops
