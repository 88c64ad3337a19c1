"""Bytes on the fullest device of an inference, as named terms."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.generation import decode as dec
from ..formulas.kernels.disentangled_attention import disentangled_elements
from ..formulas.language.atoms import Max, above_one, ceil_div, less_one
from ..formulas.language.symbols import (
    activation_bytes,
    batch,
    chunk,
    collective_buffer_bytes,
    context_bytes,
    cp,
    dispatch_element_bytes,
    dp,
    ep,
    exchange_tokens,
    expert_intermediate_size,
    expert_tp,
    generate,
    graph_bytes,
    hidden_size,
    intermediate_size,
    kv_block,
    max_num_seqs,
    micro_batch,
    num_attention_heads,
    num_experts,
    num_experts_per_token,
    num_key_value_heads,
    num_labels,
    num_streams,
    pp,
    prompt,
    redundant_experts,
    relative_rows,
    ssm_chunk_size,
    stage_number,
    state_bytes,
    statistic_bytes,
    step_tokens,
    table_bytes,
    tp,
    vocab_size,
    weight_bytes,
    workspace_bytes,
)
from ..formulas.memory import model_state
from ..formulas.memory import serving_memory as room
from ..formulas.memory.parameters import linear_parameters
from ..formulas.memory.stage_memory import fragmentation_memory, is_first_stage, is_last_stage
from ..formulas.parallel.expert_exchange import direct_exchange_buffer_bytes
from ..models import attention_widths as widths
from ..models import counts, layer_counts, near_counts
from ..models.architecture import RECURRENT
from ..models.own_sizes import of_kind
from ..operations.dealing import Dealing
from ..operations.groups import parts as context_parts
from ..train.memory import device_counts as device
from ..train.memory.footprint import of_largest
from .adapters import layer_adapters
from .attention import CachedAttention
from .compressed import CompressedAttention
from .draft_head import end_parameters
from .experts import REPLICAS
from .host_memory import buffers, cache_on_device, host_weights
from .layer_bytes import copied_share, layer_cache, weight_bytes_of
from .passes import dealing_of, layers_of, number_of
from .prefix import new_tokens
from .recurrent import Recurrent
from .split_context import cache_parts, key_bytes

if TYPE_CHECKING:
    from ..models.architecture import Architecture, LayerKind
    from ..operations.dealing import Dealing
    from .memory_rule import Rule
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
    if tokens is None:
        tokens = (1 if structure.architecture.stacks == 2 else prompt) + generate
    if structure.contexts_split:
        tokens = ceil_div(tokens, cache_parts(structure))
    slots = dec.paged_tokens(tokens, kv_block)
    growing = cache_on_device(structure, _growing(structure, slots), slots)
    found = {"": growing, "cross": _cross_cache(structure), "state": _states(structure)}
    return {name: form for name, form in found.items() if form != 0}


def _growing(structure: InferenceStructure, slots: Any) -> Any:
    kinds = structure.architecture.kinds
    cached = [kind for kind in kinds if not (kind.encoder or kind.mixer == "none" or kind.mixer in RECURRENT)]
    return _of_fullest(structure, [(number_of(kind, len(kinds)), layer_cache(kind, slots)) for kind in cached])


def whole_cache(structure: InferenceStructure) -> Any:
    """Bytes of the caches that grow of one sequence of one device, wherever they lie."""
    return _growing(structure, dec.paged_tokens(prompt + generate, kv_block))


def _cross_cache(structure: InferenceStructure) -> Any:
    kinds = structure.architecture.kinds
    slots = dec.paged_tokens(prompt, kv_block)
    # However little the decoder's tokens see of each other, they see the whole encoder.
    crossed = [replace(kind, mixer="attention") for kind in kinds if kind.cross]
    return _of_fullest(structure, [(number_of(kind, len(kinds)), layer_cache(kind, slots)) for kind in crossed])


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
    """Bytes of activations: of a chunk and of sampling for software that reserves them, else of all prompts at once."""
    if structure.step != "prompts":
        tokens = room.reserved_tokens(chunk, prompt + generate) if structure.step == "contexts" else chunk
        outputs = tokens * hidden_size * activation_bytes
        sampling = room.sampling_memory(max_num_seqs) if structure.architecture.head == "vocabulary" else 0
        return room.profiled_memory(_of_layers(structure, 1, tokens), outputs, sampling)
    return _of_layers(structure, micro_batch, new_tokens(structure)) + _outputs(structure)


def _of_layers(structure: InferenceStructure, sequences: Any, length: Any) -> Any:
    """Bytes of the largest set of activations alive at once in the layers: the stream, and one block's tensors.

    Args:
        structure: what gives them their form.
        sequences: of a step.
        length: new tokens of each.
    """
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
        if structure.experts_gathered:
            # A device's share of all tokens; and all of them, gathered, with the sums before they are scattered.
            experts = experts * REPLICAS / ep + 2 * REPLICAS * layer_counts.expert_hidden(architecture)
        routed = [kind for kind in architecture.kinds if kind.ffn in ("experts", "dense_experts")]
        blocks += dict.fromkeys(of_kind(experts, kind) for kind in routed)
    tokens = sequences * length / context_parts(structure)
    stored = not structure.fusion.fused_prefill and architecture.has("attention", "local_attention")
    scores = tokens * num_attention_heads / tp * prompt * activation_bytes if stored else 0
    if architecture.positions == "disentangled":
        scores = disentangled_elements(sequences, length, relative_rows, num_attention_heads / tp) * activation_bytes
    # A residual stream, or several of which one is mixed at a time, what a block reads, and what its last part gives.
    width = hidden_size * ((num_streams if architecture.hyper_connections else 1) + 2)
    alive = tokens * activation_bytes * (width + Max(*blocks) + waiting)
    if structure.context != "none":
        # The keys of one layer of all parts, or of the one at hand and the one that comes.
        held = 1 if structure.context == "all-gather" else 2 / cp
        mixers = [mixer for layer in layers for mixer in layer.mixers if isinstance(mixer, CachedAttention)]
        keys = [key_bytes(mixer, sequences * prompt, activation_bytes) for mixer in mixers]
        alive += held * Max(*keys)
    return alive + scores + _chunk_states(structure, sequences, length)


def arrived_share(structure: InferenceStructure) -> Any:
    """Bytes of a row that arrived at an expert, over those of a row of activations."""
    as_sent = structure.of_class("experts").mixed_rates and dispatch_element_bytes.name in structure.sent
    return dispatch_element_bytes / activation_bytes if as_sent else 1


def _mixer_features(mixer: Any) -> Any:
    """Features of a token that are alive at once inside of a mixer, on one device."""
    if isinstance(mixer, (Recurrent, CompressedAttention)):
        return mixer.scratch
    return widths.core_width(mixer.layer.kind) * (2 * mixer.heads + 2 * ceil_div(num_key_value_heads, tp))


def _chunk_states(structure: InferenceStructure, sequences: Any, length: Any) -> Any:
    """Bytes of the states of all chunks of a scan, which are alive between its kernels; Mamba-1 keeps none."""
    states = [
        of_kind(mixer.state, layer.kind)
        for layer, _ in layers_of(structure, "prefill")
        for mixer in layer.mixers
        if isinstance(mixer, Recurrent) and mixer.chunked
    ]
    if not states:
        return 0
    chunks = sequences * ceil_div(length, ssm_chunk_size)
    return chunks * state_bytes * Max(*states)


def _outputs(structure: InferenceStructure) -> Any:
    """Bytes of what the head yields: logits of the last tokens, of all tokens, or of the classes."""
    head = structure.architecture.head
    rows = {"vocabulary": vocab_size, "transformed": prompt * vocab_size, "labels": num_labels}
    return micro_batch * rows.get(head, hidden_size if head == "pooled" else 0) * statistic_bytes


def _weights(structure: InferenceStructure) -> dict[str, Any]:
    """Bytes of weights of layers and of ends: of each the most that a stage has, or those of the fullest stage."""
    architecture, dealing = structure.architecture, dealing_of(structure)
    dense, experts = device.dealt_parameters(architecture, dealing.layers_of)
    layers = dense + experts * copied_share(structure)
    layers = model_state.weights_memory(layers, weight_bytes)
    layers += sum(_apart(structure, dealing, other.classes) for other in structure.others)
    if structure.adapted:
        layers += sum(dealing.layers_of(n) * layer_adapters(layer) for layer, n in layers_of(structure, "decode"))
    if structure.offload:
        layers -= sum(host_weights(structure, dealing).values())
    if structure.kept or structure.others:
        # Told apart, norms and routers have 16 bits; where all classes have one format they are as narrow, and few.
        layers += _apart(structure, dealing, (*structure.kept, "rest"))
    if architecture.draft_head != "none":
        return {
            "weights/layers": layers,
            "weights/ends": model_state.weights_memory(end_parameters(architecture), table_bytes),
        }
    head = weight_bytes_of(structure, "head") / table_bytes if structure.narrow_head else 1
    table = weight_bytes_of(structure, "embedding") / table_bytes if structure.narrow_table else 1
    if dealing.differs:
        ends = model_state.weights_memory(_stage_ends(architecture, head, table), table_bytes)
        # Without the buffers of what the host keeps a stage between the ends may have nothing.
        fetched = {"workspace/offload": buffers(structure)} if structure.offload else {}
        return of_largest({"weights/layers": layers, "weights/ends": ends, **fetched}, dealing)
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


def _apart(structure: InferenceStructure, dealing: Dealing, classes: tuple[str, ...]) -> Any:
    """Bytes by which weights of some classes on a stage, of one format, are larger than if they had that of most."""
    own = tuple(name for name in classes if name not in ("head", "embedding"))
    if not own:
        return 0
    kinds = structure.architecture.kinds
    held = sum(dealing.layers_of(number_of(kind, len(kinds))) * _held(structure, kind, own) for kind in kinds)
    return held * (weight_bytes_of(structure, own[0]) - weight_bytes)


def _held(structure: InferenceStructure, kind: LayerKind, classes: tuple[str, ...]) -> Any:
    """Parameters of a layer on one device in some classes of modules, with the copies of experts."""
    held = sum(device.class_parameters(structure.architecture, kind, classes))
    if structure.copied and "experts" in classes:
        experts = sum(device.class_parameters(structure.architecture, kind, ("experts",)))
        held += redundant_experts / num_experts * experts
    return held


def footprint(structure: InferenceStructure) -> dict[str, Any]:
    """Named terms of the memory; a total is their sum."""
    kept = {f"kv_cache/{name}" if name else "kv_cache": form for name, form in sequence_terms(structure).items()}
    alive = activations(structure)
    return {
        **_weights(structure),
        **{name: batch / dp * form for name, form in kept.items()},
        "activations": alive,
        "workspace/fragmentation": fragmentation_memory(alive),
        **{f"workspace/{name}": form for name, form in runtime(structure).items()},
    }


def runtime(structure: InferenceStructure) -> dict[str, Any]:
    """Bytes that driver, libraries and framework hold, and buffers of exchanges and of the host, by name."""
    held = {
        "driver": context_bytes,
        "collectives": collective_buffer_bytes,
        "graphs": graph_bytes,
        "framework": workspace_bytes,
        **exchange_buffers(structure),
    }
    return held | ({"offload": buffers(structure)} if structure.offload else {})


def exchange_buffers(structure: InferenceStructure) -> dict[str, Any]:
    """Buffers of kernels that exchange tokens directly, where decode steps have them."""
    if not structure.experts_dealt or "direct_exchanges" not in structure.families:
        return {}
    width, slots = layer_counts.expert_hidden(structure.architecture), num_experts * copied_share(structure)
    return {"exchanges": direct_exchange_buffer_bytes(exchange_tokens, slots, width, activation_bytes)}


def parts(structure: InferenceStructure) -> dict[str, Any]:
    """Bytes of what shares a device's memory: weights, what runs them, what a step reserves, and one sequence's own.

    A recurrent layer keeps the state behind each token of a step, until the step is verified.
    """
    weights, alive, held = sum(_weights(structure).values()), activations(structure), sum(runtime(structure).values())
    if structure.architecture.draft_head != "none":
        # It runs between steps of the model, in the model's own buffers.
        alive = held = sympy.S.Zero
    alive += fragmentation_memory(alive)
    each = sequence_cache(structure) + less_one(step_tokens) * sequence_terms(structure).get("state", 0)
    own = 0 if structure.step != "prompts" else alive.xreplace({micro_batch: sympy.S.One})
    later = _recorded_later(structure) if held != 0 else 0
    return {
        "weights": weights,
        "runtime": held - later,
        "reserved": later + (alive if structure.step != "prompts" else 0),
        "prompt": own,
        "sequence": each,
    }


def _recorded_later(structure: InferenceStructure) -> Any:
    """Bytes of graphs that are recorded in what a part for weights and cache leaves."""
    return graph_bytes if structure.memory_rule == "static" else 0


def needed(structure: InferenceStructure) -> Any:
    """Bytes that a device must have: those that are used, and those that the software leaves to nobody."""
    named = footprint(structure)
    rest = sympy.Add(*(form for name, form in named.items() if not name.startswith("kv_cache")))
    weights = sympy.Add(*(form for name, form in named.items() if name.startswith("weights/")))
    held = sum(runtime(structure).values()) - _recorded_later(structure)
    budget = budget_of(structure.memory_rule, weights, held, rest)
    used = sympy.Add(*named.values())
    return Max(used, used + room.unused_memory(rest, budget))


def budget_of(rule: Rule, weights: Any, runtime: Any, rest: Any) -> Any:
    """Bytes that software leaves for the cache by its rule."""
    if rule == "static":
        return room.budget_of_static(weights, runtime)
    return room.budget_of_free(rest) if rule == "free" else room.budget_of_total(rest)
