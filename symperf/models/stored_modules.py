"""The matrices of a model one by one, and the bytes that its checkpoint has for each class of them.

A layer's matrices have the names of published checkpoints, by which files say how each is stored; where families name
one differently, it has several names. Embeddings, routers, norms and other vectors are never quantized.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from .quantization import HEAD, SIXTEEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .architecture import LayerKind
    from .model import Model
    from .quantization import Quantization, Stored

FOLDERS: dict[str, tuple[str, ...]] = {
    "attention": ("self_attn", "attention", "attn", "mixer"),
    "linear_attention": ("linear_attn", "self_attn", "mixer"),
    "state_space": ("mixer", "mamba", "linear_attn"),
    "dense_mlp": ("mlp", "feed_forward", "mixer"),
    "routed_experts": ("mlp.experts", "block_sparse_moe.experts", "feed_forward.experts", "mixer.experts"),
    "shared_experts": ("mlp.shared_experts", "mlp.shared_expert", "block_sparse_moe.shared_experts", "shared_mlp",
                       "feed_forward.shared_expert", "mixer.shared_experts"),
    "latent_experts": ("mixer", "mlp", "block_sparse_moe"),
    "router": (),
}  # fmt: skip
"""Classes of matrices, and what stands before a matrix's own name in files."""
RUN_CLASSES = {
    "attention": ("attention", "linear_attention", "state_space"),
    "mlp": ("dense_mlp",),
    "experts": ("routed_experts", "latent_experts"),
    "shared": ("shared_experts",),
    "head": ("lm_head",),
}
"""Classes of products of an inference, and those of matrices that they read."""
ALIASES = {
    **dict.fromkeys(("q_proj", "k_proj", "v_proj"), ("qkv_proj", "query_key_value", "qkv")),
    "gate_proj": ("gate_up_proj", "w1"),
    "up_proj": ("gate_up_proj", "w3"),
    "down_proj": ("w2",),
    "in_proj_qkv": ("q_proj",),
    "in_proj_z": ("g_proj",),
    "in_proj_b": ("b_proj",),
    "fc1_latent_proj": ("routed_expert_down_proj",),
    "fc2_latent_proj": ("routed_expert_up_proj",),
    "o_proj": ("dense", "out_proj"),
    "out_proj": ("o_proj",),
}
"""Other names of a matrix, that of one which holds it among them."""


@dataclass(frozen=True)
class Matrix:
    """Equal matrices of one layer.

    Attributes:
        group: their class.
        names: by which files may call one, from `layers.` on.
        rows: of results.
        columns: of inputs.
        copies: how many there are.
    """

    group: str
    names: tuple[str, ...]
    rows: int
    columns: int
    copies: int = 1


def matrices(model: Model) -> Iterator[Matrix]:
    """The matrices of a model, layer by layer, and its head; not its tables and vectors."""
    layer, uses = 0, 0
    for place, count in model.layers:
        kind = model.architecture.kinds[place]
        for _ in range(count):
            uses += kind.shared
            if uses <= model.sizes.get("num_shared_blocks", 0) or not kind.shared:
                yield from _of_layer(model, kind, f"layers.{layer}")
            layer += 1
    if not model.architecture.tied_embeddings and model.architecture.head in ("vocabulary", "transformed"):
        yield Matrix("lm_head", HEAD, model.sizes["vocab_size"], model.sizes["hidden_size"])


def _of_layer(model: Model, kind: LayerKind, layer: str) -> Iterator[Matrix]:
    def size(name: str) -> int:
        return model.sizes.get(kind.size(name), 0)

    mixers = [row for each in kind.alone for row in _mixer(model, each, size)]
    for group, name, rows, columns, copies in (*mixers, *_feed_forward(model, kind, size)):
        leaves = (name, *ALIASES.get(name, ()))
        folders = FOLDERS[group]
        if group == "routed_experts":
            folders += tuple(f"{folder}.0" for folder in folders)
        names = tuple(f"{layer}.{folder}.{leaf}" for folder in folders for leaf in leaves)
        yield Matrix(group, names, rows, columns, copies)


Row = tuple[str, str, int, int, int]


