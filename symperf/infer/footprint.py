"""Bytes on the fullest device of an inference, as named terms."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..formulas.generation import decode as dec
from ..formulas.kernels import latent_attention as mla
from ..formulas.kernels.disentangled_attention import disentangled_elements
from ..formulas.language.atoms import Max, Min, above_one, ceil_div
from ..formulas.language.symbols import (
    activation_bytes,
    batch,
    collective_buffer_bytes,
    context_bytes,
    dispatch_element_bytes,
    dp,
    expert_intermediate_size,
    expert_tp,
    generate,
    hidden_size,
    index_key_bytes,
    intermediate_size,
    kv_block,
    kv_bytes,
    kv_lora_rank,
    micro_batch,
    num_attention_heads,
    num_experts_per_token,
    num_key_value_heads,
    num_labels,
    num_streams,
    pp,
    prompt,
    qk_rope_head_dim,
    relative_rows,
    sliding_window,
    ssm_chunk_size,
    stage_number,
    state_bytes,
    statistic_bytes,
    table_bytes,
    tp,
    vocab_size,
    weight_bytes,
    workspace_bytes,
)
from ..formulas.memory import model_state
from ..formulas.memory.parameters import linear_parameters
from ..formulas.memory.stage_memory import fragmentation_memory, is_first_stage, is_last_stage
from ..models import attention_widths as widths
from ..models import counts, layer_counts, near_counts
from ..models import sparse_counts as sparse
from ..models.architecture import RECURRENT
from ..models.own_sizes import in_own_sizes, of_kind
from ..operations.dealing import Dealing
from ..train.memory import device_counts as device
from ..train.memory.footprint import of_largest
from .compressed import CompressedAttention, compressed_cache_bytes
from .kernels import numbered_symbols
from .passes import dealing_of, layers_of, number_of
from .recurrent import Recurrent

if TYPE_CHECKING:
    from ..models.architecture import Architecture, LayerKind
    from ..operations.dealing import Dealing
    from .structure import InferenceStructure


def sequence_cache(structure: InferenceStructure, tokens: Any = None) -> Any:
    """Bytes that a device keeps of one sequence from step to step: caches that grow, an encoder's, and states.

    The last generated token is never read, but its slot is held.

    Args:
        structure: what gives it its form.
        tokens: of the sequence, by default all when they are generated.
    """
    return sum(sequence_terms(structure, tokens).values())


def sequence_terms(structure: InferenceStructure, tokens: Any = None) -> dict[str, Any]:
    """The same by kind: "" of the tokens, "cross" of the encoder's output, "state" whatever the length."""
    found = {"": _growing(structure, tokens), "cross": _cross_cache(structure), "state": _states(structure)}
    return {name: form for name, form in found.items() if form != 0}


def _growing(structure: InferenceStructure, tokens: Any) -> Any:
    kinds = structure.architecture.kinds
    if tokens is None:
        tokens = (1 if structure.architecture.stacks == 2 else prompt) + generate
    slots = dec.paged_tokens(tokens, kv_block)
    cached = [kind for kind in kinds if not (kind.encoder or kind.mixer == "none" or kind.mixer in RECURRENT)]
    return _of_fullest(structure, [(number_of(kind, len(kinds)), _layer_cache(kind, slots)) for kind in cached])


@in_own_sizes
def _layer_cache(kind: LayerKind, slots: Any) -> Any:
    index = slots * sparse.index_elements(kind) * index_key_bytes
    if kind.mixer == "latent_attention":
        return slots * mla.latent_cache_elements(kv_lora_rank, qk_rope_head_dim) * kv_bytes + index
    if kind.mixer == "compressed_attention":
        return compressed_cache_bytes(kind, slots)
    held = Min(slots, sliding_window) if kind.mixer == "local_attention" else slots
    heads = widths.made_heads(kind, ceil_div(num_key_value_heads, tp))
    return index + model_state.kv_cache_bytes(held, 1, heads, widths.stored_width(kind), kv_bytes)


