"""Backward passes of which parts are frozen: what is left of the operations of a whole one.

A step is built as if all were trained, and then operations fall out of its backward passes: products for gradients of
frozen weights, with the gathering of what these alone read; and, below the lowest parameters that are trained, all.
Kernels that make gradients of their input and of a vector together (norms, scans) stay whole where gradients pass them.
In the lowest layer the products that give the gradient of its input fall out; what stands between these and the weights
stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...formulas.language.symbols import hidden_size
from ...operations.schedule import Op, Overlap, Repeat, Sequence, part
from ...plans.gradients import gradients_of
from .passes import of_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...operations.schedule import Node
    from ...plans.structure import Structure
    from ..layers.transformer import Decoder

GATHERS = ("/gather/backward", "/gather/backward_weight")
"""How the paths of transfers end that gather the input of a product again, for the gradient of its weights."""


def layer_class(name: str) -> str:
    """The class of parameters (`plans.freezing.LAYERS`) that an operation of a layer belongs to, by its path in it.

    >>> [layer_class(name) for name in ("attention/qkv/forward", "mlp/norm/forward", "experts/router/forward")]
    ['attention', 'layer_norms', 'router']
    """
    first, second = (*name.split("/"), "")[:2]
    if first == "side" or second in ("connections", "mixture"):
        return "streams"
    if first == "norm" or second in ("norm", "post_norm"):
        return "layer_norms"
    if first == "mlp":
        return "attention" if second == "joining" else "mlp"
    if first in ("experts", "shared"):
        return "router" if second == "router" else "experts"
    return "attention"


class TrainedPasses:
    """What is left of the backward passes of a structure."""

    def __init__(self, structure: Structure) -> None:
        self.structure, self.gradients = structure, gradients_of(structure)

    def layer(self, node: Node, decoder: Decoder, *, lowest: bool = False) -> Node:
        """The backward pass of a layer; of the `lowest`, below which nothing is trained."""
        if not self.gradients.flows(decoder.kind):
            return Sequence(())
        return self._left(node, lambda path: layer_class(path.removeprefix(f"{decoder.root}/")), below=not lowest)

    def embedding(self, node: Node) -> Node:
        """The backward pass of what precedes the layers."""
        return self._left(node, self._embedding_class, below=self.gradients.encoders)

    def head(self, node: Node) -> Node:
        """The backward pass of norm, head and loss."""
        return self._left(node, self._head_class, below=self.gradients.through_layers)

    def modules(self, node: Node) -> Node:
        """The backward pass of the modules for multi-token prediction."""
        return self._left(node, self._module_class, below=self.gradients.through_layers)

    # --- classes of operations by their paths

    def _embedding_class(self, path: str) -> str:
        if path.startswith("encoder/norm"):
            return "final_norm"
        return self.gradients.table if path.endswith(("lookup/backward", "embedding/gather/backward")) else "embedding"

    def _head_class(self, path: str) -> str:
        name = path.removeprefix("head/")
        if name.startswith("transform/"):
            return "head"
        return (
            "final_norm" if name.startswith(("norm/", "side/", "mixture/", "streams/")) else self.gradients.vocabulary
        )

    def _module_class(self, path: str) -> str:
        if "/embedding/lookup/" in path or "/embedding/gather/" in path:
            return self.gradients.table
        logits = path.startswith(("multi_token/head/logits", "multi_token/head/gather"))
        return self.gradients.vocabulary if logits else "multi_token"

    # --- what is left

    def _left(self, node: Node, class_of: Callable[[str], str], *, below: bool) -> Node:
        """The operations that are left of a backward pass.

        Args:
            node: the whole pass.
            class_of: the class of parameters that an operation belongs to, by its path.
            below: something trained lies below, to which the gradient of the input goes.
        """
        if not self.structure.frozen:
            return node
        leaves = list(_operations(node))
        weights = {op.path.rpartition("/")[0] for op in leaves if of_weights(op)}
        kept = [op for op in leaves if not self._unneeded(op, class_of, weights)]
        if not below:
            kept = self._above_lowest(kept, class_of)
        identities = {id(op) for op in kept}
        return part(node, lambda op: id(op) in identities)

    def _unneeded(self, op: Op, class_of: Callable[[str], str], weights: set[str]) -> bool:
        """Whether an operation is for the gradient of frozen weights alone."""
        gathered = next((op.path.removesuffix(end) for end in GATHERS if op.path.endswith(end)), "")
        input_again = gathered in weights or gathered.endswith("head")
        table = op.path.endswith(("lookup/backward", "relative/backward"))
        if gathered.endswith("embedding"):
            table = not self.gradients.encoders
        if not (of_weights(op) or input_again or table):
            return False
        own = class_of(op.path)
        readers = {own, "mlp"} if input_again and own == "attention" and self._shares_input else {own}
        return not any(self.gradients.trains(each) for each in readers)

    @property
    def _shares_input(self) -> bool:
        """Whether attention and MLP read one tensor, which is gathered once."""
        architecture = self.structure.architecture
        return architecture.parallel_block and architecture.block_norms == 1

    def _above_lowest(self, ops: list[Op], class_of: Callable[[str], str]) -> list[Op]:
        """The operations down to the last that gives a gradient of trained parameters, without what goes on from it."""
        last = max((at for at, op in enumerate(ops) if self._gives(op, class_of)), default=-1)
        if last < 0:
            return []
        path = ops[last].path
        block = path.rsplit("/", 2)[0] if of_weights(ops[last]) else None
        return [op for op in ops[: last + 1] if block is None or not _leaves_block(op, block)]

    def _gives(self, op: Op, class_of: Callable[[str], str]) -> bool:
        """Whether an operation gives a gradient of trained parameters."""
        *_, name, phase = op.path.split("/")
        vectors = phase == "backward" and (name.endswith("norm") or name in ("lookup", "relative", "mixture"))
        path_of_stream = phase == "backward" and "/norm/stream" in op.path
        return (of_weights(op) or vectors or path_of_stream) and self.gradients.trains(class_of(op.path))


def _leaves_block(op: Op, block: str) -> bool:
    """Whether an operation gives the gradient of what a block reads of the stream, or sums it."""
    if op.path.endswith("/reduce/backward"):
        return op.path.rsplit("/", 3)[0] == block
    folder, _, name = op.path.rpartition("/")
    reads_stream = op.shape is not None and op.shape[1] == hidden_size
    return folder.rpartition("/")[0] == block and name == "backward_input" and reads_stream


def _operations(node: Node) -> Iterator[Op]:
    match node:
        case Op():
            yield node
        case Sequence(children):
            for child in children:
                yield from _operations(child)
        case Repeat(child, _):
            yield from _operations(child)
        case Overlap(work, transfer, _):
            yield from _operations(work)
            yield from _operations(transfer)
        case _:
            raise TypeError(f"a pass has no {type(node).__name__}")
