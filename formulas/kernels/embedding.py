"""The ends of the model: token embedding, vocabulary-parallel head and cross-entropy loss.

N tokens of h features; a device holds n of the vocabulary's columns. The head's product is in `matmul`.
"""

from __future__ import annotations

from typing import Any

from ..language.dimension import BYTE
from ..language.formula import formula
from ..sources import SHOEYBI


@formula(
    glyph="Q_{emb}",
    dimension=BYTE,
    source=SHOEYBI,
    increasing="activation_bytes hidden_size index_bytes tokens",
    curvature="convex",
)
def embedding_bytes(tokens: Any, hidden_size: Any, activation_bytes: Any, index_bytes: Any) -> Any:
    """Bytes of an embedding look-up: an index and a row in, a row out, for each token.

    Assumes: rows are not reused in cache; in vocabulary parallelism every device writes its full result before the
    reduction.

    Source: counted from the operation in Shoeybi et al. 2019 section 3 (vocabulary-parallel embedding).

    >>> from sympy import symbols
    >>> embedding_bytes(*symbols("T h w w_i"))
    T*(2*h*w + w_i)
    """
    return tokens * (2 * hidden_size * activation_bytes + index_bytes)


@formula(
    glyph="Q_{emb'}",
    dimension=BYTE,
    source=SHOEYBI,
    increasing="activation_bytes gradient_bytes hidden_size tokens",
    curvature="convex",
)
def embedding_backward_bytes(tokens: Any, hidden_size: Any, activation_bytes: Any, gradient_bytes: Any) -> Any:
    """Bytes of the embedding's gradient: a gradient row in, and its accumulator read and written.

    Assumes: a scattered addition into the accumulated gradient.

    Source: counted from the operation in Shoeybi et al. 2019 section 3.

    >>> from sympy import symbols
    >>> embedding_backward_bytes(*symbols("T h w g"))
    T*h*(2*g + w)
    """
    return tokens * hidden_size * (activation_bytes + 2 * gradient_bytes)


@formula(
    glyph="Q_{loss}",
    dimension=BYTE,
    source=SHOEYBI,
    increasing="activation_bytes columns statistic_bytes tokens",
    curvature="convex",
)
def cross_entropy_bytes(tokens: Any, columns: Any, activation_bytes: Any, statistic_bytes: Any) -> Any:
    """Bytes of the loss over N x n logits, forward: nine passes in the statistic's format after a cast.

    Assumes: the unfused vocabulary-parallel cross-entropy of Megatron-LM, on logits cast to FP32: cast (read w, write
    w_s), maximum (1), subtraction in place (2), exponential in place (2), sum (1) and division in place (2).

    Source: counted from Megatron-LM core/tensor_parallel/cross_entropy.py; the algorithm is Shoeybi et al. 2019
    section 3.

    >>> from sympy import symbols
    >>> cross_entropy_bytes(*symbols("T n w c"))
    T*n*(9*c + w)
    """
    return tokens * columns * (activation_bytes + 9 * statistic_bytes)


@formula(
    glyph="Q_{loss'}",
    dimension=BYTE,
    source=SHOEYBI,
    increasing="activation_bytes columns statistic_bytes tokens",
    curvature="convex",
)
def cross_entropy_backward_bytes(tokens: Any, columns: Any, activation_bytes: Any, statistic_bytes: Any) -> Any:
    """Bytes of the loss's gradient over N x n logits: a scaling in place, then a cast to the activation format.

    Assumes: the stored probabilities become the gradient in place; subtracting one at the target is small.

    Source: counted from Megatron-LM core/tensor_parallel/cross_entropy.py.

    >>> from sympy import symbols
    >>> cross_entropy_backward_bytes(*symbols("T n w c"))
    T*n*(3*c + w)
    """
    return tokens * columns * (activation_bytes + 3 * statistic_bytes)