def _cross_cache(structure: InferenceStructure) -> Any:
    kinds = structure.architecture.kinds
    slots = dec.paged_tokens(prompt, kv_block)
    # However little the decoder's tokens see of each other, they see the whole encoder.
    crossed = [replace(kind, mixer="attention") for kind in kinds if kind.cross]
    return _of_fullest(structure, [(number_of(kind, len(kinds)), _layer_cache(kind, slots)) for kind in crossed])


def _states(structure: InferenceStructure) -> Any:
    layers = layers_of(structure, "decode")
    kept = [
        (n, of_kind(mixer.sequence_bytes(), layer.kind))
        for layer, n in layers
        for mixer in layer.mixers
        if isinstance(mixer, (Recurrent, CompressedAttention))
    ]
    held = ceil_div(num_key_value_heads, tp)
    kept += [
        (n, of_kind(near_counts.state_bytes(layer.kind, held), layer.kind))
        for layer, n in layers
        if "convolved" in layer.kind.traits
    ]
    return _of_fullest(structure, kept)


def _of_fullest(structure: InferenceStructure, kept: list[tuple[Any, Any]]) -> Any:
    """Bytes on the stage that has most, given how many layers of each kind the model has and the bytes of one."""
    dealing = dealing_of(structure)
    if dealing.differs and kept:
        return Max(*dealing.on_deciding(sum(dealing.layers_of(n) * size for n, size in kept)))
    return sum(n / pp * size for n, size in kept)


def activations(structure: InferenceStructure) -> Any:
    """Bytes of the largest set of activations alive at once: the stream, one block's inner tensors, and outputs."""
    architecture = structure.architecture
    layers = [layer for layer, _ in layers_of(structure, "prefill")]
    blocks = [of_kind(_mixer_features(mixer), layer.kind) for layer in layers for mixer in layer.mixers]
    # Behind the first of mixers side by side waits its result; a shared block reads a wide copy, and the embedding.
    waiting = Max(*((3 if kind.shared else len(kind.beside)) for kind in architecture.kinds)) * hidden_size
    matrices = 3 if architecture.gated_mlp else 2
    dense = [kind for kind in architecture.kinds if kind.ffn in ("dense", "dense_experts")]
    blocks += dict.fromkeys(of_kind(matrices * intermediate_size / tp, kind) for kind in dense)
    if architecture.routed:
        rows = (1 + arrived_share(structure)) * layer_counts.expert_hidden(architecture)
        experts = num_experts_per_token * (matrices * expert_intermediate_size / expert_tp + rows)
        experts = experts / tp if structure.experts_dealt else experts
        routed = [kind for kind in architecture.kinds if kind.ffn in ("experts", "dense_experts")]
        blocks += dict.fromkeys(of_kind(experts, kind) for kind in routed)
    tokens = micro_batch * prompt
    stored = not structure.fusion.fused_prefill and architecture.has("attention", "local_attention")
    scores = micro_batch * num_attention_heads / tp * prompt**2 * activation_bytes if stored else 0
    if architecture.positions == "disentangled":
        scores = disentangled_elements(micro_batch, prompt, relative_rows, num_attention_heads / tp) * activation_bytes
    # A residual stream, or several of which one is mixed at a time, and what a block reads.
    width = hidden_size * ((num_streams if architecture.hyper_connections else 1) + 1)
    alive = tokens * activation_bytes * (width + Max(*blocks) + waiting)
    return alive + scores + _chunk_states(structure) + _outputs(structure)


def arrived_share(structure: InferenceStructure) -> Any:
    """Bytes of a row that arrived at an expert, over those of a row of activations."""
    as_sent = structure.of_class("experts").mixed_rates and dispatch_element_bytes.name in structure.sent
    return dispatch_element_bytes / activation_bytes if as_sent else 1


def _mixer_features(mixer: Any) -> Any:
    """Features of a token that are alive at once inside of a mixer, on one device."""
    if isinstance(mixer, (Recurrent, CompressedAttention)):
        return mixer.scratch
    return widths.core_width(mixer.layer.kind) * (2 * mixer.heads + 2 * ceil_div(num_key_value_heads, tp))


