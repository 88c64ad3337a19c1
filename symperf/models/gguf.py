"""The files that llama-quantize writes: which type each matrix of a model gets in a file of a name such as Q4_K_M.

A file has a default type, and rules that give some matrices another: by what a matrix is, by its layer, and by the
model. They are those of llama.cpp's `llama_tensor_get_type_impl` (src/llama-quant.cpp at 007dbbf3), as a table; of
several rules for a matrix the first holds. Files are taken as written without an importance matrix, but for those that
need one (IQ1, IQ2, IQ3_XXS and Q2_K_S). Norms, routers and other vectors are not quantized.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .stored_modules import RUN_CLASSES, Matrix, matrices

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .model import Model

TYPES: Final[Mapping[str, tuple[int, int]]] = {
    "q4_0": (18, 32),
    "q4_1": (20, 32),
    "q5_0": (22, 32),
    "q5_1": (24, 32),
    "q8_0": (34, 32),
    "q2_k": (84, 256),
    "q3_k": (110, 256),
    "q4_k": (144, 256),
    "q5_k": (176, 256),
    "q6_k": (210, 256),
    "iq1_s": (50, 256),
    "iq1_m": (56, 256),
    "iq2_xxs": (66, 256),
    "iq2_xs": (74, 256),
    "iq2_s": (82, 256),
    "iq3_xxs": (98, 256),
    "iq3_s": (110, 256),
    "iq4_nl": (18, 32),
    "iq4_xs": (136, 256),
    "tq1_0": (54, 256),
    "tq2_0": (66, 256),
}
"""Types of matrices: bytes of a block and its weights (ggml-common.h: the size that each block is asserted to have)."""
FILES: Final[Mapping[str, str]] = {
    **{name: name for name in ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q6_k", "iq1_s", "iq1_m", "iq2_xxs")},
    **{name: name for name in ("iq2_xs", "iq3_xxs", "iq3_s", "iq4_nl", "iq4_xs", "tq1_0", "tq2_0")},
    **dict.fromkeys(("q3_k_s", "q3_k_m", "q3_k_l"), "q3_k"),
    **dict.fromkeys(("q4_k_s", "q4_k_m"), "q4_k"),
    **dict.fromkeys(("q5_k_s", "q5_k_m"), "q5_k"),
    **dict.fromkeys(("iq3_xs", "iq3_m"), "iq3_s"),
    "q2_k_s": "q2_k",
    "iq2_s": "iq2_xs",
    "iq2_m": "iq2_s",
}
"""Files by name, each with its default type."""
SMALLEST: Final = ("iq2_xxs", "iq2_xs", "iq2_s", "iq2_m", "iq1_s", "iq1_m")
FALLBACK: Final[Mapping[str, str]] = {
    **dict.fromkeys(("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_xs"), "iq4_nl"),
    **dict.fromkeys(("q2_k", "q3_k", "tq1_0", "tq2_0"), "q4_0"),
    "q4_k": "q5_0",
    "q5_k": "q5_1",
    "q6_k": "q8_0",
}
"""The type of a matrix whose rows are no whole blocks of the one that it would have."""
FUSED: Final = ("phi3", "gpt2", "gpt_neox", "falcon", "bloom", "mpt")
"""Families whose files have queries, keys and values in one matrix, which has the type of values."""
SEVENTY_BILLION: Final = ("llama", "qwen2")
"""Families whose models of 80 layers llama.cpp takes for 70 B, unless queries share no keys (65 B)."""
CATEGORIES: Final[Mapping[str, str]] = {
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "in_proj_qkv": "value",
    "o_proj": "output",
    "gate_proj": "gate",
    "up_proj": "up",
    "down_proj": "down",
}
"""What a matrix is, by the first of its names; others have the file's default type."""


@dataclass(frozen=True)
class Rule:
    """A type that some matrices have in some files.

    Attributes:
        of: what the matrices are; see `CATEGORIES`, and "embedding" and "head".
        files: by name; none: all.
        type: of the matrices.
        layers: of the matrices: "first 8" for the first eighth, "more" for those of `use_more_bits`, "below 4" for the
            first four, "middle" for all but the first and the last eighth.
        model: "shared": at least four queries share a key; "apart": fewer do; "eight": it has eight experts; "not
            eight"; "many": it has four experts or more; "falcon"; "not falcon"; "70b".
    """

    of: str
    files: tuple[str, ...]
    type: str
    layers: str = ""
    model: str = ""


