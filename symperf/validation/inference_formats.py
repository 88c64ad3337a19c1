"""The number formats of a row of inference."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ..infer.formats import FORMATS, KV_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..systems.system import System
    from .rows import TableRow

Q4_K: Final = 144 / 256
"""Bytes of a weight: 256 weights in 4 bits, 8 scales and minima in 6 bits, and two 16-bit factors (ggml block_q4_K)."""
Q6_K: Final = 210 / 256
"""Bytes of a weight: 256 weights in 6 bits, 16 scales of 8 bits and a 16-bit factor (ggml block_q6_K)."""
Q4_K_M_SIX: Final = 0.144
"""Share of the layers' weights that Q4_K_M keeps in Q6_K: `attn_v` and `ffn_down` of every second layer (use_more_bits
in llama.cpp's llama_tensor_get_type): (4096 x 1024 + 4096 x 14336) / 2 of 218,103,808 in Llama 3 8B, 0.142 in 70B."""
GGUF: Final[Mapping[str, dict[str, float]]] = {
    "q4_k_m": {"weight_bytes": Q4_K + Q4_K_M_SIX * (Q6_K - Q4_K), "table_bytes": Q6_K},
}
"""Bytes of a weight of layers and of tables (the head is kept in Q6_K), by the name of a file's format."""

WIDE: Final = ("tf32", "fp32")
"""Precisions of 32-bit elements, which `--precision` does not know; their rates are in the systems' files."""
ELEMENTS: Final = ("weight_bytes", "operand_bytes", "activation_bytes", "table_bytes", "kv_bytes")


@dataclass(frozen=True)
class Formats:
    """What a row's run takes.

    Attributes:
        precision: of weights and products; None: 16 bits.
        kv_precision: of the cache; None: 16 bits.
        values: of symbols.
    """

    precision: str | None
    kv_precision: str | None
    values: Mapping[str, Any] = field(default_factory=dict)


def formats_of(row: TableRow, system: System) -> Formats:
    """The formats of a row on its system.

    Raises:
        InputError: the device has no rate for elements of 32 bits that the row asks for.
    """
    words = [row.text(name).casefold() for name in ("weight_dtype", "precision")]
    cache = row.text("kv_dtype").casefold() or None
    if cache not in KV_BYTES:
        cache = None
    if words[0] in GGUF:
        return Formats("int4-weight", cache, GGUF[words[0]])
    if words[1] in WIDE:
        return Formats(None, cache, dict.fromkeys(ELEMENTS, 4.0) | {"matrix_rate": system.matrix_rate(words[1]).value})
    found = next((word for word in words if word in FORMATS), words[1].split(" ")[0] or None)
    return Formats(found, cache)
