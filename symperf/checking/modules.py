"""The modules of a model by the names and shapes of their parameters: parts, layers, and classes of matrices.

Names are those of transformers. What a name does not tell is among the others, here as in `inspect`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

OTHERS = "others"
AUDIO = re.compile(r"(^|[._])(audio|speech|sound)")
VISION = re.compile(r"(^|[._])(vision|visual|image)")
PROJECTOR = re.compile(
    r"(^|\.)(mm_projector|multi_modal_projector|connector)(\.|$)|^text_projection\.|^logit_(scale|bias)$"
)
SHARED = re.compile(r"\.shared_(experts?|mlp)\.")
ROUTED = re.compile(r"\.experts\.")
ROUTER = re.compile(r"\.(router|gate)\.([a-z]+\.)?weight$")
LATENT = re.compile(r"\.fc[12]_latent_proj\.")
ATTENTION = re.compile(r"\.(\w*attn|\w*attention|\w+Attention|attn_block)\.|\.mixer\.[qkvo]_proj\.")
UNLISTED = re.compile(
    r"compressor\.(?!indexer\.q_b)|indexer\.(weights_proj|[qk]_proj)|relative_attention_bias|position_bias|"
    r"shared_expert_gate|index_kpool|_adapter_"
)
"""Matrices of a layer that `inspect` has among the others, as no file quantizes them."""
MLP = re.compile(
    r"\.(mlp|feed_forward|ffn?|fc[12]|intermediate|output|DenseReluDense|lin[12])\.|\.mixer\.(up|down|gate)_proj\."
)


@dataclass(frozen=True)
class Modules:
    """What PyTorch says of a model.

    Attributes:
        name: of its class.
        versions: of the software that built it, by package.
        shapes: of its parameters by name, a shared one once.
        stacks: names of its lists of modules, and how many each has.
        embeddings: the parameters that look tokens up: two, where a decoder has a table of its own.
        head: the parameter that gives logits, if there is one; that of an embedding where they are tied.
        experts: of a layer with experts, and how many of them a token passes; None where there are none.
        settings: values that its configuration has after class defaults, by key.
        encoders: keys under which its file describes encoders of images or sound.

    """

    name: str
    versions: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]
    stacks: Mapping[str, int] = field(default_factory=dict)
    embeddings: tuple[str, ...] = ()
    head: str | None = None
    experts: tuple[int, int] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    encoders: tuple[str, ...] = ()

    def elements(self, name: str) -> int:
        """Elements of a parameter."""
        return math.prod(self.shapes[name])

    @property
    def tied(self) -> bool:
        """Whether the head is a table of tokens."""
        return self.head in self.embeddings


def parts_of(modules: Modules) -> dict[str, int]:
    """Parameters of the language model with its head, and of encoders with their projectors."""
    found: Counter[str] = Counter()
    for name in modules.shapes:
        found[part_of(name, modules)] += modules.elements(name)
    return dict(found)


def part_of(name: str, modules: Modules) -> str:
    """The part that a parameter belongs to; a projector that names none is the encoder's that there is.

    >>> part_of("model.vision_tower.layers.0.mlp.fc1.weight", Modules("", {}, {}))
    'vision'
    """
    if AUDIO.search(name):
        return "audio"
    if VISION.search(name):
        return "vision"
    if PROJECTOR.search(name):
        seen = any(VISION.search(other) for other in modules.shapes)
        return "vision" if seen else "audio"
    return "language"


def layers_of(modules: Modules, count: int) -> list[str] | None:
    """Names of the layers of the language model in order, each with a final dot.

    Args:
        modules: of the model.
        count: layers that there should be.

    Returns:
        None where no lists of modules, an encoder's before a decoder's, have as many.
    """
    lists = {name: size for name, size in modules.stacks.items() if size and part_of(f"{name}.", modules) == "language"}
    outer = {name: size for name, size in lists.items() if not any(name.startswith(f"{other}.") for other in lists)}
    if sum(outer.values()) != count:
        outer = {name: size for name, size in outer.items() if size == count}
    if sum(outer.values()) != count:
        return None
    return [f"{name}.{place}." for name, size in outer.items() for place in range(size)]


def layer_sizes(modules: Modules, layers: list[str]) -> list[int]:
    """Parameters of each layer; T5's table of relative positions, which its first layers hold, is the embeddings'."""
    places = {name: place for place, name in enumerate(layers)}
    found = [0] * len(layers)
    for name in modules.shapes:
        if (place := _layer(name, places)) is not None and "relative_attention_bias" not in name:
            found[place] += modules.elements(name)
    return found


def _layer(name: str, places: Mapping[str, int]) -> int | None:
    """The layer that a parameter is of: the prefix of its name up to a number."""
    for match in re.finditer(r"\.\d+\.", name):
        if (place := places.get(name[: match.end()])) is not None:
            return place
    return None


def active_of(modules: Modules) -> int | None:
    """Parameters of the language model that a token meets: of routed experts, those that it passes."""
    if modules.experts is None:
        return None
    count, passed = modules.experts
    language = [name for name in modules.shapes if part_of(name, modules) == "language"]
    routed = sum(modules.elements(name) for name in language if ROUTED.search(name))
    return sum(map(modules.elements, language)) - routed * (count - passed) // count


def mixer_of(name: str) -> str:
    """The first module of a layer that a parameter is in, with a final dot; nothing outside of layers.

    >>> mixer_of("model.layers.3.self_attn.forget_gate.A_log")
    'model.layers.3.self_attn.'
    """
    match = re.match(r".*?\.\d+\.\w+\.", name)
    return match[0] if match else ""


def classes_of(modules: Modules) -> dict[str, int]:
    """Parameters of the language model by class of modules, as `inspect` names these."""
    found: Counter[str] = Counter()
    recurrent = {mixer_of(name) for name in modules.shapes if name.endswith(".A_log")}
    for name in modules.shapes:
        if part_of(name, modules) == "language":
            mixer = mixer_of(name)
            scan = "state_space" if f"{mixer}D" in modules.shapes else "linear_attention"
            kind = scan if mixer and mixer in recurrent else None
            found[_class_of(name, modules, kind)] += modules.elements(name)
    return dict(found)


def _class_of(name: str, modules: Modules, recurrent: str | None) -> str:
    if name in modules.embeddings:
        return "embedding"
    if name == modules.head:
        return "lm_head"
    shape = modules.shapes[name]
    if recurrent:
        listed = (len(shape) == 2 and name.endswith("weight")) or name.endswith((".A_log", ".dt_bias"))
        return recurrent if listed else OTHERS
    if len(shape) < 2 or "bias" in name.rpartition(".")[2] or not re.search(r"\.\d+\.", name):
        return OTHERS
    if ROUTED.search(name):
        return "routed_experts"
    if SHARED.search(name):
        return "shared_experts"
    if LATENT.search(name):
        return "latent_experts"
    if ROUTER.search(name) and modules.experts and shape[0] == modules.experts[0]:
        return "router"
    if len(shape) > 2 or UNLISTED.search(name):
        return OTHERS
    if ATTENTION.search(name):
        return "attention"
    return "dense_mlp" if MLP.search(name) else OTHERS
