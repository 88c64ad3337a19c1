"""Which training steps can have sequences that are packed with documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..models.architecture import RECURRENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..models.model import Model

MIXERS = ("attention", "local_attention", "latent_attention", "none", *RECURRENT)
"""Mixers of which it is known what documents of one sequence cost."""


def check_documents(
    model: Model, values: Mapping[str, float], sequence: int, *, flash: bool, images: bool
) -> tuple[str, ...]:
    """Refuse documents where it is not known what they cost; warn where their mask saves nothing.

    Raises:
        InputError: a length above the sequence, spreads without a length, or a model of another kind.
    """
    length = values.get("document_length", 0.0)
    if not length:
        for name in ("document_variation", "shard_variation"):
            if values.get(name):
                raise InputError(f"{name}: means something with document_length only, found none")
        return ()
    if length > sequence:
        raise InputError(f"document_length: found {length:g}, expected at most the {sequence} tokens of a sequence")
    architecture = model.architecture
    strange = any(
        kind.mixer not in MIXERS or {"indexer", "reused_index"} & {*kind.traits} for kind in architecture.kinds
    )
    if architecture.stacks == 2 or architecture.patches or architecture.spectra or strange or images:
        raise InputError(
            f"document_length: {model.name} is no decoder of texts whose attention is to all tokens or a window, "
            "expected one where sequences are packed with documents"
        )
    if not flash:
        return ("document_length: eager attention computes every pair of a sequence, so that documents save nothing",)
    return ()
