"""Optimizers: the state that they keep, and what an update moves and computes.

N parameters on one device. Those other than Adam in full precision keep a master copy of w_M bytes of each weight,
which mixed precision needs.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, Min
from ..language.dimension import BYTE, FLOP, ONE, SECOND
from ..language.formula import formula
from ..language.symbols import (
    block_scale_bytes,
    flop,
    gradient_bytes,
    gradient_sum_bytes,
    master_bytes,
    memory_bandwidth,
    memory_efficiency,
    moment_bytes,
    newton_schulz_bytes,
    newton_schulz_steps,
    optimizer_block,
    weight_bytes,
)
from ..sources import ADAFACTOR, DETTMERS, KINGMA, MICIKEVICIUS, MOONLIGHT, MUON


@formula(
    glyph="Q_{adam}",
    dimension=BYTE,
    source=KINGMA,
    increasing="gradient_bytes optimizer_bytes parameters weight_bytes",
    curvature="convex",
)
def adam_bytes(parameters: Any, weight_bytes: Any, gradient_bytes: Any, optimizer_bytes: Any) -> Any:
    """Bytes of a fused Adam step: gradient in, master weight and moments in and out, weight out.

    Assumes: one fused kernel; w_o bytes of state per parameter (12: FP32 master weight and two moments).

    Source: Kingma and Ba 2014 algorithm 1; FP32 master weights after Micikevicius et al. 2017 section 3.1.

    >>> from sympy import symbols
    >>> adam_bytes(*symbols("N w g o"))
    N*(g + 2*o + w)
    """
    return parameters * (gradient_bytes + 2 * optimizer_bytes + weight_bytes)


@formula(
    glyph="W_{adam}",
    dimension=FLOP,
    source=KINGMA,
    increasing="flop parameters",
    curvature="affine",
)
def adam_flops(parameters: Any) -> Any:
    """FLOPs of an Adam step on the vector units: 14 a parameter.

    Assumes: first moment 3, second moment 4, bias corrections 2, root, sum and quotient 3, weight update 2.

    Source: counted from Kingma and Ba 2014 algorithm 1.

    >>> from sympy import symbols
    >>> adam_flops(symbols("N"))
    14*N*flop
    """
    return 14 * parameters * flop


@formula(
    glyph="Q_{reset}",
    dimension=BYTE,
    source=MICIKEVICIUS,
    increasing="gradient_bytes parameters",
    curvature="affine",
)
def gradient_reset_bytes(parameters: Any, gradient_bytes: Any) -> Any:
    """Bytes to set the accumulated gradients to zero, w_g a parameter.

    Assumes: one kernel that writes; every replica resets its whole accumulator, ZeRO stage 1 or not.

    Source: counted from the operation; gradients are accumulated over micro-batches, Micikevicius et al. 2017.

    >>> from sympy import symbols
    >>> gradient_reset_bytes(*symbols("N g"))
    N*g
    """
    return parameters * gradient_bytes


@formula(
    glyph="T_{+}",
    dimension=SECOND,
    source=MICIKEVICIUS,
    increasing="gradient_sum_bytes parameters",
    decreasing="memory_bandwidth memory_efficiency",
    curvature="affine",
)
def gradient_sum_time(parameters: Any) -> Any:
    """Seconds in which kernels of their own add a pass's gradients to the accumulated ones, N w_+ / (eta_mem BW_mem).

    PyTorch's own accumulation in 16 bits reads both and writes one, 6 bytes a weight. DeepSpeed's optimizer for BF16
    casts each gradient to FP32 (2 read, 4 written) and adds it (8 read, 4 written), 18 bytes.

    Assumes: the kernels of the large weights alone, which are bound by device memory; one for each micro-batch.

    Source: counted from PyTorch, torch/csrc/autograd/functions/accumulate_grad.h (variable_grad += new_grad), and
    DeepSpeed, deepspeed/runtime/bf16_optimizer.py (update_hp_grads); accumulation as in Micikevicius et al. 2017.

    >>> from sympy import symbols
    >>> gradient_sum_time(symbols("N"))
    N*gradient_sum_bytes/(memory_bandwidth*memory_efficiency)
    """
    return parameters * gradient_sum_bytes / (memory_bandwidth * memory_efficiency)


@formula(
    glyph="Q_{clip}",
    dimension=BYTE,
    source=MICIKEVICIUS,
    increasing="gradient_bytes parameters",
    curvature="affine",
)
def gradient_clip_bytes(parameters: Any, gradient_bytes: Any) -> Any:
    """Bytes to take the norm of the accumulated gradients and scale them by it, 3 w_g a parameter.

    Assumes: a kernel that reads, and one that reads and writes; the norm exceeds its limit, so that scaling runs.

    Source: counted from the steps of gradient clipping as in Megatron-LM.

    >>> from sympy import symbols
    >>> gradient_clip_bytes(*symbols("N g"))
    3*N*g
    """
    return 3 * parameters * gradient_bytes


@formula(
    glyph="Q_{unscale}",
    dimension=BYTE,
    source=MICIKEVICIUS,
    increasing="gradient_bytes parameters",
    curvature="affine",
)
def gradient_unscale_bytes(parameters: Any, gradient_bytes: Any) -> Any:
    """Bytes to undo the loss scale and look for infinities, 2 w_g a parameter.

    Assumes: one kernel that reads and writes; FP16 training only.

    Source: Micikevicius et al. 2017 section 3.2 (loss scaling).

    >>> from sympy import symbols
    >>> gradient_unscale_bytes(*symbols("N g"))
    2*N*g
    """
    return 2 * parameters * gradient_bytes


@formula(
    glyph="M_{o8}",
    dimension=BYTE,
    source=DETTMERS,
    increasing="block_scale_bytes master_bytes moment_bytes parameters",
    decreasing="optimizer_block",
    curvature="convex",
)
def adam_8bit_memory(parameters: Any) -> Any:
    """Bytes of the state of Adam with 8-bit moments: N (w_M + 2 (w_mu + w_b / B_o)).

    Assumes: both moments of every parameter in 8 bits, in blocks of B_o with a scale each; a master copy.

    Source: Dettmers et al. 2022 section 2: block-wise quantisation, blocks of 2,048 elements.

    >>> from sympy import symbols
    >>> adam_8bit_memory(symbols("N"))
    N*(2*block_scale_bytes/optimizer_block + master_bytes + 2*moment_bytes)
    """
    return parameters * (master_bytes + 2 * (moment_bytes + block_scale_bytes / optimizer_block))


@formula(
    glyph="M_{sgd}",
    dimension=BYTE,
    source=MICIKEVICIUS,
    increasing="master_bytes moment_bytes parameters",
    curvature="convex",
)
def sgd_momentum_memory(parameters: Any) -> Any:
    """Bytes of the state of SGD with momentum: N (w_M + w_mu).

    Assumes: one moment, and a master copy of each weight.

    Source: Micikevicius et al. 2017 section 3.1 (master weights); one moment by definition.

    >>> from sympy import symbols
    >>> sgd_momentum_memory(symbols("N"))
    N*(master_bytes + moment_bytes)
    """
    return parameters * (master_bytes + moment_bytes)


@formula(
    glyph="n_r",
    dimension=ONE,
    source=ADAFACTOR,
    increasing="columns rows",
    curvature="convex",
)
def factored_elements(rows: Any, columns: Any) -> Any:
    """Elements of the factored second moment of a matrix: n + m for n rows and m columns.

    Assumes: sums over rows and over columns are kept in the place of the matrix.

    Source: Shazeer and Stern 2018 section 3: O(n + m) memory in the place of O(n m).

    >>> factored_elements(4096, 11008)
    15104
    """
    return rows + columns


@formula(
    glyph="M_{af}",
    dimension=BYTE,
    source=ADAFACTOR,
    increasing="factors master_bytes moment_bytes parameters",
    curvature="convex",
)
def adafactor_memory(parameters: Any, factors: Any) -> Any:
    """Bytes of the state of Adafactor: N w_M + n_r w_mu.

    Assumes: no first moment (beta_1 = 0, the paper's default); vectors keep their whole second moment, in n_r too.

    Source: Shazeer and Stern 2018 algorithms 4 and 5.

    >>> from sympy import symbols
    >>> adafactor_memory(*symbols("N n_r"))
    N*master_bytes + moment_bytes*n_r
    """
    return parameters * master_bytes + factors * moment_bytes


@formula(
    glyph="M_{mu}",
    dimension=BYTE,
    source=MOONLIGHT,
    increasing="master_bytes moment_bytes parameters",
    curvature="convex",
)
def muon_memory(parameters: Any) -> Any:
    """Bytes of the state of Muon for the matrices of hidden layers: N (w_M + w_mu).

    Assumes: one momentum buffer; embeddings, head and vectors are Adam's and not in N.

    Source: Liu et al. 2025 section 2.3: one momentum buffer against the two of AdamW.

    >>> from sympy import symbols
    >>> muon_memory(symbols("N"))
    N*(master_bytes + moment_bytes)
    """
    return parameters * (master_bytes + moment_bytes)


# Traffic of an update ---------------------------------------------------------------------------------------------


@formula(
    glyph="Q_{up}",
    dimension=BYTE,
    source=MICIKEVICIUS,
    increasing="element_bytes gradient_bytes parameters weight_bytes",
    curvature="convex",
)
def update_bytes(parameters: Any, element_bytes: Any) -> Any:
    """Bytes of a fused element-wise update: gradient in, w bytes of state in and out, weight out, N (w_g + 2 w + w_w).

    Assumes: one kernel; w bytes of state per parameter, whatever the optimizer.

    Source: counted from the operation, as `adam_bytes`.

    >>> from sympy import symbols
    >>> update_bytes(*symbols("N w"))
    N*(gradient_bytes + 2*w + weight_bytes)
    """
    return parameters * (gradient_bytes + 2 * element_bytes + weight_bytes)


@formula(
    glyph="Q_{af}",
    dimension=BYTE,
    source=ADAFACTOR,
    increasing="factors gradient_bytes master_bytes moment_bytes parameters weight_bytes",
    curvature="convex",
)
def adafactor_bytes(parameters: Any, factors: Any) -> Any:
    """Bytes of an Adafactor update: N (3 w_g + 3 w_M + w_w) + 2 n_r w_mu.

    Assumes: three kernels, each of which reads the gradient: sums of its square, the mean square of the update for
    clipping, the update. The scale of the step reads the master copy once more.

    Source: counted from Shazeer and Stern 2018 algorithms 4 and 5 (factored moments, update clipping, relative step).

    >>> from sympy import symbols
    >>> adafactor_bytes(*symbols("N n_r"))
    N*(3*gradient_bytes + 3*master_bytes + weight_bytes) + 2*moment_bytes*n_r
    """
    return parameters * (3 * gradient_bytes + 3 * master_bytes + weight_bytes) + 2 * factors * moment_bytes


@formula(
    glyph="Q_{mu}",
    dimension=BYTE,
    source=MUON,
    increasing="gradient_bytes moment_bytes newton_schulz_bytes parameters",
    curvature="convex",
)
def muon_momentum_bytes(parameters: Any) -> Any:
    """Bytes of Muon's momentum: gradient in, moment in and out, what is iterated on out, N (w_g + 2 w_mu + w_ns).

    Assumes: one kernel with Nesterov's look-ahead and the cast; the norm that scales the matrix is a sum in it.

    Source: counted from Jordan et al. 2024, the listing of the update.

    >>> from sympy import symbols
    >>> muon_momentum_bytes(symbols("N"))
    N*(gradient_bytes + 2*moment_bytes + newton_schulz_bytes)
    """
    return parameters * (gradient_bytes + 2 * moment_bytes + newton_schulz_bytes)


@formula(
    glyph="Q_{mu'}",
    dimension=BYTE,
    source=MUON,
    increasing="master_bytes newton_schulz_bytes parameters weight_bytes",
    curvature="convex",
)
def muon_apply_bytes(parameters: Any) -> Any:
    """Bytes to apply Muon's update: the orthogonal matrix in, master in and out, weight out, N (w_ns + 2 w_M + w_w).

    Assumes: one kernel, with decay and scale.

    Source: counted from Liu et al. 2025 section 2.2 (weight decay, scale by the larger side).

    >>> from sympy import symbols
    >>> muon_apply_bytes(symbols("N"))
    N*(2*master_bytes + newton_schulz_bytes + weight_bytes)
    """
    return parameters * (newton_schulz_bytes + 2 * master_bytes + weight_bytes)


@formula(
    glyph="W_{ns}",
    dimension=FLOP,
    source=MUON,
    increasing="columns flop newton_schulz_steps rows",
)
def newton_schulz_flops(rows: Any, columns: Any) -> Any:
    """FLOPs to orthogonalise a matrix: n_ns (4 k^2 l + 2 k^3) with k the smaller side and l the larger.

    Assumes: the quintic iteration: A = X X^T, then b A + c A A, then its product with X; no symmetry is used.

    Source: Jordan et al. 2024, runtime analysis: 2 (2 n m^2 + m^3) a step for n x m with m <= n.

    >>> newton_schulz_flops(3, 4), newton_schulz_flops(4, 3)
    (198*flop*newton_schulz_steps, 198*flop*newton_schulz_steps)
    """
    small, large = Min(rows, columns), Max(rows, columns)
    return newton_schulz_steps * (4 * small**2 * large + 2 * small**3) * flop


@formula(
    glyph="n_{mu}",
    dimension=BYTE,
    source=MOONLIGHT,
    increasing="newton_schulz_bytes parameters",
    curvature="affine",
)
def muon_gather_bytes(parameters: Any) -> Any:
    """Bytes that are gathered so that a device has whole matrices to iterate on: N w_ns.

    Assumes: N elements of whole matrices, of which each rank holds a shard; the report's upper bound, every matrix cut.

    Source: Liu et al. 2025 section 2.4, distributed Muon: one more gather than AdamW, in BF16.

    >>> from sympy import symbols
    >>> muon_gather_bytes(symbols("N"))
    N*newton_schulz_bytes
    """
    return parameters * newton_schulz_bytes