RULES: Final = (
    # The head, and a table that is the head too (`head` below).
    Rule("head", (), "q8_0", model="falcon"),
    Rule("head", (*SMALLEST, "iq3_xxs"), "q5_k"),
    Rule("head", ("q8_0",), "q8_0"),
    Rule("head", (), "q6_k"),
    Rule("embedding", ("iq2_xxs", "iq2_xs", "iq1_s", "iq1_m"), "q2_k"),
    Rule("embedding", ("iq2_s", "iq2_m", "iq3_xxs"), "iq3_s"),
    Rule("embedding", ("tq1_0", "tq2_0"), "q4_k"),
    # Values.
    Rule("value", SMALLEST, "q4_k", model="shared"),
    Rule("value", SMALLEST, "q4_k", model="many"),
    Rule("value", ("iq2_s", "iq2_m"), "iq3_s"),
    Rule("value", SMALLEST, "q2_k"),
    Rule("value", (), "q8_0", model="eight"),
    Rule("value", ("q3_k_s",), "q5_k", model="70b"),
    Rule("value", ("q2_k", "q2_k_s", "iq3_xxs", "iq3_xs", "iq3_s", "iq3_m"), "q5_k", model="70b"),
    Rule("value", ("q2_k",), "q4_k", model="shared"),
    Rule("value", ("q2_k",), "q3_k"),
    Rule("value", ("q2_k_s", "iq3_xxs", "iq3_xs", "iq3_s"), "q4_k", model="shared"),
    Rule("value", ("iq3_m",), "q4_k"),
    Rule("value", ("q3_k_m",), "q5_k", "below 2"),
    Rule("value", ("q3_k_m",), "q5_k", model="70b"),
    Rule("value", ("q3_k_m",), "q4_k"),
    Rule("value", ("q3_k_l",), "q5_k"),
    Rule("value", ("iq4_nl", "iq4_xs"), "q5_k", model="shared"),
    Rule("value", ("q4_k_m", "q5_k_m"), "q6_k", "more"),
    Rule("value", ("q4_k_s",), "q5_k", "below 4"),
    Rule("value", ("q4_k_s", "q4_k_m"), "q5_k", model="70b"),
    # Keys and queries.
    Rule("key", SMALLEST, "q4_k", model="eight"),
    Rule("key", (), "q8_0", model="eight"),
    *(Rule(what, ("iq3_xs",), "iq3_xxs") for what in ("query", "key")),
    *(Rule(what, ("iq3_xxs",), "iq2_s") for what in ("query", "key")),
    # The matrices down.
    Rule("down", ("iq2_s", "iq2_m"), "iq3_s", "first 8"),
    Rule("down", SMALLEST, "q2_k", "first 8"),
    Rule("down", ("q2_k",), "q3_k"),
    Rule("down", ("q2_k_s",), "q4_k", "first 8"),
    Rule("down", ("q3_k_m",), "q5_k", "first 16"),
    Rule("down", ("q3_k_m",), "q4_k", model="not falcon"),
    Rule("down", ("q3_k_m",), "q4_k", "more"),
    Rule("down", ("iq3_m",), "q4_k", "first 8"),
    Rule("down", ("iq3_m",), "q4_k", "more", "eight"),
    Rule("down", ("q3_k_l",), "q4_k", model="falcon"),
    Rule("down", ("q3_k_l",), "q5_k"),
    Rule("down", ("q4_k_m",), "q6_k", "first 16", "falcon"),
    Rule("down", ("q4_k_m",), "q5_k", "more", "falcon"),
    Rule("down", ("q4_k_m",), "q6_k", "more", "not falcon"),
    Rule("down", ("iq4_nl", "iq4_xs"), "q5_k", "first 8"),
    Rule("down", ("q5_k_m",), "q6_k", "more"),
    Rule("down", ("q4_k_s",), "q5_k", "first 8", "not falcon"),
    # The matrix behind attention.
    Rule("output", SMALLEST, "q5_k", model="eight"),
    Rule("output", ("iq1_s", "iq1_m"), "iq2_xxs"),
    Rule("output", ("iq2_s", "iq2_m"), "iq3_s"),
    Rule("output", ("q3_k_l",), "q4_k", model="falcon"),
    *(
        Rule("output", (name,), "q5_k", model="eight")
        for name in ("q2_k", "iq3_xs", "iq3_xxs", "q3_k_s", "q3_k_m", "iq4_nl", "q4_k_s", "q4_k_m", "iq3_s", "iq3_m")
    ),
    Rule("output", ("iq4_xs",), "q5_k", model="eight"),
    Rule("output", ("q2_k",), "q3_k", model="not falcon"),
    Rule("output", ("iq3_xxs",), "iq3_s", model="not falcon"),
    Rule("output", ("q3_k_m", "iq3_m"), "q4_k", model="not falcon"),
    Rule("output", ("q3_k_l",), "q5_k"),
    # The matrices up.
    *(Rule(what, ("iq3_xs",), "iq3_xxs", "middle") for what in ("gate", "up")),
)


def bytes_of(name: str, rows: int, columns: int) -> int:
    """Bytes of a matrix in a type."""
    size, count = TYPES[name]
    return rows * columns // count * size


