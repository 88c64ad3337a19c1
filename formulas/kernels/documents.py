"""Sequences of several documents that do not see each other, and how unlike their attention is.

A sequence of s tokens is packed with documents of lengths l, of whose law the moments are known. A kernel for sequences
of unequal lengths computes the pairs inside of documents alone. So a token costs what its own document has, and long
documents weigh by their tokens: l_doc = E[l^2] / E[l].
"""

from __future__ import annotations

from typing import Any

import sympy

from ..language.atoms import log2
from ..language.dimension import ONE
from ..language.formula import formula
from ..sources import BOUCHERON, DAO2, WLB_LLM


@formula(
    glyph="l_{tok}",
    dimension=ONE,
    source=WLB_LLM,
    increasing="squared_length",
    decreasing="mean_length",
    curvature="affine",
)
def token_document_length(mean_length: Any, squared_length: Any) -> Any:
    """Tokens of the document of a token, the mean over tokens: E[l^2] / E[l].

    Assumes: documents are drawn from one law; a sequence has the law's mean work for its tokens.

    Source: a document of l tokens has a part l / E[l] of the tokens and l for each: the law of lengths weighted by
    length. That attention costs a sequence the sum of l^2 of its documents: Wang et al. 2025.

    >>> token_document_length(100, 12500), token_document_length(100, 10000)
    (125, 100)
    """
    return squared_length / mean_length


@formula(
    glyph="n_{doc}",
    dimension=ONE,
    source=DAO2,
    increasing="sequence visible_pairs",
    decreasing="document_length",
    curvature="affine",
)
def packed_pairs(sequence: Any, document_length: Any, visible_pairs: Any) -> Any:
    """Pairs in a sequence packed with documents, from those n of one document of l_doc tokens: n s / l_doc.

    Assumes: a mask keeps documents apart, and a kernel skips what it hides (flash_attn_varlen_func). Exact for all
    pairs and for causal ones, whatever the lengths: s l_doc and s (l_doc + 1) / 2. Of windows it is an upper bound,
    exact where documents are alike: the mean pairs of a token are concave in the length of its document.

    Source: the sum of l (l + 1) / 2 over documents of s tokens together is s (E[l^2] / E[l] + 1) / 2.

    >>> from sympy import symbols
    >>> s, l = symbols("s l_doc")
    >>> packed_pairs(s, l, l * (l + 1) / 2)
    s*(l_doc + 1)/2
    """
    return sequence / document_length * visible_pairs


@formula(
    glyph=r"\kappa_{doc}",
    dimension=ONE,
    source=WLB_LLM,
    increasing="squared_excess",
    decreasing="document_length mean_length sequence",
    curvature="concave",
)
def attention_variation(squared_excess: Any, document_length: Any, mean_length: Any, sequence: Any) -> Any:
    """Relative standard deviation of the attention work of a packed sequence: sqrt(V_l / (E[l] s)) / (l_doc + 1).

    V_l = E[(l (l + 1) - (l_doc + 1) l)^2] is the mean square of what a document has beyond a mean one of its tokens.

    Assumes: s is many documents, which are independent; effects of the ends of sequences are left out.

    Source: of the s / E[l] documents of a sequence the excesses l (l + 1) - (l_doc + 1) l have mean 0, so that their
    sum has the variance s V_l / E[l], and the work has it beside the constant (l_doc + 1) s: the central limit theorem
    of renewal reward processes. That it differs, and what waits for it: Wang et al. 2025.

    >>> attention_variation(0, 100, 100, 4096), attention_variation(10**6, 99, 100, 10000)
    (0, 1/100)
    """
    return sympy.sqrt(squared_excess / (mean_length * sequence)) / (document_length + 1)


@formula(
    glyph="s_{doc}",
    dimension=ONE,
    source=BOUCHERON,
    increasing="document_variation ranks",
    decreasing="batch",
    curvature="concave",
)
def uneven_share(document_variation: Any, batch: Any, ranks: Any) -> Any:
    """What the largest of q sets of B sequences has beyond the mean one: at most 1.178 kappa_doc sqrt(log2(q) / B).

    B may be a part of a sequence. Sets are what waits for each other: the sequences of replicas in a step, those of
    micro-batches in a pipeline, the parts of one that devices of context parallelism have.

    Assumes: the work of sets is independent and normal; the expected maximum of q such deviations is at most
    sigma sqrt(2 ln q), and tends to it: for 2, 8 and 64 of them it is 0.48, 0.70 and 0.81 of that.

    Source: Boucheron, Lugosi and Massart 2013, section 2.5, as `straggler_share`.

    >>> from sympy import symbols
    >>> uneven_share(symbols("k"), symbols("B"), 1), uneven_share(symbols("k"), 1, symbols("q"))
    (0, 589*k*sqrt(log2(q))/500)
    """
    return sympy.Rational(1178, 1000) * document_variation * sympy.sqrt(log2(ranks) / batch)
