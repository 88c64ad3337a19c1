"""What changes the form of a model's cost: its structural choices and its kinds of layers, without any size."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from ..common.frozen import HashOnce

Mixer = Literal[
    "attention",
    "local_attention",
    "latent_attention",
    "compressed_attention",
    "ssm",
    "ssm1",
    "linear_attention",
    "short_convolution",
    "gated_lru",
    "lightning_attention",
    "matrix_memory",
    "wkv",
    "none",
]
"""What moves information between tokens: softmax attention over all keys, over a window, through latent keys and
values (MLA), or over a window and compressed entries; Mamba-2; Mamba-1; a gated delta rule; a gated convolution over
a few tokens (LFM2); a gated linear recurrent unit (Griffin); linear attention with decays (MiniMax); a matrix with
gates (xLSTM); RWKV-7's time mixing; or nothing."""
FeedForward = Literal["dense", "experts", "dense_experts", "none"]
"""What follows: an MLP, routed experts, both side by side, or nothing."""

Activation = Literal["gelu", "silu", "relu", "relu2", "xielu"]
"""Functions of an MLP; approximations of GELU are GELU. ReLU alone has a gradient that its own output tells."""

DraftHead = Literal["none", "mtp", "eagle", "eagle3"]
"""What a head that drafts for another model reads: it is none, a module of that model's own, or one of EAGLE's."""
RECURRENT = (
    *("ssm", "ssm1", "linear_attention", "short_convolution", "gated_lru", "lightning_attention", "matrix_memory"),
    "wkv",
)
"""Mixers with a state of constant size in place of a cache that grows."""
_MIXER_WORDS = {
    "attention": "attention",
    "local_attention": "sliding-window attention",
    "latent_attention": "latent attention",
    "compressed_attention": "attention with one key that is the value",
    "ssm": "Mamba-2",
    "ssm1": "Mamba-1",
    "linear_attention": "gated delta rule",
    "short_convolution": "short convolution",
    "gated_lru": "gated linear recurrent unit",
    "lightning_attention": "lightning attention",
    "matrix_memory": "matrix memory",
    "wkv": "time mixing",
}
TRAIT_WORDS: dict[str, str] = {
    "indexer": "an indexer selects keys",
    "reused_index": "keys selected by an earlier layer",
    "pooled_index": "which it scores pooled",
    "block_index": "an indexer selects blocks of keys",
    "selected_entries": "a window and selected compressed entries",
    "all_entries": "a window and all compressed entries",
    "window_only": "a window",
    "channel_decay": "a decay for every channel",
    "narrow_gate": "a gate through a narrow width",
    "own_values": "values of another width than keys",
    "sinks": "a logit beside those of its keys",
    "reused_keys": "keys and values of an earlier layer",
    "differential": "the difference of two attentions",
    "first_values": "values that later layers take from",
    "shared_block": "weights shared between layers",
    "adapted_attention": "adapters of attention",
    "normalised_input": "no norm before it",
    "convolved": "short convolutions of keys, values and results",
    "distance_bias": "biases by distance",
    "joined_embedding": "embeddings beside the stream",
}
"""Variations of a mixer -> how a kind of layers with it is told.

Latent attention sees the keys that its `indexer` selects, or by a `reused_index` those of the last layer that has one
(DeepSeek-V3.2, GLM-5); a `pooled_index` scores pools of keys and selects whole ones (GLM-5.3). Attention sees the
blocks that a `block_index` selects (MiniMax-M3). Compressed attention has a window, and beside it `selected_entries`,
`all_entries` or, `window_only`, none (DeepSeek-V4). A gated delta rule with a `channel_decay` is Kimi Delta Attention,
whose gate may be narrow. Softmax attention has `own_values` whose width is not that of keys, and `sinks` in this kind
of layers alone (MiMo-V2); it reads `reused_keys` (Gemma-3n), or subtracts two maps of attention from one another
(`differential`, DiffLlama); keys, values and results are `convolved`, and scores have a `distance_bias` (Inkling). A
layer may be a use of a `shared_block`, whose attention may have adapters (Zamba2). Time mixing (RWKV-7) takes a part of
its values from the layer of `first_values`, which takes from none. A `normalised_input` comes from the norm of the
embeddings, and the mixer needs none of its own (the first layer of ModernBERT). Queries, keys and values read a
`joined_embedding` beside the stream (EAGLE-3).
"""
SELECTING = ("indexer", "reused_index", "block_index", "selected_entries", "all_entries", "window_only")
"""Variations that see some keys alone: those that an indexer selects, or a window and entries of several tokens."""
_FEED_FORWARD_WORDS = {"dense": "MLP", "experts": "experts", "dense_experts": "MLP beside experts"}