def _in_layers(rule: str, layer: int, layers: int) -> bool:
    """Whether a rule is of a layer; divisions are whole as in the source."""
    word, _, number = rule.partition(" ")
    match word:
        case "first":
            return layer < layers // int(number)
        case "below":
            return layer < int(number)
        case "middle":
            return layers // 8 <= layer < 7 * layers // 8
        case "more":
            return layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2
    return True


@dataclass(frozen=True)
class File:
    """A file of a model.

    Attributes:
        name: such as "q4_k_m".
        model: whose file it is.
    """

    name: str
    model: Model

    def _is(self, what: str) -> bool:
        """Whether the model is what a rule asks for."""
        sizes = self.model.sizes
        experts, shared = sizes.get("num_experts", 0), self._sharing
        match what:
            case "shared" | "apart":
                return (shared >= 4) == (what == "shared")
            case "eight" | "not eight":
                return (experts == 8) == (what == "eight")
            case "many":
                return experts >= 4
            case "falcon" | "not falcon":
                return (self.model.family == "falcon") == (what == "falcon")
            case "70b":
                return self.model.family in SEVENTY_BILLION and sizes["num_layers"] == 80 and shared > 1
        return True

    @property
    def _sharing(self) -> int:
        sizes = self.model.sizes
        return sizes.get("num_attention_heads", 1) // (sizes.get("num_key_value_heads", 0) or 1)

    def type_of(self, what: str, columns: int, layer: int = 0, layers: int = 1) -> str:
        """The type of a matrix.

        Args:
            what: it is, of `CATEGORIES`; else it has the default type.
            columns: of its inputs.
            layer: its place among those of its kind, or of its layer.
            layers: how many there are.
        """
        found = FILES[self.name]
        if what == "head" and columns % TYPES[found][1]:
            return "q8_0"
        for rule in RULES:
            named = rule.of == what and (not rule.files or self.name in rule.files)
            if named and self._is(rule.model) and _in_layers(rule.layers, layer, layers):
                found = rule.type
                break
        return found if columns % TYPES[found][1] == 0 else FALLBACK.get(found, found)

    def matrices(self) -> Iterator[tuple[str, Matrix, str]]:
        """The class of products, the matrix and its type, of every matrix of the layers and the head."""
        classes = {group: name for name, groups in RUN_CLASSES.items() for group in groups}
        layers = self.model.sizes["num_layers"]
        quantized = (each for each in matrices(self.model) if each.group != "router" and each.columns > 1)
        every = [(matrix, self._category(matrix)) for matrix in quantized]
        values = {matrix.names[0].split(".")[1] for matrix, what in every if what == "value"}
        order = {layer: place for place, layer in enumerate(sorted(values, key=int))}
        for matrix, what in every:
            parts = matrix.names[0].split(".")
            layer = int(parts[1]) if len(parts) > 1 else 0
            place, count = (order.get(parts[1], 0), len(order)) if what == "value" else (layer, layers)
            yield classes[matrix.group], matrix, self.type_of(what, matrix.columns, place, count)

    def _category(self, matrix: Matrix) -> str:
        if matrix.group == "lm_head":
            return "head"
        leaf = matrix.names[0].rsplit(".", 1)[-1]
        found = CATEGORIES.get(leaf, "")
        return "value" if self.model.family in FUSED and found in ("query", "key") else found

    def table(self) -> str:
        """The type of the table of tokens, which is the head's where they are one."""
        tied = self.model.architecture.tied_embeddings
        return self.type_of("head" if tied else "embedding", self.model.sizes["hidden_size"])


def mean_bytes(name: str, model: Model) -> dict[str, tuple[float, int]]:
    """Mean bytes of a weight in a file, and weights, by class of products; the table of tokens is "embedding".

    Args:
        name: of the file.
        model: whose file it is.
    """
    file = File(name, model)
    totals: dict[str, list[int]] = {}
    for group, matrix, kind in file.matrices():
        found = totals.setdefault(group, [0, 0])
        found[0] += matrix.copies * bytes_of(kind, matrix.rows, matrix.columns)
        found[1] += matrix.copies * matrix.rows * matrix.columns
    vocabulary, hidden = model.sizes.get("vocab_size", 0), model.sizes["hidden_size"]
    totals["embedding"] = [bytes_of(file.table(), vocabulary, hidden), vocabulary * hidden]
    if model.architecture.tied_embeddings:
        totals["head"] = totals["embedding"]
    return {group: (size / count, count) for group, (size, count) in totals.items() if count}


def file_bytes(name: str, model: Model, parameters: int) -> int:
    """Bytes of the tensors of a file: matrices in their types, all else in FP32, as the converter writes it.

    Args:
        name: of the file.
        model: whose file it is.
        parameters: of the model.
    """
    found = mean_bytes(name, model)
    if model.architecture.tied_embeddings:
        found.pop("head")
    quantized = sum(count for _, count in found.values())
    return math.ceil(sum(each * count for each, count in found.values()) + 4 * (parameters - quantized))
