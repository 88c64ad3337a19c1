"""Kernels of a row out of the layers of `infer`; the only module of the room that needs SymPy.

Sizes that are no symbol of a model are symbols of the row: `row/m`, `row/n`, `row/k` of a product, `row/context` keys
of a cache and `row/passes` over them, `row/before` keys before new tokens, `row/ranks` of a collective, `row/elements`
of a message or a cast, and `row/width` bytes of an element.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import sympy

from ...codegen.lower import lower
from ...formulas.kernels import expert_formats as fmt
from ...formulas.kernels import moe
from ...formulas.language.atoms import Max
from ...formulas.language.symbols import (
    block_module_latency,
    ep,
    index_module_latency,
    micro_batch,
    module_latency,
    num_experts,
    num_experts_per_token,
    prompt,
    strip_units,
)
from ...infer.experts import Experts
from ...infer.layer import Layer
from ...operations.expert_formats import CONVERSION_FLOPS
from ...operations.groups import Group
from ...operations.schedule import Op
from . import compressed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ...codegen.program import Program
    from ...infer.structure import InferenceStructure
    from .forms import Form

_m, _n, _k, _context, _passes, _ranks, _elements, _width = (
    sympy.Symbol(f"row/{name}", positive=True)
    for name in ("m", "n", "k", "context", "passes", "ranks", "elements", "width")
)
_before = sympy.Symbol("row/before", nonnegative=True)


def _product(layer: Layer) -> list[Op]:
    return [layer.kernels.matmul("product", _m, _n, _k)]


def _prompt(layer: Layer) -> list[Op | None]:
    return _mixer(layer).prefill(prompt)  # type: ignore[no-any-return]


def _over_cache(layer: Layer) -> list[Op]:
    return [_mixer(layer).over(_context)]


def _over_cache_in_passes(layer: Layer) -> list[Op]:
    return [_mixer(layer).over(_context, _passes)]


def _absorbed(layer: Layer) -> list[Op | None]:
    mixer = _mixer(layer)
    return mixer.absorbed(layer.tokens, mixer.over(_context))  # type: ignore[no-any-return]


def _absorbed_prompt(layer: Layer) -> list[Op]:
    return [_mixer(layer).absorbed_prefill(prompt)]


def _prompt_module(layer: Layer) -> list[Op | None]:
    mixer = _mixer(layer)
    return [*mixer.projections(), *mixer.prefill(prompt), *mixer.output()]


def _cache_module(layer: Layer) -> list[Op | None]:
    mixer = _mixer(layer)
    return [*mixer.projections(), *_absorbed(layer), *mixer.output()]


def _selected_prefill(layer: Layer) -> list[Op | None]:
    mixer = _mixer(layer)
    pairs = mixer.pairs(prompt, _before)
    core = mixer.attended(micro_batch, prompt, pairs, _before + prompt)
    return [*mixer.projections(), *core, *mixer.output()]


def _selected_decode(layer: Layer) -> list[Op | None]:
    mixer = _mixer(layer)
    return [*mixer.projections(), *mixer.after(_context), *mixer.output()]


def _reused(form: Callable[[Layer], list[Op | None]]) -> Callable[[Layer], list[Op | None]]:
    """A form of a layer that reuses the selection of an earlier one."""

    def without(layer: Layer) -> list[Op | None]:
        kind = replace(layer.kind, traits=("reused_index",))
        return form(Layer(layer.structure, layer.phase, layer.tokens, kind))

    return without


def _compressed(kind: str, form: Callable[[Any], list[Op | None]]) -> Callable[[Layer], list[Op | None]]:
    """A form of a layer that sees a window and entries of a kind."""

    def module(layer: Layer) -> list[Op | None]:
        kinds = layer.architecture.kinds
        mixer = _mixer(Layer(layer.structure, layer.phase, layer.tokens, next(k for k in kinds if kind in k.traits)))
        return [*mixer.projections(), *form(mixer), *mixer.output()]

    return module


def _scan(layer: Layer) -> list[Op | None]:
    return _mixer(layer).scan(micro_batch, prompt)  # type: ignore[no-any-return]


def _step(layer: Layer) -> list[Op | None]:
    return _mixer(layer).step(micro_batch, prompt)  # type: ignore[no-any-return]


def _mixer(layer: Layer) -> Any:
    return layer.mixer


def _experts(layer: Layer) -> list[Op | None]:
    experts = Experts(layer)
    return _routed(layer, experts, experts.groups)


def _even_experts(layer: Layer) -> list[Op | None]:
    experts = Experts(layer)
    return _routed(layer, experts, moe.touched_experts(experts.tokens * ep, num_experts_per_token, num_experts) / ep)


def _routed(layer: Layer, experts: Experts, groups: Any) -> list[Op | None]:
    """Kernels that are given the tokens of all devices, and compute at least one row."""
    if "experts" not in layer.structure.families:
        return [op for op in experts.operations() if op is None or isinstance(op, Op)]
    choices = experts.tokens * ep * num_experts_per_token
    return [experts.fused(Max(1, experts.arriving), Max(1, groups), choices)]


def _exchange(layer: Layer) -> list[Op | None]:
    return [Experts(layer).transfer("exchange", _width)]


def _collective(name: str) -> Callable[[Layer], list[Op | None]]:
    return lambda layer: [getattr(layer.kernels, name)("collective", _elements * _width, Group(_ranks, sympy.S.One))]


def _cast(layer: Layer) -> list[Op]:
    return [layer.kernels.stream("cast", fmt.conversion_bytes(_elements, _width), _elements, CONVERSION_FLOPS)]


KERNELS: Final[Mapping[str, Callable[[Layer], Iterable[Op | None]]]] = {
    "product": _product,
    "prompt": _prompt,
    "over_cache": _over_cache,
    "over_cache_in_passes": _over_cache_in_passes,
    "absorbed": _absorbed,
    "absorbed_prompt": _absorbed_prompt,
    "prompt_module": _prompt_module,
    "cache_module": _cache_module,
    "selected_prefill": _selected_prefill,
    "selected_decode": _selected_decode,
    "selected_prefill_reused": _reused(_selected_prefill),
    "selected_decode_reused": _reused(_selected_decode),
    **{
        f"compressed_{phase}_{name}": _compressed(kind, form)
        for name, kind in compressed.KINDS.items()
        for phase, form in (
            ("prefill", lambda mixer: mixer.extend(micro_batch, prompt, _before)),
            ("decode", lambda mixer: mixer.after(_context)),
        )
    },
    "scan": _scan,
    "step": _step,
    "experts": _experts,
    "even_experts": _even_experts,
    "exchange": _exchange,
    "cast": _cast,
    **{name: _collective(name) for name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")},
}
"""Operations of a layer, by the name of a form."""


def _launched(time: Any, form: Form, structure: InferenceStructure) -> Any:
    """Seconds of a module whose kernels a host launches one by one, as collectors do: no run has these."""
    if form.mixer == "attention":
        return Max(time, block_module_latency) if "block_modules" in structure.families else time
    if "modules" not in structure.families:
        return time
    return Max(time, module_latency + (0 if form.name.endswith("reused") else index_module_latency))


def program(form: Form, structure: InferenceStructure) -> Program:
    """The program of a form: seconds, FLOPs, device-memory bytes and message bytes of its operations together."""
    kinds = structure.architecture.kinds
    kind = next(each for each in kinds if each.mixer == form.mixer and form.ffn in ("", each.ffn))
    layer = Layer(structure, form.phase, micro_batch * prompt if form.phase == "prefill" else micro_batch, kind)
    ops = [op for op in KERNELS[form.name](layer) if op is not None]
    if form.paths:
        ops = [op for op in ops if op.path.endswith(tuple(f"/{path}" for path in form.paths))]
    demands = [op.demand for op in ops]
    time = sympy.Add(*(op.time for op in ops))
    if form.name.startswith("selected_prefill"):
        time = _launched(time, form, structure)
    return lower(
        [],
        {
            "time": strip_units(time),
            "flops": strip_units(sympy.Add(*(each.flops for each in demands))),
            "bytes": sympy.Add(*(each.memory_bytes for each in demands)),
            "message": sympy.Add(*(each.message_bytes for each in demands)),
        },
    )