@dataclass(frozen=True)
class LayerKind:
    """One kind of layer.

    Attributes:
        mixer: what moves information between tokens; of several, the one with a cache that grows.
        ffn: what follows it.
        count: The symbol that holds how many such layers there are: `num_layers` where all are of this kind.
        encoder: The layer belongs to an encoder: it sees all tokens, and generation does not repeat it.
        cross: The layer also attends to the encoder's output.
        own: Sizes of its own, as pairs: the size that formulas are written in, and the one that stands for it in
            these layers. `(("head_dim", "global_head_dim"),)`
        traits: Variations of the mixer that have no size.
        beside: Recurrent mixers that read the same normalised stream as `mixer`, and whose results are added to its.

    """

    mixer: Mixer
    ffn: FeedForward
    count: str = "num_layers"
    encoder: bool = False
    cross: bool = False
    own: tuple[tuple[str, str], ...] = ()
    traits: tuple[str, ...] = ()
    beside: tuple[Mixer, ...] = ()

    @property
    def alone(self) -> tuple[LayerKind, ...]:
        """The kinds that have one of the mixers each, and else are the same; none where there is no mixer.

        >>> [kind.mixer for kind in LayerKind("attention", "dense", beside=("ssm",)).alone]
        ['attention', 'ssm']
        """
        if not self.beside:
            return (self,) if self.mixer != "none" else ()
        return tuple(replace(self, mixer=mixer, beside=()) for mixer in (self.mixer, *self.beside))

    @property
    def shared(self) -> bool:
        """Whether such layers are uses of shared blocks."""
        return "shared_block" in self.traits

    @property
    def reads_embedding(self) -> bool:
        """Whether queries, keys and values read the embedding of a token beside the stream."""
        return self.shared or "joined_embedding" in self.traits

    @property
    def label(self) -> str:
        """The kind in one word, as paths and counts name it: `attention_dense`.

        >>> LayerKind("ssm", "none", "num_ssm_layers").label
        'ssm'
        """
        return re.sub(r"^num_(.*)_layers", r"\1", self.count)

    def size(self, name: str) -> str:
        """The size that stands for one of the formulas' in these layers."""
        return dict(self.own).get(name, name)

    def __str__(self) -> str:
        mixers = " beside ".join(_MIXER_WORDS[each] for each in (self.mixer, *self.beside) if each != "none")
        parts = [mixers, "cross-attention" if self.cross else ""]
        text = " + ".join(part for part in (*parts, _FEED_FORWARD_WORDS.get(self.ffn, "")) if part)
        text += "".join(f", {TRAIT_WORDS[trait]}" for trait in self.traits)
        numbers = sorted({match[1] for _, name in self.own if (match := re.search(r"_([0-9]+)$", name))}, key=int)
        text += f", sizes {' '.join(numbers)}" if numbers else ""
        return f"encoder: {text}" if self.encoder else text


def count_name(mixer: str, ffn: str, *, encoder: bool = False, cross: bool = False) -> str:
    """The symbol that counts the layers of a kind in a model of several kinds.

    >>> count_name("latent_attention", "experts")
    'num_latent_attention_experts_layers'
    >>> count_name("ssm", "none")
    'num_ssm_layers'
    """
    if encoder:
        return "num_encoder_layers"
    if cross:
        return "num_decoder_layers"
    parts = [part for part in (mixer, ffn) if part != "none"]
    return f"num_{'_'.join(parts)}_layers"


UNIFORM = LayerKind("attention", "dense")