def _mixer(model: Model, kind: LayerKind, size: Callable[[str], int]) -> list[Row]:
    """Class, name, rows, columns and number of the matrices of a mixer."""
    h, heads = size("hidden_size"), size("num_attention_heads")
    if kind.mixer in ("attention", "local_attention"):
        width, kv_heads = heads * size("head_dim"), size("num_key_value_heads")
        values = size("v_head_dim" if "own_values" in kind.traits else "head_dim")
        one = model.architecture.shared_key_value and kind.mixer == "attention"
        reused, read = "reused_keys" in kind.traits, 2 * h if kind.reads_embedding else h
        found = [
            ("q_proj", width * (2 if model.architecture.attention_gate else 1), read),
            *([] if reused else [("k_proj", kv_heads * size("head_dim"), read)]),
            *([] if reused or one else [("v_proj", kv_heads * values, read)]),
            *([("g_proj", heads, h)] if model.architecture.head_gate else []),
            *([("r_proj", heads * size("distance_profiles"), h)] if "distance_bias" in kind.traits else []),
            ("o_proj", h, heads * values),
        ]
        return [("attention", *each, 2 if kind.cross else 1) for each in found]
    if kind.mixer == "latent_attention":
        query, rank = heads * (size("qk_nope_head_dim") + size("qk_rope_head_dim")), size("kv_lora_rank")
        inner = size("q_lora_rank")
        queries = [("q_a_proj", inner, h), ("q_b_proj", query, inner)] if inner else [("q_proj", query, h)]
        found = [
            *queries,
            ("kv_a_proj_with_mqa", rank + size("qk_rope_head_dim"), h),
            ("kv_b_proj", heads * (size("qk_nope_head_dim") + size("v_head_dim")), rank),
            ("o_proj", h, heads * size("v_head_dim")),
        ]
        if "indexer" in kind.traits:
            found += _indexer(size)
        if model.architecture.attention_gate:
            found.append(("g_proj", heads * size("v_head_dim"), h))
        return [("attention", *each, 1) for each in found]
    if kind.mixer == "compressed_attention":
        width, inner = heads * size("head_dim"), size("q_lora_rank")
        groups, rank = size("output_groups"), size("output_lora_rank")
        found = [
            ("q_a_proj", inner, h),
            ("q_b_proj", width, inner),
            ("kv_proj", size("head_dim"), h),
            ("o_a_proj", groups * rank, width // groups),
            ("o_b_proj", h, groups * rank),
        ]
        # Compressors and the weights of an indexer's heads stay in 16 bits, and are among the others.
        found += _indexer(size)[:1] if "selected_entries" in kind.traits else []
        return [("attention", *each, 1) for each in found]
    if kind.mixer == "linear_attention":
        keys = size("linear_num_key_heads") * size("linear_key_head_dim")
        values, number = size("linear_num_value_heads") * size("linear_value_head_dim"), size("linear_num_value_heads")
        found = [
            ("in_proj_qkv", 2 * keys + values, h),
            ("in_proj_b", number, h),
            ("out_proj", h, values),
            ("A_log", number, 1),
            *_decay(kind, size),
        ]
        return [("linear_attention", *each, 1) for each in found]
    if kind.mixer == "lightning_attention":
        width = size("linear_num_value_heads") * size("linear_value_head_dim")
        found = [("qkv_proj", 3 * width, h), ("output_gate", width, h), ("out_proj", h, width)]
        return [("attention", *each, 1) for each in found]
    return []


def _decay(kind: LayerKind, size: Callable[[str], int]) -> list[tuple[str, int, int]]:
    """Decays and gate of a delta rule, which may pass through narrow widths."""
    h, number = size("hidden_size"), size("linear_num_value_heads")
    keys, values = size("linear_key_head_dim"), size("linear_value_head_dim")
    found = [("in_proj_z", number * values, h)]
    if "narrow_gate" in kind.traits:
        found = [("g_a_proj", values, h), ("g_b_proj", number * values, values)]
    if "channel_decay" not in kind.traits:
        return [*found, ("in_proj_a", number, h), ("dt_bias", number, 1)]
    return [*found, ("f_a_proj", keys, h), ("f_b_proj", number * keys, keys), ("dt_bias", number * keys, 1)]


def _indexer(size: Callable[[str], int]) -> list[tuple[str, int, int]]:
    """Queries and key of an indexer; the weights of its heads stay in 16 bits."""
    width = size("index_head_dim")
    queries = ("indexer.wq_b", size("index_num_heads") * width, size("q_lora_rank"))
    return [queries, ("indexer.wk", width, size("hidden_size"))]


def _feed_forward(model: Model, kind: LayerKind, size: Callable[[str], int]) -> list[Row]:
    """The same of a feed-forward block."""
    architecture, h = model.architecture, size("hidden_size")
    names = ("gate_proj", "up_proj") if architecture.gated_mlp else ("up_proj",)

    def mlp(group: str, width: int, outer: int, copies: int = 1) -> list[Row]:
        return [*((group, name, width, outer, copies) for name in names), (group, "down_proj", outer, width, copies)]

    found: list[Row] = []
    if kind.ffn in ("dense", "dense_experts"):
        found += mlp("dense_mlp", size("intermediate_size"), h)
    if kind.ffn in ("experts", "dense_experts"):
        outer = size("moe_latent_size") if architecture.latent_experts else h
        found += mlp("routed_experts", size("expert_intermediate_size"), outer, size("num_experts"))
        found.append(("router", "gate", size("num_experts"), h, 1))
        if architecture.latent_experts:
            found += [
                ("latent_experts", "fc1_latent_proj", outer, h, 1),
                ("latent_experts", "fc2_latent_proj", h, outer, 1),
            ]
        if architecture.shared_experts:
            found += mlp("shared_experts", size("shared_expert_intermediate_size"), h)
    return found


def _format(quantization: Quantization | None, matrix: Matrix) -> Stored:
    if quantization is None or matrix.group == "router" or matrix.columns == 1:
        return SIXTEEN
    if matrix.group == "latent_experts" and quantization.method == "compressed-tensors":
        # Kimi-K3's file speaks of all linear layers but these, and its checkpoint has them in 16 bits.
        return SIXTEEN
    return quantization.of(matrix.names)


def class_bytes(model: Model, total: int) -> list[dict[str, Any]]:
    """Parameters, and bytes of weights and scales of a checkpoint, by class of modules and format.

    Args:
        model: whose checkpoint it is.
        total: its parameters: what is in no matrix of a layer or the head are tables, norms and other vectors.

    Returns:
        Objects with `module_class`, `format`, `parameters`, `weight_bytes` and `scale_bytes`.
    """
    found: dict[tuple[str, str], list[int]] = {}
    for matrix in matrices(model):
        stored = _format(model.quantization, matrix)
        row = found.setdefault((matrix.group, stored.name), [0, 0, 0])
        shape = matrix.rows, matrix.columns
        row[0] += matrix.copies * matrix.rows * matrix.columns
        row[1] += matrix.copies * stored.weight_bytes(*shape)
        row[2] += matrix.copies * stored.scale_bytes(*shape)
    count = 0 if model.architecture.patches else 2 if model.architecture.encoder_table else 1
    tables = count * model.sizes["vocab_size"] * model.sizes["hidden_size"]
    rest = total - tables - sum(row[0] for row in found.values())
    found["embedding", "bf16"], found["others", "bf16"] = [tables, 2 * tables, 0], [rest, 2 * rest, 0]
    names = "module_class", "format", "parameters", "weight_bytes", "scale_bytes"
    return [dict(zip(names, (*key, *row), strict=True)) for key, row in found.items() if row[0]]


def with_classes(model: Model) -> Model:
    """The model whose quantization says the format of each class of products: that of most weights of it.

    Raises:
        InputError: no module of the model has a format below 16 bits.
    """
    quantization = model.quantization
    if quantization is None:
        return model
    counts: dict[str, dict[Stored, int]] = {name: {} for name in RUN_CLASSES}
    below = False
    for matrix in matrices(model):
        stored = _format(quantization, matrix)
        below |= stored != SIXTEEN
        for name, groups in RUN_CLASSES.items():
            if matrix.group in groups:
                size = matrix.copies * matrix.rows * matrix.columns
                counts[name][stored] = counts[name].get(stored, 0) + size
    if not below:
        raise InputError(f"{quantization.where}: no module of the model is quantized, expected a format that some has")
    formats = tuple((name, max(each, key=each.__getitem__)) for name, each in counts.items() if each)
    mixed = [name for name, each in counts.items() if len(each) > 1]
    warnings = model.warnings
    if mixed:
        warnings += (f"weights of {' and '.join(mixed)} are stored in several formats: runs take that of most",)
    weights = tuple((name, sum(each.values())) for name, each in counts.items() if each)
    return replace(model, quantization=replace(quantization, formats=formats, weights=weights), warnings=warnings)
