"""What a backward pass computes again of a layer where single modules, or all but some operations, are not kept.

The forward pass of the layer is built once more, and of it those operations are left that belong to the modules, by
their paths. A module's collectives are among them, as Megatron-Core replays its whole forward pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...operations.layer_products import products_in_order, recomputed_parts
from ...operations.schedule import Op, Overlap, Repeat, Sequence, part

if TYPE_CHECKING:
    from ...operations.schedule import Node
    from .transformer import Decoder

EXPANSIONS = ("attention/query", "attention/query_up", "attention/latent_up", "attention/rotary")
"""Products of latent attention that expand what is kept, and positions of what they give."""
OUTSIDE_MLP = ("mlp/norm", "mlp/post_norm", "mlp/residual", "mlp/mixture", "mlp/connections")
SAVED = ("reduce", "flash", "core", "ring", "merge")
"""Operations whose results selective checkpointing by operations keeps, beside every second product.

Under context parallelism attention is one operation to it, a ring with its transfers (torchtitan,
distributed/activation_checkpoint.py; PyTorch, distributed/tensor/experimental/_attention.py).
"""
REGATHERED = "context/gather"
"""What the backward pass of the core of attention gathers itself."""


def module_of(name: str) -> str:
    """The module, as Megatron-Core tells them apart, that an operation of a layer belongs to; empty for none.

    >>> [module_of(name) for name in ("attention/norm", "mlp/up", "experts/activation", "attention/output")]
    ['layernorm', 'mlp', 'moe_act', '']
    """
    first, second = (*name.split("/"), "")[:2]
    if second == "norm" and first != "shared":
        return "layernorm"
    if second in ("flash", "core"):
        return "core_attn"
    if name in EXPANSIONS:
        return "mla_up_proj"
    if name in ("experts/limit", "experts/activation"):
        return "moe_act"
    if first in ("experts", "shared"):
        return "moe" if first == "experts" else "shared_experts"
    return "mlp" if first == "mlp" and name not in OUTSIDE_MLP else ""


def recomputed_modules(layer: Decoder, modules: tuple[str, ...]) -> Node | None:
    """The operations of a layer that its backward pass computes again for some modules."""
    rest = tuple(name for name in modules if name != "core_attn")
    if not rest:
        return None
    if "op" in rest:
        return every_second(layer)
    latent = layer.kind.mixer == "latent_attention"
    wanted = {*rest, *(("moe_act", "shared_experts") if "moe" in rest else ())}

    def again(name: str) -> bool:
        module = module_of(name)
        return module in wanted and (module != "mla_up_proj" or latent)

    return part(layer.layer_forward("recompute"), lambda op: again(short(op.path, layer.root)))


def short(path: str, root: str) -> str:
    """The name of an operation inside of a layer, without the phase."""
    return path.removeprefix(f"{root}/").removesuffix("/recompute")


def every_second(layer: Decoder) -> Node:
    """All operations but products of odd number, attention with its ring, and sums over tensor-parallel ranks.

    Of products that one kernel makes together, as of queries, keys and values, those of even number are a part.
    """
    parts = recomputed_parts(products_in_order(layer.architecture, layer.kind, layer.shapes))

    def left(node: Node) -> Node | None:
        match node:
            case Op():
                name = short(node.path, layer.root)
                if name.split("/")[1] in SAVED or name.endswith(REGATHERED):
                    return None
                share = parts.get(name, 1)
                return None if share == 0 else node if share == 1 else Repeat(node, share)
            case Sequence(children):
                found = [rest for child in children if (rest := left(child)) is not None]
                return Sequence(tuple(found)) if found else None
            case Repeat(child, count):
                rest = left(child)
                return None if rest is None else Repeat(rest, count)
            case Overlap(work, transfer, fraction):
                first, second = left(work), left(transfer)
                return Overlap(first, second, fraction) if first and second else first or second
            case _:
                raise TypeError(f"a pass has no {type(node).__name__}")

    return left(layer.layer_forward("recompute")) or Sequence(())