@dataclass(frozen=True)
class Architecture(HashOnce):
    """The structural choices of a model: what changes the form of its cost, and no size.

    Attributes:
        gated_mlp: The MLP and the experts have three matrices (SwiGLU, GeGLU) and not two.
        norm: The kind of every norm of hidden width.
        positions: How positions enter; `learned`, `relative` (T5) and `disentangled` (DeBERTa) have parameters.
        tied_embeddings: The output projection is the token table.
        parallel_block: Attention and MLP read the same residual stream and are added together.
        block_norms: Norms of hidden width in a layer of two parts; a layer of one part has half of them.
        norm_bias: These norms have a bias next to their scale.
        qkv_bias: The query, key and value projections have biases; of latent attention, the down-projections.
        key_bias: Keys have a bias too where queries and values have one (Whisper's have none).
        attention_output_bias: The output projection of attention has a bias.
        mlp_bias: All matrices of the MLP have biases.
        head_bias: The output projection to the vocabulary has a bias.
        query_key_norm: Norms of queries and keys: one scale of head width for each (`per_head`), or a scale
            for every query and key channel (`full_width`).
        query_key_norm_bias: These norms have a bias next to their scale (Persimmon).
        embedding_norm: A norm follows the token table (BLOOM, BERT, BART).
        final_norm: A norm precedes the output projection, or ends the encoder.
        wide_stream: In training the residual stream stays in FP32 (Mamba).
        dropout: Training drops out: some dropout probability is above zero.
        kinds: The kinds of layers, in the order in which they first occur.
        attention_sinks: Every head has a learned logit beside its keys' (GPT-OSS).
        attention_gate: The output of attention is gated by a projection as wide: the other half of the queries' (Qwen3-
            Next), or one beside latent attention (Kimi-K3).
        head_gate: Every head has one gate of its output (Step-3.5).
        shared_key_value: In these layers the keys are the values too.
        chunked_attention: Windows are chunks: a query sees the keys of its own chunk only (Llama 4).
        attention_soft_capping: Attention logits are soft-capped.
        logit_soft_capping: Output logits are soft-capped.
        query_compression: Queries of latent attention pass through a narrow projection.
        router_bias: The router's projection has a bias.
        router_scale: The router scales its input and each expert's weight (Gemma 4).
        expert_bias: All matrices of the experts have biases.
        limited_gate: Both halves of the experts' gated activation are limited before it (gpt-oss).
        latent_experts: Routed experts work in a narrower width, between two projections of the stream (Nemotron 3).
        grouped_routing: The experts form groups, and a token chooses from some of them only.
        shared_experts: Some experts see every token.
        scored_shared_experts: The router scores the shared experts too, and has a scale (Inkling).
        shared_expert_gate: A sigmoid gate of one row weighs the shared expert (Qwen).
        ssm_projection_bias: The input and output projections of state-space layers have biases.
        ssm_convolution_bias: Their convolution has a bias.
        ssm_norms: Norms of time step, B and C (Jamba).
        ssm_gated_norm: Mamba-2 has a norm at its gate; else the gate alone (small Falcon-H1).
        hyper_connections: Several residual streams, mixed before every part of a layer and joined before the head.
        low_rank_residual: A product of low rank of the normalised stream is added beside attention (LAuReL).
        layer_inputs: Every layer gets features of a token for itself, from a table and from the embedding.
        alternating_updates: Several residual streams, of which a layer computes one (AltUp).
        stream_head: Weights join these streams before the head, else their mean does (GLM-5.3).
        attention_residuals: Every part of a layer, and the head, reads a mixture of sums of earlier layers (Kimi-K3).
        latent_expert_norm: A norm precedes the projection out of the width of routed experts (Kimi-K3).
        multi_token_head: There are layers that predict further tokens; they are not counted in the model.
        activation: The function between the matrices of the MLP and of the experts, by what its backward pass keeps.
        activation_parameters: Learned scalars of an MLP's activation function (xIELU has two).
        norm_parameters: Norms of hidden width have parameters (OLMo's first generation has none).
        token_types: A table of token types is added to the embeddings (BERT).
        patches: The input are patches of an image, not tokens (ViT).
        encoder_table: The encoder has a table of tokens of its own (T5Gemma).
        spectra: The encoder's input are spectra of sound, which two convolutions make its tokens (Whisper).
        class_token: A vector joins the patches, whose last state stands for the image.
        patch_bias: The product of patches has a bias.
        layer_scale: What each part adds to the stream is scaled by a vector (DINOv2).
        mask_token: A vector stands for hidden patches in pre-training.
        head_transform_bias: The dense layer of a transformed head has a bias.
        head: What ends the model: `vocabulary`, `transformed` (a dense layer and a norm before it, BERT),
            `labels` (a classifier of one token), `pooled` (a learned query and an MLP, SigLIP) or `none`.
        draft_head: What the one layer reads of another model, for which it drafts tokens (`models/draft_heads.py`).

    """

    gated_mlp: bool
    norm: Literal["layer_norm", "rms_norm"]
    positions: Literal["learned", "rotary", "alibi", "relative", "disentangled", "none"]
    tied_embeddings: bool
    parallel_block: bool
    block_norms: int
    norm_bias: bool
    qkv_bias: bool
    attention_output_bias: bool
    mlp_bias: bool
    head_bias: bool
    query_key_norm: Literal["none", "per_head", "full_width"]
    embedding_norm: bool
    final_norm: bool
    dropout: bool
    kinds: tuple[LayerKind, ...] = (UNIFORM,)
    query_key_norm_bias: bool = False
    attention_sinks: bool = False
    attention_gate: bool = False
    head_gate: bool = False
    shared_key_value: bool = False
    chunked_attention: bool = False
    attention_soft_capping: bool = False
    logit_soft_capping: bool = False
    query_compression: bool = False
    router_bias: bool = False
    router_scale: bool = False
    expert_bias: bool = False
    limited_gate: bool = False
    latent_experts: bool = False
    grouped_routing: bool = False
    shared_experts: bool = False
    scored_shared_experts: bool = False
    shared_expert_gate: bool = False
    ssm_projection_bias: bool = False
    ssm_convolution_bias: bool = False
    ssm_norms: bool = False
    ssm_gated_norm: bool = True
    wide_stream: bool = False
    hyper_connections: bool = False
    stream_head: bool = True
    low_rank_residual: bool = False
    layer_inputs: bool = False
    alternating_updates: bool = False
    attention_residuals: bool = False
    latent_expert_norm: bool = False
    multi_token_head: bool = False
    activation: Activation = "silu"
    activation_parameters: int = 0
    norm_parameters: bool = True
    token_types: bool = False
    patches: bool = False
    encoder_table: bool = False
    spectra: bool = False
    key_bias: bool = True
    class_token: bool = True
    patch_bias: bool = True
    layer_scale: bool = False
    mask_token: bool = False
    head_transform_bias: bool = True
    head: Literal["vocabulary", "transformed", "labels", "pooled", "none"] = "vocabulary"
    draft_head: DraftHead = "none"

    __hash__ = HashOnce.__hash__

    @property
    def uniform_dense(self) -> bool:
        """Whether every layer is a decoder's attention and MLP of one size; windows do not matter here."""
        plain = all(
            kind.mixer in ("attention", "local_attention") and kind.ffn == "dense" and not (kind.encoder or kind.cross)
            for kind in self.kinds
        )
        own = any(kind.own or kind.traits or kind.beside for kind in self.kinds)
        special = (
            self.side_blocks
            or self.attention_sinks
            or self.attention_gate
            or self.head_gate
            or self.attention_residuals
            or own
            or self.positions == "relative"
        )
        return plain and not special and self.head == "vocabulary" and not (self.patches or self.token_types)

    @property
    def stacks(self) -> int:
        """2 for an encoder and a decoder, which have tables of positions and end norms of their own; else 1."""
        return len({kind.encoder for kind in self.kinds})

    @property
    def module_kind(self) -> LayerKind:
        """The kind of the layers of modules for multi-token prediction: the last of the model's.

        Those of compressed attention have a window only: `compress_ratios` of DeepSeek-V4 ends with 0. Where layers
        have one part each, a module has attention and experts (Nemotron 3).
        """
        last = self.kinds[-1]
        if last.mixer == "none" or last.ffn == "none":
            mixer = next((each for each in self.kinds if each.mixer.endswith("attention")), last)
            return replace(mixer, ffn=next((each.ffn for each in self.kinds if each.ffn != "none"), "none"))
        return replace(last, traits=("window_only",), own=()) if last.mixer == "compressed_attention" else last

    def has(self, *mixers: str) -> bool:
        """Whether some layer has one of the mixers."""
        return any(each.mixer in mixers for kind in self.kinds for each in kind.alone)

    @property
    def selects(self) -> bool:
        """Whether some layer attends to selected keys, or to compressed ones."""
        return any(trait in SELECTING for kind in self.kinds for trait in kind.traits)

    @property
    def side_blocks(self) -> bool:
        """Whether layers have more than a mixer and an MLP: low-rank residuals, features or streams of their own."""
        return self.low_rank_residual or self.layer_inputs or self.alternating_updates

    @property
    def routed(self) -> bool:
        """Whether some layer has experts."""
        return any(kind.ffn in ("experts", "dense_experts") for kind in self.kinds)