def _chunk_states(structure: InferenceStructure) -> Any:
    """Bytes of the states of all chunks of a scan, which are alive between its kernels; Mamba-1 keeps none."""
    states = [
        of_kind(mixer.state, layer.kind)
        for layer, _ in layers_of(structure, "prefill")
        for mixer in layer.mixers
        if isinstance(mixer, Recurrent) and mixer.chunked
    ]
    if not states:
        return 0
    chunks = micro_batch * ceil_div(prompt, ssm_chunk_size)
    return chunks * state_bytes * Max(*states)


def _outputs(structure: InferenceStructure) -> Any:
    """Bytes of what the head yields: logits of the last tokens, of all tokens, or of the classes."""
    head = structure.architecture.head
    rows = {"vocabulary": vocab_size, "transformed": prompt * vocab_size, "labels": num_labels}
    return micro_batch * rows.get(head, hidden_size if head == "pooled" else 0) * statistic_bytes


def _weights(structure: InferenceStructure) -> dict[str, Any]:
    """Bytes of weights of layers and of ends: of each the most that a stage has, or those of the fullest stage."""
    architecture, dealing = structure.architecture, dealing_of(structure)
    layers = sum(device.dealt_parameters(architecture, dealing.layers_of))
    layers = model_state.weights_memory(layers, weight_bytes)
    layers += sum(_apart(structure, dealing, other.classes) for other in structure.others)
    if structure.kept or structure.others:
        # Told apart, norms and routers have 16 bits; where all classes have one format they are as narrow, and few.
        layers += _apart(structure, dealing, (*structure.kept, "rest"))
    head = weight_bytes_of(structure, "head") / table_bytes if structure.narrow_head else 1
    table = weight_bytes_of(structure, "embedding") / table_bytes if structure.narrow_table else 1
    if dealing.differs:
        ends = model_state.weights_memory(_stage_ends(architecture, head, table), table_bytes)
        return of_largest({"weights/layers": layers, "weights/ends": ends}, dealing)
    parameters = counts.stage_end_parameters(architecture, head_weight=head, table_weight=table)
    ends = model_state.weights_memory(parameters, table_bytes)
    return {"weights/layers": layers, "weights/ends": ends}


def _stage_ends(architecture: Architecture, head_weight: Any, table_weight: Any) -> Any:
    """Parameters of the ends on stage i; a tied table is copied to the last stage of several."""
    last = counts.final_norm_parameters(architecture) + head_weight * counts.head_parameters(architecture, tp)
    if architecture.tied_embeddings:
        last += above_one(pp) * table_weight * linear_parameters(hidden_size, ceil_div(vocab_size, tp))
    tables = table_weight * counts.embedding_parameters(architecture, tp)
    return is_first_stage(stage_number) * tables + is_last_stage(stage_number, pp) * last


def weight_bytes_of(structure: InferenceStructure, name: str) -> Any:
    """Bytes of a weight of a class of modules, or of the rest of a layer."""
    if name in (*structure.kept, "rest"):
        return table_bytes
    number = structure.of_class(name).format
    return weight_bytes if number == 1 else numbered_symbols(number)[weight_bytes]


def _apart(structure: InferenceStructure, dealing: Dealing, classes: tuple[str, ...]) -> Any:
    """Bytes by which weights of some classes on a stage, of one format, are larger than if they had that of most."""
    own = tuple(name for name in classes if name not in ("head", "embedding"))
    if not own:
        return 0
    kinds = structure.architecture.kinds
    held = sum(
        dealing.layers_of(number_of(kind, len(kinds))) * sum(device.class_parameters(structure.architecture, kind, own))
        for kind in kinds
    )
    return held * (weight_bytes_of(structure, own[0]) - weight_bytes)


def footprint(structure: InferenceStructure) -> dict[str, Any]:
    """Named terms of the memory; a total is their sum."""
    kept = {f"kv_cache/{name}" if name else "kv_cache": form for name, form in sequence_terms(structure).items()}
    alive = activations(structure)
    return {
        **_weights(structure),
        **{name: batch / dp * form for name, form in kept.items()},
        "activations": alive,
        "workspace/fragmentation": fragmentation_memory(alive),
        "workspace/driver": context_bytes,
        "workspace/collectives": collective_buffer_bytes,
        "workspace/framework": workspace_bytes,
    }
