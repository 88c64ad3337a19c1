"""Symbols of documents that share a sequence, or have one each, and of how unlike they are."""

from __future__ import annotations

from .entry import POSITIVE, ZERO_UP, add

document_length = add(
    "work",
    "document_length",
    "l_{doc}",
    "Tokens of the document in which a token lies, the mean over tokens: E[l^2] / E[l]. 0: one document a sequence.",
    domain=POSITIVE,
)
document_variation = add(
    "work",
    "document_variation",
    r"\kappa_{doc}",
    "Standard deviation of the attention work of a sequence of documents, as a part of its mean.",
    domain=ZERO_UP,
)
shard_variation = add(
    "work",
    "shard_variation",
    r"\kappa_{cp}",
    "The same as devices of context parallelism see it; 0 where each document is cut for all of them.",
    domain=ZERO_UP,
)
mean_length = add("formal", "mean_length", r"\bar{l}", "Mean tokens of a document, over documents.", domain=POSITIVE)
squared_length = add(
    "formal", "squared_length", "l_{sq}", "Mean square of the tokens of a document.", domain=POSITIVE
)
squared_excess = add(
    "formal",
    "squared_excess",
    "V_l",
    "Mean square of the pairs of a document beyond the mean ones of as many tokens.",
    domain=ZERO_UP,
)
