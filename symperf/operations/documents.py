"""How much more attention the slowest devices have, where sequences are packed with documents.

Devices of context parallelism wait for each other with every micro-batch, each with its parts of the sequences, and
replicas with every step. A pipeline waits while its longest micro-batch fills and drains it: of m micro-batches that
take t_k on each of p stages the time is the sum of t_k and (p - 1) times the largest of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.kernels.documents import uneven_share
from ..formulas.language.atoms import Min, bubble, less_one
from ..formulas.language.symbols import (
    batch,
    cp,
    document_length,
    document_variation,
    dp,
    micro_batch,
    pp,
    sequence,
    shard_variation,
    vpp,
)
from ..formulas.parallel.pipeline import micro_batch_count

if TYPE_CHECKING:
    from ..plans.structure import Structure


def uneven_shares(structure: Structure) -> dict[str, Any]:
    """What the slowest has beyond the mean, as a part of the attention of a step, by who waits for it.

    None has more than the pairs of one document that fills its sequences.
    """
    m, most = micro_batch_count(batch, micro_batch, dp), less_one(sequence / document_length)

    def share(variation: Any, sequences: Any, sets: Any) -> Any:
        return Min(uneven_share(variation, sequences, sets), most)

    slots = bubble(pp, vpp if structure.schedule == "interleaved" else 1)
    return {
        "context": share(shard_variation, micro_batch / cp, cp),
        "replicas": share(document_variation, batch / dp, dp),
        "micro_batches": share(document_variation, micro_batch, m) * slots / (m + slots),
    }
